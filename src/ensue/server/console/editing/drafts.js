// Drafts: what was written and is not on the server, kept in this browser under a name.
// The tab's own draft comes first, so that two tabs with one text do not take each other's; one
// that is opened anew goes on with what was written last. What is about to be replaced can be set
// aside, and is offered for as long as a few others come.

import { channel } from "../base/api.js";

const MOST_ASIDE = 6;

export class Draft {
  constructor(name) {
    this.name = `ensue-draft:${channel}:${name}`;
  }

  load() {
    const own = read(sessionStorage, this.name);
    if (own) return own;
    // From now on it is this tab's.
    const found = read(localStorage, this.name);
    if (found) write(sessionStorage, this.name, localStorage.getItem(this.name));
    return found;
  }

  get isThere() {
    return [sessionStorage, localStorage].some((each) => each.getItem(this.name) !== null);
  }

  save(value) {
    // Whether it is kept: a browser has little room, and may have none.
    const text = JSON.stringify({ ...value, at: new Date().toISOString() });
    return [sessionStorage, localStorage].map((each) => write(each, this.name, text)).some(Boolean);
  }

  discard() {
    // Another tab's draft is not this one's to discard.
    const own = sessionStorage.getItem(this.name);
    if (own !== null && localStorage.getItem(this.name) === own) localStorage.removeItem(this.name);
    sessionStorage.removeItem(this.name);
  }

  get aside() {
    return read(localStorage, `${this.name}:aside`) || [];
  }

  setAside(value) {
    const text = JSON.stringify(value);
    const others = this.aside.filter((each) => JSON.stringify(each.value) !== text);
    const kept = [{ at: new Date().toISOString(), value }, ...others].slice(0, MOST_ASIDE);
    write(localStorage, `${this.name}:aside`, JSON.stringify(kept));
  }
}

function read(store, name) {
  try {
    return JSON.parse(store.getItem(name));
  } catch {
    return null;
  }
}

function write(store, name, text) {
  try {
    store.setItem(name, text);
    return true;
  } catch {
    return false;
  }
}

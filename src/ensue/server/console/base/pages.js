// A list that is longer than a page, the latest first: one page at a time, forth and back.

import { h } from "./dom.js";

const SOON = 300; // milliseconds

export class Pages {
  // `load(cursor)` shows the page behind a cursor, and gives the cursor of the next one, or null.
  constructor(load) {
    this.load = load;
    this.cursors = [null];
    this.next = null;
    this.turn = 0;
    this.newer = h("button", { onclick: () => this.go(-1) }, "← newer");
    this.older = h("button", { onclick: () => this.go(1) }, "older →");
    this.at = h("span.note", { role: "status" });
    // A search through all that is kept may take seconds.
    this.state = h("span.note", { role: "status" });
    this.element = h("nav.row.pages", { "aria-label": "pages", hidden: true }, this.newer, this.at, this.older);
  }

  first() {
    this.cursors = [null];
    return this.show();
  }

  async go(step) {
    if (step > 0 && this.next === null) return;
    if (step > 0) this.cursors.push(this.next);
    else this.cursors.pop();
    await this.show();
    document.getElementById("main").scrollIntoView({ block: "start" });
  }

  async show() {
    // Who types on asks again: only the last question counts.
    const mine = (this.turn += 1);
    this.next = null;
    const timer = setTimeout(() => { this.state.textContent = "looking …"; }, SOON);
    const next = await this.load(this.cursors.at(-1));
    clearTimeout(timer);
    if (mine !== this.turn) return;
    this.state.textContent = "";
    this.next = next ?? null;
    const page = this.cursors.length;
    this.newer.disabled = page === 1;
    this.older.disabled = this.next === null;
    this.at.textContent = `page ${page}`;
    this.element.hidden = page === 1 && this.next === null;
  }
}

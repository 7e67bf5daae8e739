// A list that is longer than a page, the latest first: one page at a time, forth and back.

import { h } from "./dom.js";

export class Pages {
  // `load(cursor)` shows the page behind a cursor, and gives the cursor of the next one, or null.
  constructor(load) {
    this.load = load;
    this.cursors = [null];
    this.next = null;
    this.newer = h("button", { onclick: () => this.go(-1) }, "← newer");
    this.older = h("button", { onclick: () => this.go(1) }, "older →");
    this.at = h("span.note", { role: "status" });
    this.element = h("nav.row.pages", { "aria-label": "pages", hidden: true }, this.newer, this.at, this.older);
  }

  first() {
    this.cursors = [null];
    return this.show();
  }

  async go(step) {
    if (step > 0) this.cursors.push(this.next);
    else this.cursors.pop();
    await this.show();
    document.getElementById("main").scrollIntoView({ block: "start" });
  }

  async show() {
    const wanted = this.cursors.at(-1);
    this.next = null;
    const next = await this.load(wanted);
    if (wanted !== this.cursors.at(-1)) return;
    this.next = next ?? null;
    const page = this.cursors.length;
    this.newer.disabled = page === 1;
    this.older.disabled = this.next === null;
    this.at.textContent = `page ${page}`;
    this.element.hidden = page === 1 && this.next === null;
  }
}

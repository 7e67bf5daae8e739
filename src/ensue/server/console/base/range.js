// A span of time, chosen: the latest minutes, hours or days, or from one time to another.
// In the address it is `last=1h`, or `since` and `until`; the server is asked for times.

import { h } from "./dom.js";
import { fromField, intoField, zone } from "./times.js";

const SPANS = [["15m", "the last 15 minutes", 900], ["1h", "the last hour", 3600], ["24h", "the last 24 hours", 86400], ["7d", "the last 7 days", 604800]];

export class Range {
  constructor(query, changed) {
    const [since, until] = [query.get("since") || "", query.get("until") || ""];
    const last = SPANS.some(([each]) => each === query.get("last")) ? query.get("last") : "";
    this.choice = h("select", { "aria-label": "time range", onchange: () => { this.show(); changed(); } },
      [["", "any time"], ...SPANS, ["between", "between …"]].map(([value, words]) => h("option", { value }, words)));
    this.choice.value = since || until ? "between" : last;
    this.since = this.field("from", since, changed);
    this.until = this.field("to", until, changed);
    this.fields = h("span.row", h("label.row", "from ", this.since), h("label.row", "to ", this.until), h("span.note", zone()));
    this.element = h("span.row.range", this.choice, this.fields);
    this.show();
  }

  field(name, value, changed) {
    return h("input", { type: "datetime-local", step: "1", value: intoField(value), "aria-label": `${name}, ${zone()}`, onchange: changed });
  }

  show() {
    this.fields.hidden = this.choice.value !== "between";
  }

  get linked() {
    // For the address of the page.
    if (this.choice.value !== "between") return { last: this.choice.value };
    return { since: fromField(this.since.value), until: fromField(this.until.value) };
  }

  get asked() {
    // For the server, counted from now.
    const span = SPANS.find(([each]) => each === this.choice.value);
    if (span) return { since: new Date(Date.now() - span[2] * 1000).toISOString() };
    return this.choice.value === "between" ? this.linked : {};
  }

  get isChosen() {
    return Object.values(this.linked).some(Boolean);
  }
}

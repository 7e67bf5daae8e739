// One event or output beside a list: whole, with what can be asked about it.

import { to } from "../base/address.js";
import { fill, h, json } from "../base/dom.js";
import { exactly } from "../base/times.js";

export function quoted(text) {
  // A text as filters write it.
  return `'${String(text).replace(/['\\]/g, "\\$&")}'`;
}

export function eventLink(id, words = id, source = "") {
  return h("a", { href: to("history", id, { source }) }, words);
}

function causes(data) {
  // The events that the output names, each a way to it.
  const named = String(data.causes ?? "").split(",").filter(Boolean);
  const shown = named.slice(0, 8).flatMap((each, at) => [at ? ", " : "", eventLink(each)]);
  return named.length ? h("span", "because of ", shown, named.length > 8 ? ` and ${named.length - 8} more` : "") : null;
}

export class Detail {
  constructor() {
    this.element = h("aside.detail", { hidden: true, tabindex: "0", "aria-label": "what is opened" });
  }

  close() {
    this.element.hidden = true;
    this.row?.focus();
  }

  show(data, { kind = "event", position = "", only = null } = {}) {
    // `only` narrows the list to the type of the event.
    this.row = document.activeElement;
    const isOutput = kind === "output";
    this.element.hidden = false;
    fill(this.element,
      h("div.row", h("h2", data.type), h("button.quiet", { onclick: () => this.close(), "aria-label": "close", "data-close": true }, "✕")),
      h("p.note", isOutput ? `put out by ${data.correlation}` : kind === "late" ? "came too late to be read by rules" : `from ${data.source}`, `, ${exactly(data.time)}`),
      h("p.row",
        isOutput && position ? h("a", { href: to("outputs", position) }, "what caused it") : null,
        isOutput ? null : eventLink(data.id, "what followed from it", data.source),
        isOutput ? causes(data) : null,
        only ? h("button.quiet", { onclick: only }, `only ${data.type}`) : null),
      json(data));
    // On a phone it stands above its list.
    this.element.scrollIntoView({ block: "nearest" });
  }
}

// A field for a filter: mistakes are told with their places, and so is an attribute that nothing has.

import { ask } from "../base/api.js";
import { counted, fill, h, later, told } from "../base/dom.js";

export class FilterField {
  constructor(value, changed) {
    this.problem = h("pre.problem", { hidden: true, role: "alert", id: "filter-problem" });
    this.hint = h("p.hint", { hidden: true, role: "status" });
    this.field = h("input.grow.code", {
      type: "search", value, spellcheck: false, id: "filter", "aria-describedby": "filter-problem",
      placeholder: "filter, such as  celsius > 7 AND van = 'van-3'", "aria-label": "filter in CESQL",
      oninput: later(350, () => changed()),
    });
  }

  get value() {
    return this.field.value.trim();
  }

  set value(text) {
    this.field.value = text;
  }

  right() {
    // The server has taken the filter.
    this.problem.hidden = true;
    this.field.removeAttribute("aria-invalid");
    this.look(this.value);
  }

  wrong(error) {
    const found = error.document?.diagnostics;
    this.hint.hidden = true;
    this.problem.hidden = false;
    fill(this.problem, found ? found.map((each) => each.shown).join("\n\n") : told(error.message));
    this.field.setAttribute("aria-invalid", found ? "true" : "false");
  }

  async look(filter) {
    this.hint.hidden = true;
    if (!filter) return;
    let found;
    try {
      found = await ask(`/v1/filter?filter=${encodeURIComponent(filter)}`);
    } catch {
      return; // who may not ask is not told
    }
    const unknown = found.attributes.filter((each) => !each.declared && !each.seen);
    if (filter !== this.value || !unknown.length || !found.events) return;
    this.hint.hidden = false;
    fill(this.hint, unknown.map((each) => h("span.line",
      "Nothing has an attribute ", h("code", each.name),
      `: no declared type, and none of the latest ${counted(found.events, "event")}. `,
      each.hint ? ["Did you mean ", h("button.quiet", { onclick: () => this.replace(each.name, each.hint) }, each.hint), "?"] : null)));
  }

  replace(name, by) {
    // Outside of texts in quotes, where the name may stand for itself.
    this.field.value = this.field.value.split(/('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")/)
      .map((part, at) => (at % 2 ? part : part.replaceAll(name, by))).join("");
    this.field.dispatchEvent(new Event("input"));
    this.field.focus();
  }
}

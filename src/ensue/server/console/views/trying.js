// A text run over the history before it is put: how often it would have fired, and what differs.

import { ask } from "../base/api.js";
import { counted, fill, h, heads, number, scrolled } from "../base/dom.js";
import { fromField, stamp, zone } from "../base/times.js";
import { trouble } from "../base/troubles.js";

export class DryRun {
  constructor(path, editor) {
    this.path = path;
    this.editor = editor;
    this.since = h("input", { type: "datetime-local", step: "1", "aria-label": `since, ${zone()}`, id: "since" });
    this.controls = [h("label.row", "over the history since ", this.since), h("button", { onclick: () => this.run(), id: "dry" }, "try it")];
    this.element = h("section.panel", { hidden: true, "aria-live": "polite" });
  }

  async run() {
    this.element.hidden = false;
    fill(this.element, h("p.note", "running over the history …"));
    const body = { text: this.editor.text };
    if (this.since.value) body.since = fromField(this.since.value);
    try {
      this.show(await ask(`${this.path}/dry-run`, { method: "POST", body }));
    } catch (error) {
      if (error.document?.diagnostics) this.editor.find(error.document.diagnostics);
      fill(this.element, trouble(error));
    }
    this.element.scrollIntoView({ block: "nearest" });
  }

  show(found) {
    const other = found.difference;
    fill(this.element, h("h2", `It would have fired ${counted(found.outputs, "time")}`, h("span.note", ` (${found.seconds} s)`)),
      found.whole ? null : h("p.problem", found.why),
      scrolled("what would have fired", h("table", heads("rule", "#outputs", "#keys", "most often for"),
        h("tbody", found.rules.map((each) => h("tr", h("td", each.rule), h("td.number", number(each.outputs)), h("td.number", number(each.keys)),
          h("td", each.top_keys.slice(0, 6).map(([key, count]) => h("span.chip", `${key || "–"} ${count}`)))))))),
      other ? [h("h2", "Compared with the version in force"),
        h("dl.facts", h("dt", "both"), h("dd", number(other.both)), h("dt", "only the new one"), h("dd.good", `+${number(other.only_new)}`), h("dt", "only the one in force"), h("dd.bad", `−${number(other.only_in_force)}`)),
        h("ul.outputs", [...other.new_outputs.slice(0, 5).map((each) => ["+", each]), ...other.missing_outputs.slice(0, 5).map((each) => ["−", each])]
          .map(([sign, each]) => h(`li.${sign === "+" ? "good" : "bad"}`, `${sign} ${each.correlation} ${each.partitionkey ?? ""} `, stamp(each.time), " ", h("code", JSON.stringify(each.data ?? null)))))] : null);
  }
}

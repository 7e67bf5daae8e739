// The versions of a library, the latest first: who put each, when and what for; compared, restored.

import { ask } from "../base/api.js";
import { choose } from "../base/dialogs.js";
import { fill, h, heads, notice, scrolled } from "../base/dom.js";
import { Pages } from "../base/pages.js";
import { ago } from "../base/times.js";
import { trouble } from "../base/troubles.js";
import { change, difference, noteField, pathOf, versionLine } from "../editing/putting.js";

const PAGE = 20;

export class Versions {
  // `show` takes a version into the editor, `restored` is called when another is in force, and
  // `seen` gives the tag of what is in force as the page shows it.
  constructor(name, { show, restored, seen }) {
    this.name = name;
    this.path = pathOf(name);
    this.calls = { show, restored, seen };
    this.place = h("div");
    this.pages = new Pages((before) => this.page(before));
    this.element = h("section.panel", { hidden: true }, h("h2", "Versions"), this.place, this.pages.element);
  }

  load() {
    return this.pages.first();
  }

  async page(before) {
    try {
      const found = await ask(`${this.path}/versions?limit=${PAGE}${before ? `&before=${before}` : ""}`);
      this.element.hidden = false;
      fill(this.place, scrolled("versions", h("table.versions", heads("#version", "put", "note", "actions"), h("tbody", found.map((each) => this.row(each))))));
      return found.length === PAGE ? found.at(-1).version : null;
    } catch (error) {
      fill(this.place, trouble(error));
      return null;
    }
  }

  row(each) {
    return h("tr",
      h("td.number", each.version), h("td", ago(each.at), h("span.note", ` by ${each.author}`)), h("td.note", each.note),
      h("td", each.in_force ? h("span.badge", "in force") : [
        h("button.quiet", { onclick: () => this.compare(each) }, "compare"),
        h("button.quiet", { onclick: () => this.calls.show(each) }, "edit from here"),
        h("button.quiet", { onclick: () => this.restore(each) }, "restore")]));
  }

  async compare(each) {
    await this.working(async () => {
      const found = await ask(`${this.path}/difference?from=${each.version}`);
      await choose(`From version ${each.version} to the one in force`, [h("p", versionLine(each)), difference(found)], [], { cancel: "close" });
    });
  }

  async restore(each) {
    await this.working(async () => {
      const tag = this.calls.seen();
      const found = await ask(`${this.path}/difference`, { method: "POST", body: each.text, type: "text/plain" });
      const note = noteField(`version ${each.version} again`);
      const agreed = await choose(`Restore version ${each.version}`, [
        h("p", "Its text becomes a new version, and is in force at once. The server has ", versionLine(found.from), "."),
        difference(found), h("label", "note", note),
      ], [["restore", `restore version ${each.version}`, "strong"]]);
      if (!agreed) return;
      const done = await change(this.name, "rollback", { tag, note: note.value.trim(), body: { version: each.version } });
      notice(`version ${done.version} is in force, with the text of version ${each.version}`);
      this.calls.restored();
    });
  }

  async working(action) {
    try {
      await action();
    } catch (error) {
      notice(error.message, "bad");
    }
  }
}

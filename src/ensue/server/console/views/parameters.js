// The parameters of a library: types, defaults and values, which are changed here without its text.
// Values that were typed and not put stay in their fields, whatever others put meanwhile. What does
// not fit is told at its field, in the words of the server.

import { ask } from "../base/api.js";
import { fill, h, heads, notice, scrolled, told } from "../base/dom.js";
import { trouble } from "../base/troubles.js";
import { pathOf, putInForce } from "../editing/putting.js";

export class Values {
  // `seen` gives what is in force as the page shows it, `changed` is called when values were put.
  constructor(name, { seen, changed }) {
    this.name = name;
    this.calls = { seen, changed };
    this.fields = new Map();
    this.version = null;
    this.base = null; // what was in force when the first value was typed
    this.body = h("tbody");
    this.place = h("div");
    this.button = h("button.strong", { disabled: true }, "put values in force …");
    this.element = h("form.panel", { hidden: true, novalidate: true, "aria-labelledby": "parameters", onsubmit: (event) => { event.preventDefault(); this.put(); } },
      h("h2", { id: "parameters" }, "Parameters"),
      scrolled("parameters", h("table.parameters", heads("parameter", "default", "value"), this.body)),
      this.place, h("div.bar", h("span.grow"), this.button));
  }

  get isChanged() {
    return [...this.fields.values()].some((each) => each.text !== each.was);
  }

  async load({ isAnew = false } = {}) {
    // The parameters of what is in force. They are asked for once for each version.
    const version = this.calls.seen().version;
    if (version === this.version && !isAnew) return;
    try {
      const found = Object.entries(await ask(`${pathOf(this.name)}/parameters`));
      this.version = version;
      this.show(found, isAnew);
    } catch (error) {
      this.element.hidden = false;
      fill(this.place, trouble(error));
    }
  }

  show(found, isAnew) {
    const names = found.map(([name, each]) => `${name} ${each.type}`);
    if (isAnew || names.join() !== [...this.fields.values()].map((each) => each.kind).join()) {
      const typed = isAnew ? new Map() : this.typed();
      this.fields = new Map(found.map(([name, each]) => [name, new Field(name, each, () => this.tell())]));
      for (const [name, text] of typed) if (this.fields.has(name)) this.fields.get(name).text = text;
      fill(this.body, [...this.fields.values()].map((each) => each.row));
    } else for (const [name, each] of found) this.fields.get(name).follow(each);
    this.element.hidden = !found.length;
    this.tell();
  }

  typed() {
    // What differs from the values in force, by name.
    return new Map([...this.fields].filter(([, each]) => each.text !== each.was).map(([name, each]) => [name, each.text]));
  }

  tell() {
    if (!this.isChanged) this.base = null;
    else this.base ??= this.calls.seen();
    this.button.disabled = !this.isChanged;
  }

  async put() {
    const values = Object.fromEntries(this.typed());
    this.fields.forEach((each) => each.find(null));
    fill(this.place);
    try {
      const result = await putInForce({ name: this.name, values, seen: this.base });
      if (!result) return;
      if (result.findings) { this.find(result.findings.filter((each) => each.severity === "error").map((each) => [each.message, each.hint])); return; }
      await this.calls.changed();
      await this.load({ isAnew: true });
      notice(result.done ? `version ${result.done.version} is in force, with these values` : "nothing has changed");
    } catch (error) {
      const problems = Object.entries(error.document?.parameters ?? {});
      if (problems.length) this.find(problems.map(([name, words]) => [words, null, name]));
      else if (error.document?.diagnostics) this.find(error.document.diagnostics.map((each) => [each.message, each.hint]));
      else fill(this.place, trouble(error));
    }
  }

  find(problems) {
    // Each at the field that it names; what names none of those that were changed, below them.
    const rest = [];
    for (const [message, hint, name] of problems) {
      const words = hint ? `${message}: ${hint}` : message;
      const field = this.fields.get(name ?? [...this.typed().keys()].find((each) => message.includes(`\`${each}\``)));
      if (field) field.find(words);
      else rest.push(h("p", told(words)));
    }
    if (rest.length) fill(this.place, h("div.problem", { role: "alert" }, rest));
    this.body.querySelector("[aria-invalid]")?.focus();
  }
}

class Field {
  // One parameter: a row with its field, the value in force, and what is wrong with what was typed.
  constructor(name, given, changed) {
    this.kind = `${name} ${given.type}`;
    const id = `parameter-${name}`;
    const attributes = { id, oninput: () => changed() };
    this.input = given.type === "boolean"
      ? h("select", attributes, h("option", { value: "true" }, "true"), h("option", { value: "false" }, "false"))
      : h("input.code", { ...attributes, autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
    this.standard = h("td");
    this.problem = h("p.bad", { id: `${id}-problem`, hidden: true });
    this.back = h("button.quiet", { type: "button", "aria-label": `use it, the default of ${name}`, onclick: () => { this.text = this.initial; changed(); this.input.focus(); } }, "use it");
    this.row = h("tr", h("th", { scope: "row" }, h("label", { for: id }, name), h("span.note", ` ${given.type}`)), this.standard, h("td", this.input, this.problem));
    this.take(given);
    this.text = this.was;
  }

  get text() {
    return this.input.value;
  }

  set text(value) {
    this.input.value = value;
  }

  take(given) {
    this.was = String(given.value);
    this.initial = String(given.default);
    fill(this.standard, h("code", this.initial), this.initial === this.was ? null : this.back);
  }

  follow(given) {
    // A value that others have put; what was typed here stays.
    const isTyped = this.text !== this.was;
    this.take(given);
    if (!isTyped) this.text = this.was;
  }

  find(problem) {
    this.problem.hidden = !problem;
    fill(this.problem, problem ? told(problem) : null);
    for (const [name, value] of [["aria-invalid", "true"], ["aria-describedby", this.problem.id]]) {
      if (problem) this.input.setAttribute(name, value);
      else this.input.removeAttribute(name);
    }
  }
}

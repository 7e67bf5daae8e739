// A field for a text of rules: colours, line numbers, findings marked where they are, and told
// for the place of the cursor. A plain text field lies over a coloured copy of its text.

import { fill, h } from "../base/dom.js";

const WORDS = /^(eventtype|correlation|ecl|attribute|public|every|deadline|from|where|within|by|bind|first|last|latest|keep|none|all|unless|having|case|push|new|abort|revive|toggle|accumulate|select|sequential|parallel|do|fail|repeat|persist|loop|notify|modes|in|timeout|true|false|count|distinct|sum|avg|min|max|AND|OR|NOT|LIKE|IN|IS|NULL|EXISTS|BETWEEN|MATCHES|AFTER|DURING|FILTER)$/;
const TYPES = /^(short|long|unsigned|float|double|boolean|char|octet|string|timestamp|sequence)$/;
const TOKENS = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/|'[^'\n]*'|"[^"\n]*"|\d+(?:\.\d+)?(?:\s*(?:ms|min|s|h|d)\b)?|[A-Za-z_][A-Za-z0-9_]*)/;

export function highlighted(text) {
  return text.split(TOKENS).map((part) => {
    if (/^\/[/*]/.test(part)) return h("span.comment", part);
    if (/^['"]/.test(part)) return h("span.text", part);
    if (/^\d/.test(part)) return h("span.number", part);
    if (WORDS.test(part)) return h("span.word", part);
    if (TYPES.test(part)) return h("span.type", part);
    return part;
  });
}

export class Editor {
  constructor(label, text, changed, { rules = true, rows = 18 } = {}) {
    this.rules = rules;
    this.findings = [];
    this.numbers = h("pre.numbers", { "aria-hidden": "true" });
    this.under = h("pre.under", { "aria-hidden": "true" });
    this.marks = h("pre.marks", { "aria-hidden": "true" });
    this.field = h("textarea", {
      spellcheck: "false", autocapitalize: "off", autocomplete: "off", rows: String(rows), wrap: "off", "aria-label": label,
      oninput: () => { this.draw(); changed(this.text); },
      onscroll: () => this.scroll(),
      onkeydown: (event) => this.key(event),
      onkeyup: () => this.tell(), onclick: () => this.tell(),
    });
    this.field.value = text;
    this.told = h("div.told", { role: "status" });
    this.element = h("div.editor", h("div.paper", this.numbers, h("div.sheet", this.under, this.marks, this.field)), this.told);
    this.draw();
  }

  fit(fewest, most) {
    // As high as the text, within bounds: what follows below is the nearer.
    this.field.rows = Math.min(most, Math.max(fewest, this.text.split("\n").length + 1));
  }

  get text() {
    return this.field.value;
  }

  set text(text) {
    this.field.value = text;
    this.draw();
  }

  key(event) {
    // The tab key leaves the field, as everywhere; with Ctrl it indents.
    if (event.key === "Tab" && event.ctrlKey) {
      event.preventDefault();
      this.field.setRangeText("    ", this.field.selectionStart, this.field.selectionEnd, "end");
      this.field.dispatchEvent(new Event("input"));
    }
  }

  find(findings) {
    this.findings = findings;
    this.draw();
    this.tell();
  }

  draw() {
    const lines = this.text.split("\n");
    fill(this.numbers, lines.map((_, at) => {
      const worst = this.findings.filter((each) => each.line === at + 1).map((each) => each.severity);
      return h(`span${worst.includes("error") ? ".error" : worst.length ? ".warning" : ""}`, `${at + 1}\n`);
    }));
    fill(this.under, this.rules ? highlighted(this.text) : this.text, "\n");
    fill(this.marks, lines.flatMap((line, at) => [...this.marked(line, at + 1), "\n"]));
    this.scroll();
  }

  marked(line, number) {
    const here = this.findings.filter((each) => each.line === number && each.column)
      .sort((a, b) => a.column - b.column);
    const parts = [];
    let done = 0;
    for (const each of here) {
      const begin = Math.max(done, each.column - 1);
      const end = Math.min(line.length, Math.max(begin + 1, each.column - 1 + each.width));
      parts.push(line.slice(done, begin), h(`span.${each.severity}`, line.slice(begin, end) || " "));
      done = Math.max(end, begin);
    }
    return [...parts, line.slice(done)];
  }

  scroll() {
    for (const each of [this.under, this.marks]) {
      each.scrollTop = this.field.scrollTop;
      each.scrollLeft = this.field.scrollLeft;
    }
    this.numbers.scrollTop = this.field.scrollTop;
  }

  tell() {
    // What is found at the cursor's line comes first; else the first finding.
    if (!this.findings.length) {
      fill(this.told);
      return;
    }
    const before = this.text.slice(0, this.field.selectionStart);
    const line = before.split("\n").length;
    const here = this.findings.filter((each) => each.line === line);
    const shown = here.length ? here : this.findings.slice(0, 3);
    fill(this.told, shown.map((each) => h(`p.${each.severity}`,
      h("button.quiet", { onclick: () => this.jump(each) }, each.line ? `line ${each.line}` : "events"),
      ` ${each.message}`, each.hint ? h("span.note", ` · ${each.hint}`) : null)),
    this.findings.length > shown.length ? h("p.note", `${this.findings.length} findings in all`) : null);
  }

  jump(finding) {
    const lines = this.text.split("\n");
    const begin = lines.slice(0, finding.line - 1).join("\n").length + (finding.line > 1 ? 1 : 0) + (finding.column || 1) - 1;
    this.field.focus();
    this.field.setSelectionRange(begin, begin + (finding.width || 1));
    this.tell();
  }
}

// Questions over the page: one at a time, closed by Escape, and gone once they are answered.

import { h } from "./dom.js";

export function opened(name, ...content) {
  // A dialog with a heading; `close` of it, or Escape, takes it away.
  const dialog = h("dialog", { "aria-label": name }, h("h2", name), ...content);
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
  return dialog;
}

export function choose(name, content, choices, { cancel = "cancel", form = () => true } = {}) {
  // Which of the choices was made: `[[value, words, kind], ...]`; null for none of them.
  // The strong one wants the fields to be filled; `form` looks closer.
  return new Promise((resolve) => {
    let chosen = null;
    const dialog = opened(name, h("form.stack", {
      method: "dialog",
      onsubmit: (event) => {
        const value = event.submitter?.value ?? "";
        if (value && !form(value)) event.preventDefault();
        else chosen = value || null;
      },
    },
    content,
    h("div.row.choices",
      choices.map(([value, words, kind]) =>
        h(`button${kind ? `.${kind}` : ""}`, { value, formnovalidate: kind !== "strong" }, words)),
      h("button", { value: "", formnovalidate: true }, cancel))));
    dialog.addEventListener("close", () => resolve(chosen));
    dialog.querySelector("input:not([readonly]), .choices button")?.focus();
  });
}

// Saved views: an address of this page under a name, kept in this browser; and links to share.

import { opened } from "./dialogs.js";
import { fill, h, notice } from "./dom.js";

function saved() {
  try {
    return JSON.parse(localStorage.getItem("ensue-views") || "[]");
  } catch {
    return [];
  }
}

function keep(views) {
  localStorage.setItem("ensue-views", JSON.stringify(views));
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    notice(`${what} is in the clipboard`);
  } catch {
    notice(text);
  }
}

export function openViews() {
  const list = h("ul.views");
  const name = h("input", { placeholder: "name of this view", "aria-label": "name of this view", required: true });
  function draw() {
    const views = saved();
    fill(list, views.length ? views.map((each, at) =>
      h("li",
        h("a", { href: (each.path || "") + each.hash, onclick: () => dialog.close() }, each.name),
        h("code", ((each.path || "") + each.hash).slice(0, 80)),
        h("button.quiet", {
          "aria-label": `forget ${each.name}`,
          onclick: () => { keep(saved().filter((_, place) => place !== at)); draw(); },
        }, "✕"))) : h("li.note", "No view is saved yet. Set a filter, then save it here."));
  }
  const form = h("form.row", {
    onsubmit: (event) => {
      event.preventDefault();
      keep([...saved().filter((each) => each.name !== name.value), { name: name.value, path: location.pathname, hash: location.hash || "#/stream" }]);
      name.value = "";
      draw();
    },
  }, name, h("button", "save this view"));
  const dialog = opened("Saved views", list, form,
    h("div.row",
      h("button.quiet", { onclick: () => copy(location.href, "the link") }, "copy a link to this view"),
      h("form", { method: "dialog" }, h("button", "close"))));
  draw();
  name.focus();
}

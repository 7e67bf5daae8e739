// The page: which view is shown for which address, the keys, the pulse at the top.

import { ask, channel } from "./api.js";
import { counted, fill, h, notice, number, s, span } from "./dom.js";
import { gateways } from "./gateways.js";
import { libraries } from "./libraries.js";
import { outputs } from "./outputs.js";
import { playground } from "./playground.js";
import { rules } from "./rules.js";
import { stream } from "./stream.js";
import { system } from "./system.js";
import { openViews } from "./views.js";

const VIEWS = [
  ["stream", "Stream", stream],
  ["rules", "Rules", rules],
  ["outputs", "Outputs", outputs],
  ["playground", "Playground", playground],
  ["libraries", "Libraries", libraries],
  ["gateways", "Gateways", gateways],
  ["system", "System", system],
];

let leave = () => {};

export function route() {
  // `#/rules/lib/rule?key=x` is the view `rules`, with the parts `lib` and `rule`, and `key`.
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").map(decoded);
  return { view: view || "stream", parts, query: new URLSearchParams(query) };
}

function decoded(part) {
  // An address may be typed by hand: what is not encoded stands for itself.
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function go(view, query = {}, replace = true) {
  // Put what a view shows into the address, so that it can be linked.
  const wanted = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  const text = [...wanted].length ? `${view}?${wanted}` : view;
  if (`#/${text}` === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", `#/${text}`);
  if (!replace) show();
}

function show() {
  const wanted = route();
  const [name, title, make] = VIEWS.find(([each]) => each === wanted.view) || VIEWS[0];
  leave();
  for (const each of document.querySelectorAll("nav a")) {
    if (each.dataset.view !== name) {
      each.removeAttribute("aria-current");
      continue;
    }
    each.setAttribute("aria-current", "page");
    // On a phone there is no room for all of them.
    each.parentElement.scrollLeft = each.offsetLeft - each.parentElement.offsetLeft - 24;
  }
  document.title = `${title} · Ensue`;
  const main = document.getElementById("main");
  fill(main);
  main.dataset.view = name;
  leave = make(main, wanted) || (() => {});
}

function pace(samples) {
  // Rules fire seldom: where it is less than one output a second, the last minute tells more.
  const all = samples.reduce((sum, each) => sum + each.outputs, 0);
  return all < samples.length ? `${counted(all, "output")}/min` : `${number(all / Math.max(1, samples.length))} outputs/s`;
}

function pulse() {
  const place = document.getElementById("pulse");
  const past = [];
  async function beat() {
    if (document.hidden) return;
    try {
      const figures = await ask("/v1/figures?seconds=60");
      const samples = figures.samples;
      const last = samples[samples.length - 1] || { events: 0, outputs: 0 };
      past.splice(0, past.length, ...samples.map((each) => each.events));
      const most = Math.max(1, ...past);
      const points = past.map((each, at) => `${(at * 60) / Math.max(1, past.length - 1)},${16 - (14 * each) / most}`);
      fill(
        place,
        s("svg", { viewBox: "0 0 60 18", class: "spark", "aria-hidden": "true" },
          s("polyline", { points: points.join(" ") })),
        h("span", `${number(last.events)} events/s`),
        h("span.strong", pace(samples)),
      );
      place.title = `${number(figures.events)} events, ${number(figures.outputs)} outputs, up for ${span(figures.uptime)}`;
      place.classList.remove("down");
    } catch (error) {
      place.classList.add("down");
      fill(place, h("span", "not connected"));
    }
  }
  beat();
  setInterval(beat, 1000);
}

async function channels() {
  // Only where there is a choice: most servers have one channel.
  const place = document.getElementById("channel");
  let found;
  try {
    found = await ask("/v1/channels");
  } catch {
    return;
  }
  fill(place, found.map((each) => h("option", { value: each.url, selected: each.name === channel }, each.name)));
  place.hidden = found.length < 2;
  place.addEventListener("change", () => { location.href = `${place.value}#/${route().view}`; });
}

function theme() {
  const order = ["", "light", "dark"];
  const now = document.documentElement.dataset.theme || "";
  const next = order[(order.indexOf(now) + 1) % order.length];
  document.documentElement.dataset.theme = next;
  localStorage.setItem("ensue-theme", next);
  notice(next ? `${next} colours` : "the colours of the system");
}

function help() {
  const keys = [
    ["1 … 7", "the views, from left to right"],
    ["/", "to the filter or the first field"],
    ["p", "pause or go on, in the stream"],
    ["j, k", "the next or the previous row"],
    ["Enter", "open the row"],
    ["v", "saved views"],
    ["t", "light, dark, or as the system has it"],
    ["?", "this list"],
  ];
  const dialog = h("dialog.help",
    h("h2", "Keys"),
    h("dl", keys.flatMap(([key, what]) => [h("dt", h("kbd", key)), h("dd", what)])),
    h("form", { method: "dialog" }, h("button", "close")));
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
}

function move(step) {
  const rows = [...document.querySelectorAll("main [data-row]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  next.focus();
}

function key(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "Escape" && typing) {
    // Left as it is: a browser would empty a field for searching.
    event.preventDefault();
    event.target.blur();
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const view = VIEWS[Number(event.key) - 1];
  if (view) location.hash = `#/${view[0]}`;
  else if (event.key === "?") help();
  else if (event.key === "t") theme();
  else if (event.key === "v") openViews();
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "p") document.querySelector("[data-pause]")?.click();
  else if (event.key === "/") document.querySelector("main input, main textarea")?.focus();
  else return;
  event.preventDefault();
}

document.documentElement.dataset.theme = localStorage.getItem("ensue-theme") || "";
fill(
  document.getElementById("nav"),
  VIEWS.map(([name, title], at) =>
    h("a", { href: `#/${name}`, "data-view": name, title: `${title} (${at + 1})` }, title)),
);
document.getElementById("theme").addEventListener("click", theme);
document.getElementById("help").addEventListener("click", help);
document.getElementById("views").addEventListener("click", openViews);
document.addEventListener("keydown", key);
document.querySelector(".skip").addEventListener("click", (event) => {
  // The address is that of the view, and not that of a place in the page.
  event.preventDefault();
  document.getElementById("main").focus();
});
addEventListener("hashchange", show);
show();
pulse();
channels();

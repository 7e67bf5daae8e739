// The page: which view is shown for which address, the keys, the pulse at the top.

import { ask, channel } from "./base/api.js";
import { route } from "./base/address.js";
import { opened } from "./base/dialogs.js";
import { counted, fill, h, notice, number, s } from "./base/dom.js";
import { isHeld, mayLeave, release } from "./base/leaving.js";
import { openViews } from "./base/saved.js";
import { changeZone, isUtc, span, zone } from "./base/times.js";
import * as token from "./base/token.js";
import { gateways } from "./views/gateways.js";
import { history as past } from "./views/history.js";
import { libraries } from "./views/libraries.js";
import { outputs } from "./views/outputs.js";
import { playground } from "./views/playground.js";
import { rules } from "./views/rules.js";
import { stream } from "./views/stream.js";
import { system } from "./views/system.js";

const VIEWS = [
  ["stream", "Stream", stream],
  ["history", "History", past],
  ["rules", "Rules", rules],
  ["outputs", "Outputs", outputs],
  ["playground", "Playground", playground],
  ["libraries", "Libraries", libraries],
  ["gateways", "Gateways", gateways],
  ["system", "System", system],
];

let stop = () => {};

function show() {
  const wanted = route();
  const [name, title, make] = VIEWS.find(([each]) => each === wanted.view) || VIEWS[0];
  release();
  stop();
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
  stop = make(main, wanted) || (() => {});
}

async function moved(event) {
  // What is being edited stays until it is said that it may go.
  if (!isHeld()) { show(); return; }
  const wanted = location.hash;
  history.replaceState(null, "", new URL(event.oldURL).hash);
  if (!(await mayLeave())) return;
  release();
  if (wanted === location.hash) show();
  else location.hash = wanted;
}

function pace(samples) {
  // Rules fire seldom: where it is less than one output a second, the last minute tells more.
  const all = samples.reduce((sum, each) => sum + each.outputs, 0);
  return all < samples.length ? `${counted(all, "output")}/min` : `${number(all / Math.max(1, samples.length))} outputs/s`;
}

function pulse() {
  const place = document.getElementById("pulse");
  async function beat() {
    if (document.hidden) return;
    try {
      const figures = await ask("/v1/figures?seconds=60");
      const samples = figures.samples;
      const last = samples[samples.length - 1] || { events: 0 };
      const most = Math.max(1, ...samples.map((each) => each.events));
      const points = samples.map((each, at) => `${(at * 60) / Math.max(1, samples.length - 1)},${16 - (14 * each.events) / most}`);
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
      fill(place, h("span", error.status === 401 ? "no token" : "not connected"));
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
  place.onchange = () => { location.href = `${place.value}#/${route().view}`; };
}

function theme() {
  const order = ["", "light", "dark"];
  const now = document.documentElement.dataset.theme || "";
  const next = order[(order.indexOf(now) + 1) % order.length];
  document.documentElement.dataset.theme = next;
  localStorage.setItem("ensue-theme", next);
  notice(next ? `${next} colours` : "the colours of the system");
}

function zoned() {
  const button = document.getElementById("zone");
  fill(button, zone());
  button.title = `Times are in ${isUtc() ? "UTC" : `the zone of this browser, ${zone()}`}: change it (z)`;
}

function otherZone() {
  // What is being edited is there again: a draft of it is kept.
  changeZone();
  zoned();
  show();
}

function help() {
  const keys = [
    [`1 … ${VIEWS.length}`, "the views, from left to right"],
    ["/", "to the filter or the first field"],
    ["p", "pause or go on, in the stream"],
    ["j, k", "the next or the previous row"],
    ["Enter", "open the row"],
    ["Escape", "leave a field; close what is open"],
    ["Ctrl-Z", "take back an edit; with Shift, do it again"],
    ["v", "saved views"],
    ["t", "light, dark, or as the system has it"],
    ["z", "times in UTC, or in the zone of this browser"],
    ["?", "this list"],
  ];
  opened("Keys",
    h("dl", keys.flatMap(([key, what]) => [h("dt", h("kbd", key)), h("dd", what)])),
    h("form", { method: "dialog" }, h("button", "close"))).classList.add("help");
}

function move(step) {
  const rows = [...document.querySelectorAll("main [data-row]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  next.focus();
}

function key(event) {
  if (document.querySelector("dialog[open]")) return;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "Escape") {
    // A field is left as it is: a browser would empty one for searching.
    event.preventDefault();
    if (typing) event.target.blur();
    else document.querySelector("main [data-close]:not([hidden] *)")?.click();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const view = VIEWS[Number(event.key) - 1];
  if (view) location.hash = `#/${view[0]}`;
  else if (event.key === "?") help();
  else if (event.key === "t") theme();
  else if (event.key === "z") otherZone();
  else if (event.key === "v") openViews();
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "p") document.querySelector("[data-pause]")?.click();
  else if (event.key === "/") document.querySelector("main input, main textarea")?.focus();
  else return;
  event.preventDefault();
}

function tokens({ hasToken, isDeclined, isChanged }) {
  // The button is there once a token counts: an open server wants none.
  const button = document.getElementById("token-button");
  button.hidden = !hasToken && !isDeclined;
  button.classList.toggle("on", isDeclined);
  if (!isChanged) return;
  channels();
  show();
}

document.documentElement.dataset.theme = localStorage.getItem("ensue-theme") || "";
fill(
  document.getElementById("nav"),
  VIEWS.map(([name, title], at) =>
    h("a", { href: `#/${name}`, "data-view": name, title: `${title} (${at + 1})` }, title)),
);
zoned();
tokens({ hasToken: token.hasToken(), isDeclined: false, isChanged: false });
token.watch(tokens);
document.getElementById("theme").addEventListener("click", theme);
document.getElementById("zone").addEventListener("click", otherZone);
document.getElementById("help").addEventListener("click", help);
document.getElementById("views").addEventListener("click", openViews);
document.getElementById("token-button").addEventListener("click", () => token.change());
document.addEventListener("keydown", key);
document.querySelector(".skip").addEventListener("click", (event) => {
  // The address is that of the view, and not that of a place in the page.
  event.preventDefault();
  document.getElementById("main").focus();
});
addEventListener("hashchange", moved);
show();
pulse();
channels();

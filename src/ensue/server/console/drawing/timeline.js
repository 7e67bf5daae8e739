// Events and outputs on a line of time: what came when, and which events an output rests on.

import { s } from "../base/dom.js";

const ROW = 26;
const LETTER = 7.2; // the width of a letter of a lane's name, about

function sizes() {
  // Drawn as wide as there is room, so that letters have the size of the page's, also on a phone.
  const room = document.getElementById("main").clientWidth - 64;
  const width = Math.min(1200, Math.max(290, room));
  const left = width < 560 ? 96 : 150;
  return { width, left, letters: Math.floor((left - 10) / LETTER), ticks: Math.max(3, Math.floor((width - left) / 120)) };
}

export function timeline(events, outputs, { picked = () => {} } = {}) {
  // Each has `key`, `time` in milliseconds and `lane`; outputs have `causes`, keys of what they rest on.
  const all = [...events, ...outputs];
  if (!all.length) return s("svg", { class: "timeline", viewBox: "0 0 10 10", height: 0 });
  const { width, left, letters, ticks: most } = sizes();
  const low = all.reduce((least, each) => Math.min(least, each.time), Infinity);
  const high = all.reduce((most, each) => Math.max(most, each.time), -Infinity);
  const span = high - low || 1;
  const lanes = [...new Set(all.map((each) => each.lane))];
  const x = (time) => left + 20 + ((time - low) / span) * (width - left - 50);
  const y = (each) => 18 + ROW * lanes.indexOf(each.lane);
  const height = ROW * lanes.length + 40;
  const causing = new Set(outputs.flatMap((each) => each.causes));
  const drawing = s("svg", {
    class: "timeline", viewBox: `0 0 ${width} ${height}`, width, height, role: "group",
    "aria-label": `${events.length} events and ${outputs.length} outputs on a line of time`,
  });
  lanes.forEach((lane, at) => {
    const level = 18 + ROW * at;
    drawing.append(
      s("line", { class: "lane", x1: left, x2: width - 10, y1: level, y2: level }),
      s("text", { class: "lane", x: left - 8, y: level + 4 }, lane.length > letters ? `${lane.slice(0, letters - 1)}…` : lane, s("title", {}, lane)));
  });
  for (const tick of ticks(span, most)) {
    const at = x(low + tick);
    drawing.append(
      s("line", { class: "tick", x1: at, x2: at, y1: 6, y2: height - 22 }),
      s("text", { class: "tick", x: at, y: height - 8 }, words(tick)));
  }
  const byKey = new Map(all.map((each) => [each.key, each]));
  for (const output of outputs) {
    for (const key of new Set(output.causes)) {
      const cause = byKey.get(key);
      if (!cause) continue;
      const [x1, y1, x2, y2] = [x(cause.time), y(cause), x(output.time), y(output)];
      const bend = Math.abs(x2 - x1) / 3;
      drawing.append(s("path", { class: "cause", "data-of": output.key, d: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }));
    }
  }
  for (const each of events) {
    const kind = causing.has(each.key) ? "event" : "event idle";
    drawing.append(mark("circle", kind, each, { cx: x(each.time), cy: y(each), r: 5 }, picked));
  }
  for (const each of outputs) {
    const [at, level] = [x(each.time), y(each)];
    drawing.append(mark("path", "output", each, { d: `M${at} ${level - 8} L${at + 8} ${level} L${at} ${level + 8} L${at - 8} ${level} Z` }, picked));
  }
  return drawing;
}

export function pointOut(drawing, output) {
  // Show what one output rests on, and the rest behind it; with null, all alike.
  const shown = new Set(output ? [output.key, ...output.causes] : []);
  drawing.classList.toggle("chosen", Boolean(output));
  for (const each of drawing.querySelectorAll(".mark")) each.classList.toggle("shown", shown.has(each.dataset.key));
  for (const each of drawing.querySelectorAll(".cause")) each.classList.toggle("shown", Boolean(output) && each.dataset.of === output.key);
}

function mark(tag, kind, each, place, picked) {
  const made = s(tag, { ...place, class: `mark ${kind}`, tabindex: "0", role: "button", "data-key": each.key, "aria-label": each.title },
    s("title", {}, each.title));
  made.addEventListener("click", () => picked(each));
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    picked(each);
  });
  return made;
}

function ticks(span, most) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5]
    .find((each) => span / each <= most) || span / (most - 2);
  const found = [];
  for (let at = 0; at <= span + step / 1000; at += step) found.push(at);
  return found;
}

function words(milliseconds) {
  if (milliseconds === 0) return "0";
  if (milliseconds < 1e3) return `+${Math.round(milliseconds)} ms`;
  if (milliseconds < 12e4) return `+${+(milliseconds / 1e3).toFixed(2)} s`;
  if (milliseconds < 72e5) return `+${+(milliseconds / 6e4).toFixed(1)} min`;
  return `+${+(milliseconds / 36e5).toFixed(1)} h`;
}

export function marks(found, kind) {
  // CloudEvents as marks of a line of time. An id is the key, unless the caller knows a better one.
  return found.map((event) => ({
    key: event.id,
    kind,
    time: new Date(event.time).getTime(),
    lane: kind === "output" ? event.correlation : event.type,
    causes: [],
    title: `${event.type} ${event.id}\n${event.time}\n${JSON.stringify(event.data ?? null)}`,
    event,
  }));
}

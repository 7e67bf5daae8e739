// Events and outputs on a line of time: what came when, and which events an output rests on.

import { s } from "./dom.js";

const WIDTH = 900;
const ROW = 26;
const LEFT = 130;

export function timeline(events, outputs, { label = (each) => each.lane, picked = () => {} } = {}) {
  // Each has `time` in milliseconds, `id`, `lane`; outputs have `causes`, ids of events.
  const all = [...events, ...outputs];
  if (!all.length) return s("svg", { class: "timeline", viewBox: "0 0 10 10", height: 0 });
  const low = Math.min(...all.map((each) => each.time));
  const high = Math.max(...all.map((each) => each.time));
  const span = high - low || 1;
  const lanes = [...new Set(all.map(label))];
  const x = (time) => LEFT + 20 + ((time - low) / span) * (WIDTH - LEFT - 50);
  const y = (each) => 18 + ROW * lanes.indexOf(label(each));
  const height = ROW * lanes.length + 40;
  const drawing = s("svg", {
    class: "timeline", viewBox: `0 0 ${WIDTH} ${height}`, role: "img",
    "aria-label": `${events.length} events and ${outputs.length} outputs on a line of time`,
  });
  lanes.forEach((lane, at) => {
    const level = 18 + ROW * at;
    drawing.append(
      s("line", { class: "lane", x1: LEFT, x2: WIDTH - 10, y1: level, y2: level }),
      s("text", { class: "lane", x: LEFT - 8, y: level + 4 }, lane.length > 18 ? `${lane.slice(0, 17)}…` : lane));
  });
  for (const tick of ticks(span)) {
    const at = x(low + tick);
    drawing.append(
      s("line", { class: "tick", x1: at, x2: at, y1: 6, y2: height - 22 }),
      s("text", { class: "tick", x: at, y: height - 8 }, words(tick)));
  }
  const byId = new Map(events.map((each) => [each.id, each]));
  for (const output of outputs) {
    for (const id of output.causes) {
      const cause = byId.get(id);
      if (!cause) continue;
      const [x1, y1, x2, y2] = [x(cause.time), y(cause), x(output.time), y(output)];
      const bend = Math.abs(x2 - x1) / 3;
      drawing.append(s("path", { class: "cause", d: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }));
    }
  }
  for (const each of events) drawing.append(mark("circle", "event", each, { cx: x(each.time), cy: y(each), r: 5 }, picked));
  for (const each of outputs) {
    const [at, level] = [x(each.time), y(each)];
    drawing.append(mark("path", "output", each, { d: `M${at} ${level - 8} L${at + 8} ${level} L${at} ${level + 8} L${at - 8} ${level} Z` }, picked));
  }
  return drawing;
}

function mark(tag, kind, each, place, picked) {
  const made = s(tag, { ...place, class: `mark ${kind}`, tabindex: "0", role: "button" }, s("title", {}, each.title || each.id));
  made.addEventListener("click", () => picked(each));
  made.addEventListener("keydown", (event) => event.key === "Enter" && picked(each));
  return made;
}

function ticks(span) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5]
    .find((each) => span / each <= 7) || span / 5;
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
  // CloudEvents as marks of a line of time.
  return found.map((event) => ({
    id: event.id,
    time: new Date(event.time).getTime(),
    lane: kind === "output" ? event.correlation : event.type,
    causes: (event.causes || "").split(",").filter(Boolean),
    title: `${event.type} ${event.id}\n${event.time}\n${JSON.stringify(event.data ?? null)}`,
    event,
  }));
}

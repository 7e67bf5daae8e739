// Lines over the last seconds, drawn as wide as their place, with labels in letters of the page.

import { h, number, s } from "../base/dom.js";
import { span } from "../base/times.js";

const HEIGHT = 170;
const LEFT = 48;
const RIGHT = 12;

export function plot({ title, unit, samples, lines, width }) {
  // `lines` are `[name, of]`: what a line is called, and its value in a sample, or null.
  const values = lines.flatMap(([, of]) => samples.map(of)).filter((each) => each !== null);
  const highest = Math.max(0, ...values);
  const most = nice(Math.max(unit === "ms" ? 1e-3 : 4, highest));
  const x = (at) => LEFT + (at * (width - LEFT - RIGHT)) / Math.max(1, samples.length - 1);
  const y = (value) => HEIGHT - 28 - ((HEIGHT - 44) * value) / most;
  const drawing = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, class: "plot", role: "img", "aria-label": `${title}, at most ${number(highest)} ${unit}` });
  for (const share of [0, 0.5, 1]) {
    const level = y(most * share);
    drawing.append(
      s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: level, y2: level }),
      s("text", { class: "axis", x: LEFT - 6, y: level + 4 }, number(most * share)));
  }
  lines.forEach(([, of], at) => {
    drawing.append(s("path", { class: `line line-${at}`, d: path(samples.map(of), x, y) }));
  });
  drawing.append(
    s("text", { class: "axis end", x: LEFT, y: HEIGHT - 8 }, `${span(samples.length)} ago`),
    s("text", { class: "axis now", x: width - RIGHT, y: HEIGHT - 8 }, "now"));
  const last = samples[samples.length - 1];
  return h("section.panel", h("h2", title, h("span.note", ` ${unit}`)), drawing,
    h("p.legend", lines.map(([name, of], at) => h(`span.series.series-${at}`, `${name} ${last ? number(of(last)) : "–"}`))));
}

function path(values, x, y) {
  let found = "";
  let pen = "M";
  values.forEach((value, place) => {
    if (value === null) { pen = "M"; return; }
    found += `${pen}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  });
  return found || "M0 0";
}

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value);
}

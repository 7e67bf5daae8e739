// How the server does: throughput, latency, queues, the history behind; changes of rules.

import { ask } from "./api.js";
import { ago, fill, h, heads, number, s, span } from "./dom.js";

const WIDTH = 460;
const HEIGHT = 150;

export function system(main) {
  const plots = h("div.plots");
  const facts = h("section.panel");
  const audit = h("tbody");
  let stopped = false;

  async function look() {
    if (stopped) return;
    try {
      const found = await ask("/v1/figures?seconds=300");
      draw(found);
    } catch (error) {
      fill(facts, h("p.problem", error.message));
    }
    setTimeout(look, 1000);
  }

  function draw(found) {
    const samples = found.samples;
    const told = [
      ["version", found.version], ["up for", span(found.uptime)], ["events", number(found.events)],
      ["outputs", number(found.outputs)], ["late", number(found.late)], ["rejected", number(found.rejected)],
      ["sent again", number(found.duplicates)], ["subscribers", number(found.subscribers)],
      ["positions", `${number(found.first_position)} to ${number(found.position)}`],
    ];
    fill(facts, h("dl.facts.many", told.map(([name, value]) => h("div", h("dt", name), h("dd", value)))));
    fill(plots,
      plot("Throughput", "a second", samples, [["events", "events", (each) => each.events], ["outputs", "outputs", (each) => each.outputs], ["delivered", "delivered", (each) => each.delivered]]),
      plot("From publishing to acknowledgement", "ms", samples, [["median", "median", (each) => each.median_ms], ["p99", "99 of 100 within", (each) => each.p99_ms]]),
      plot("Waiting to be read", "events", samples, [["waiting", "waiting", (each) => each.waiting]]),
      plot("Journal entries that the history lacks", "entries", samples, [["lag", "behind", (each) => each.history_lag]]));
  }

  async function changes() {
    try {
      const found = await ask("/v1/audit?limit=20");
      fill(audit, found.length ? found.map((each) => h("tr", h("td", ago(each.at)), h("td", each.author), h("td", each.action), h("td", each.subject), h("td.note", each.detail))) : h("tr", h("td.note", "none yet")));
    } catch (error) {
      fill(audit, h("tr", h("td.note", error.message)));
    }
  }

  fill(main, plots, facts, h("section.panel", h("h2", "Changes"), h("div.scroll", h("table.changes", heads("when", "who", "what", "library", "more"), audit))));
  look();
  changes();
  return () => { stopped = true; };
}

function plot(title, unit, samples, lines) {
  const values = lines.flatMap(([, , of]) => samples.map(of)).filter((each) => each !== null);
  const most = nice(Math.max(unit === "ms" ? 1e-3 : 4, ...values));
  const x = (at) => 44 + (at * (WIDTH - 54)) / Math.max(1, samples.length - 1);
  const y = (value) => HEIGHT - 24 - ((HEIGHT - 40) * value) / most;
  const drawing = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", role: "img", "aria-label": `${title}, at most ${number(Math.max(0, ...values))} ${unit}` });
  for (const share of [0, 0.5, 1]) {
    const level = y(most * share);
    drawing.append(s("line", { class: "grid", x1: 44, x2: WIDTH - 10, y1: level, y2: level }), s("text", { class: "axis", x: 38, y: level + 4 }, number(most * share)));
  }
  lines.forEach(([, , of], at) => {
    let path = "";
    let pen = "M";
    samples.forEach((each, place) => {
      const value = of(each);
      if (value === null) { pen = "M"; return; }
      path += `${pen}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
    });
    drawing.append(s("path", { class: `line line-${at}`, d: path || "M0 0" }));
  });
  drawing.append(s("text", { class: "axis end", x: 44, y: HEIGHT - 6 }, `${span(samples.length)} ago`), s("text", { class: "axis now", x: WIDTH - 10, y: HEIGHT - 6 }, "now"));
  const last = samples[samples.length - 1];
  return h("section.panel", h("h2", title, h("span.note", ` ${unit}`)), drawing,
    h("p.legend", lines.map(([, name, of], at) => h(`span.series.series-${at}`, `${name} ${last ? number(of(last)) : "–"}`))));
}

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value);
}

// One output, opened to the events that caused it.

import { to } from "../base/address.js";
import { ask } from "../base/api.js";
import { counted, fill, h, json, number, plain, scrolled, told } from "../base/dom.js";
import { exactly, stamp } from "../base/times.js";
import { trouble } from "../base/troubles.js";
import { marks, timeline } from "../drawing/timeline.js";
import { eventLink } from "./event.js";

export function output(main, position) {
  const place = h("section.panel", h("p.note", "looking for it …"));
  const picked = h("section.panel", { hidden: true });
  const reasons = h("div.reasons", { role: "status" });
  const path = `/v1/outputs/${encodeURIComponent(position)}`;
  fill(main, h("p", h("a", { href: "#/outputs" }, "← all outputs")), place, picked);

  function pick(mark) {
    picked.hidden = false;
    const isEvent = mark.kind !== "output";
    fill(picked, h("h2", mark.event.type, " ", isEvent ? eventLink(mark.event.id, mark.event.id, mark.event.source) : h("span.note", mark.event.id)), json(mark.event));
  }

  ask(path).then((found) => {
    show(found, found.causes);
    return why(found);
  }).catch((error) => fill(place, h("h1", `Output ${position}`), trouble(error)));

  async function why(found) {
    // The output names what is bound; the whole of it is found by reading the events again.
    try {
      const reason = await ask(`${path}/why`);
      const causes = new Map([...found.causes, ...reason.causes].filter((each) => each.event).map((each) => [each.id, each]));
      if (reason.why) show(found, [...causes.values()].sort((a, b) => new Date(a.event.time) - new Date(b.event.time)), reason);
      else fill(reasons, h("p.note", `These are the events that the output names. The latest ${number(reason.read)} events before it do not tell more: its first event came earlier, or the rule has changed since.`));
    } catch (error) {
      fill(reasons, h("p.note", told(error.message)));
    }
  }

  function cause(each) {
    const isOutput = each.kind === "output" && each.seq;
    return h("li",
      h("button.quiet", { "data-row": true, onclick: () => pick({ kind: each.kind, event: each.event }) },
        h("span.time", stamp(each.event.time)), ` ${each.event.type} `, h("code", JSON.stringify(each.event.data ?? null))),
      " ", isOutput ? h("a", { href: to("outputs", each.seq) }, "what caused this") : eventLink(each.event.id, each.event.id, each.event.source),
      each.part ? h("span.note", ` as ${plain(each.part)}`) : null);
  }

  function show(found, causes, reason) {
    const there = causes.filter((each) => each.event);
    const event = found.event;
    const gone = causes.length - there.length;
    const by = found.trigger === "timer" ? "the clock" : eventLink(found.trigger);
    const [drawn] = marks([event], "output");
    drawn.key = "this output";
    drawn.causes = causes.map((each) => each.id);
    fill(place,
      h("h1", event.type, h("span.note", " by "), h("a", { href: to("rules", found.library, event.correlation) }, event.correlation)),
      h("dl.facts",
        h("dt", "completed by"), h("dd", by, h("span.note", `, ${exactly(event.time)}`)),
        event.partitionkey !== undefined ? [h("dt", "key"), h("dd", h("a", { href: to("outputs", { key: event.partitionkey }) }, event.partitionkey))] : null,
        event.labels ? [h("dt", "labels"), h("dd", event.labels)] : null,
        h("dt", "caused by"), h("dd", counted(there.length, "event"), gone ? h("span.note", `, and ${gone} that ${gone === 1 ? "is" : "are"} no longer kept`) : null)),
      scrolled("the output and its events on a line of time", timeline(marks(there.map((each) => each.event), "event"), [drawn], { picked: pick })),
      h("h2", "What caused it"),
      h("ol.causes", there.map(cause)),
      reasons,
      h("h2", "The output"), json(event));
    fill(reasons, reason
      ? reason.why.split("\n").slice(1).filter((line) => !line.includes("was matched by")).map((line) => h("p.note", plain(line).trim()))
      : h("p.note", "reading the events before it again …"));
  }
}

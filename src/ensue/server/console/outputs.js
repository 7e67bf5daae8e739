// What rules have put out, the latest first; one of them opened to the events that caused it.

import { ask } from "./api.js";
import { go } from "./app.js";
import { clock, counted, fill, h, heads, json, later, notice, number, opens } from "./dom.js";
import { marks, timeline } from "./timeline.js";

export function outputs(main, { parts, query }) {
  return parts.length && parts[0] ? one(main, parts[0]) : list(main, query);
}

function list(main, query) {
  const wanted = { library: query.get("library") || "", correlation: query.get("correlation") || "", key: query.get("key") || "" };
  const body = h("tbody");
  const more = h("button.quiet", { hidden: true, onclick: () => load(last) }, "show earlier ones");
  let last = null;
  const fields = Object.keys(wanted).map((name) => h("input", {
    type: "search", value: wanted[name], placeholder: name === "correlation" ? "rule" : name, "aria-label": name,
    oninput: later(300, (event) => { wanted[name] = event.target.value.trim(); load(null); }),
  }));

  async function load(before) {
    go("outputs", wanted);
    const given = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    given.set("limit", "60");
    if (before) given.set("before", before);
    try {
      const found = await ask(`/v1/outputs?${given}`);
      if (!before) fill(body);
      body.append(...found.outputs.map(row));
      last = found.outputs.at(-1)?.position;
      more.hidden = !found.more;
      if (!body.children.length) fill(body, h("tr", h("td.note", { colSpan: 5 }, "No output yet. Rules put one out when they fire.")));
    } catch (error) {
      fill(body, h("tr", h("td.problem", { colSpan: 5 }, error.message)));
    }
  }

  function row(each) {
    const open = () => { location.hash = `#/outputs/${each.position}`; };
    return h("tr", opens(open),
      h("td.time", clock(each.event.time)),
      h("td.type", each.event.type),
      h("td", h("a", { href: `#/rules/${encodeURIComponent(each.library)}/${encodeURIComponent(each.correlation)}` }, each.correlation), h("span.note", ` in ${each.library}`)),
      h("td.source", each.key ?? ""),
      h("td.data", JSON.stringify(each.event.data ?? null)));
  }

  fill(main,
    h("div.bar", ...fields, h("button", { onclick: () => load(null) }, "refresh")),
    h("div.scroll", h("table.listed", heads("time", "type", "rule", "key", "data"), body)),
    more);
  load(null);
}

function one(main, position) {
  const place = h("section.panel", h("p.note", "looking for it …"));
  const picked = h("section.panel", { hidden: true });
  const reasons = h("div.reasons", { role: "status" });
  fill(main, h("p", h("a", { href: "#/outputs" }, "← all outputs")), place, picked);
  function pick(mark) {
    picked.hidden = false;
    fill(picked, h("h2", mark.event.type, h("span.note", ` ${mark.event.id}`)), json(mark.event));
  }
  ask(`/v1/outputs/${encodeURIComponent(position)}`).then((found) => {
    show(found, found.causes);
    return why(found);
  }).catch((error) => { fill(place, h("p.problem", error.message)); notice(error.message, "bad"); });

  async function why(found) {
    // The output names what is bound; the whole of it is found by reading the events again.
    try {
      const reason = await ask(`/v1/outputs/${encodeURIComponent(position)}/why`);
      const causes = new Map([...found.causes, ...reason.causes].filter((each) => each.event).map((each) => [each.id, each]));
      if (reason.why) show(found, [...causes.values()].sort((a, b) => new Date(a.event.time) - new Date(b.event.time)), reason);
      else fill(reasons, h("p.note", `These are the events that the output names. The latest ${number(reason.read)} events before it do not tell more: it has begun earlier, or the rule has changed since.`));
    } catch (error) {
      fill(reasons, h("p.note", error.message));
    }
  }

  function show(found, causes, reason) {
    const known = causes.filter((each) => each.event);
    const output = found.event;
    const gone = causes.length - known.length;
    const by = found.trigger === "timer" ? "the clock" : found.trigger;
    const [drawn] = marks([output], "output");
    drawn.key = "this output";
    drawn.causes = causes.map((each) => each.id);
    fill(place,
      h("h1", output.type, h("span.note", ` by ${output.correlation}`)),
      h("dl.facts",
        h("dt", "completed by"), h("dd", by, h("span.note", ` at ${clock(output.time)}`)),
        output.partitionkey !== undefined ? [h("dt", "key"), h("dd", output.partitionkey)] : null,
        output.labels ? [h("dt", "labels"), h("dd", output.labels)] : null,
        h("dt", "causes"), h("dd", counted(known.length, "event"), gone ? h("span.note", `, and ${gone} that the journal no longer holds`) : null)),
      h("div.scroll", timeline(marks(known.map((each) => each.event), "event"), [drawn], { picked: pick })),
      h("h2", "What caused it"),
      h("ol.causes", known.map((each) => h("li",
        h("button.quiet", { "data-row": true, onclick: () => pick({ event: each.event }) }, h("span.time", clock(each.event.time)), ` ${each.event.type} `, h("code", JSON.stringify(each.event.data ?? null))),
        each.part ? h("span.note", ` as ${each.part.replaceAll("`", "")}`) : null,
        each.kind === "output" && each.seq ? h("a", { href: `#/outputs/${each.seq}` }, " what caused this") : null))),
      reasons,
      h("h2", "The output"), json(output),
      h("p", h("a", { href: `#/rules/${encodeURIComponent(found.library)}/${encodeURIComponent(output.correlation)}` }, "the rule")));
    fill(reasons, reason ? reason.why.split("\n").slice(1).filter((line) => !line.includes("was matched by")).map((line) => h("p.note", line.trim().replaceAll("`", ""))) : h("p.note", "reading the events before it again …"));
  }
}

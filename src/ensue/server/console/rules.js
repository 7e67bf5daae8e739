// Rules that run: how often, how fast, when last; one of them with its machine and its keys.

import { ask } from "./api.js";
import { go } from "./app.js";
import { ago, clock, fill, h, heads, later, number, opens, refill, s } from "./dom.js";
import { highlighted } from "./editor.js";
import { legend, machine, occupy } from "./machine.js";

export function rules(main, { parts, query }) {
  return parts.length > 1 ? one(main, parts[0], parts[1], query) : list(main);
}

function address(each) {
  return `#/rules/${encodeURIComponent(each.library)}/${encodeURIComponent(each.rule)}`;
}

function list(main) {
  const body = h("tbody");
  const past = new Map();
  let stopped = false;

  async function look() {
    if (stopped) return;
    try {
      const found = await ask("/v1/rules");
      refill(body, found.length ? found.map(row) : h("tr", h("td.note", { colSpan: 5 },
        "No rule runs. Write one in the ", h("a", { href: "#/playground" }, "playground"), ".")));
    } catch (error) {
      fill(body, h("tr", h("td.problem", { colSpan: 5 }, error.message)));
    }
    setTimeout(look, 1000);
  }

  function row(each) {
    const name = `${each.library}/${each.rule}`;
    const counts = past.get(name) || [];
    counts.push(each.outputs);
    past.set(name, counts.slice(-61));
    const open = () => { location.hash = address(each); };
    return h("tr", opens(open),
      h("td", h("a", { href: address(each) }, each.rule), h("span.note", ` in ${each.library}`)),
      h("td.number", number(each.outputs)),
      h("td.number", spark(counts), ` ${number(each.rate * 60)} /min`),
      h("td", each.last
        ? [ago(each.last.time), each.last.key !== null ? h("span.note", ` for ${each.last.key}`) : null, " ", h("a", { href: `#/outputs/${each.last.position}` }, "why")]
        : h("span.note", "never yet")),
      h("td.number", each.without_key ? `${number(each.without_key)} without a key` : ""));
  }

  fill(main, h("div.scroll", h("table.rules", heads("rule", "#outputs", "#rate", "last match", "#left out"), body)));
  look();
  return () => { stopped = true; };
}

function spark(counts) {
  const steps = counts.slice(1).map((each, at) => each - counts[at]);
  const most = Math.max(1, ...steps);
  const points = steps.map((each, at) => `${(at * 60) / Math.max(1, steps.length - 1)},${16 - (14 * each) / most}`);
  return s("svg", { viewBox: "0 0 60 18", class: "spark", "aria-hidden": "true" }, s("polyline", { points: points.join(" ") }));
}

function one(main, library, rule, query) {
  const path = `/v1/libraries/${encodeURIComponent(library)}/rules/${encodeURIComponent(rule)}`;
  const head = h("section.panel");
  const picture = h("section.panel", h("h2", "The machine, with its keys"));
  const text = h("section.panel");
  const reasons = h("div", { role: "status" });
  const keys = h("datalist", { id: "keys" });
  const key = h("input", {
    type: "search", list: "keys", value: query.get("key") || "", placeholder: "any key",
    "aria-label": "key", id: "why-key", oninput: later(400, why),
  });
  const recent = h("tbody");
  let drawing = null;
  let drawn = null;
  let stopped = false;

  async function look() {
    if (stopped) return;
    try {
      const found = await ask(path);
      refill(head,
        h("h1", rule, h("span.note", ` in ${library}, version ${found.version}`)),
        h("dl.facts",
          h("dt", "outputs"), h("dd", number(found.outputs)),
          h("dt", "rate"), h("dd", `${number(found.rate * 60)} a minute`),
          h("dt", "keys under way"), h("dd", number(found.keys)),
          h("dt", "last match"), h("dd", found.last ? [ago(found.last.time), " ", h("a", { href: `#/outputs/${found.last.position}` }, "why")] : "never yet"),
          h("dt", "form"), h("dd", found.form, h("span.note", `: ${words(found.why_form)}`))));
      if (drawn !== found.version) {
        drawn = found.version;
        fill(text, h("h2", "The rule"), h("pre.code", highlighted(found.text)),
          h("p", h("a", { href: `#/libraries/${encodeURIComponent(library)}` }, "change it")));
        drawing = found.svg ? machine(found.svg) : h("p.note", found.form === "memory" ? `There is no machine to draw, since the rule runs from the events that it remembers: ${words(found.why_form)}.` : "The machine is too large to be drawn.");
        fill(picture, h("h2", "The machine, with its keys"), h("div.scroll", drawing), found.svg ? legend(found.keys) : null);
      }
      if (found.svg) {
        occupy(drawing, found.states);
        const badge = picture.querySelector(".badge");
        if (badge) badge.textContent = number(found.keys);
      }
      fill(keys, found.some_keys.map((each) => h("option", { value: each })));
    } catch (error) {
      fill(head, h("p.problem", error.message));
    }
    setTimeout(look, 1000);
  }

  async function why() {
    if (stopped) return;
    go(address({ library, rule }).slice(2), { key: key.value.trim() });
    fill(reasons, h("p.note", "reading the journal again …"));
    const given = key.value.trim() ? `?key=${encodeURIComponent(key.value.trim())}` : "";
    try {
      const found = await ask(`${path}/why${given}`);
      fill(reasons,
        found.reasons.map((each) => h("article.reason",
          h("h3", each.key === null ? rule : `key ${each.key}`),
          each.waits_for
            ? h("p", "waits for ", h("strong", words(each.waits_for)), each.before ? `, no later than ${clock(each.before)}` : "")
            : h("p", each.started ? "it is finished, and puts nothing out any more" : "no event that it reads has come"),
          h("ul", each.done.map((part) => h("li.done", `${words(part.part)} by ${part.event ?? "the clock"}, ${clock(part.time)}`))),
          h("ul", each.left.map((part) => h("li.left", `${words(part.part)} by ${part.event ?? "the clock"} has left the window`))))),
        h("p.note", `from the latest ${number(found.read)} events${found.since ? `, since ${clock(found.since)}` : ""}`));
    } catch (error) {
      fill(reasons, h("p.problem", error.message));
    }
  }

  async function outputs() {
    if (stopped) return;
    try {
      const found = await ask(`/v1/outputs?library=${encodeURIComponent(library)}&correlation=${encodeURIComponent(rule)}&limit=8`);
      refill(recent, found.outputs.length ? found.outputs.map((each) => h("tr",
        h("td.time", clock(each.event.time)), h("td.source", each.key ?? ""),
        h("td.data", JSON.stringify(each.event.data ?? null)),
        h("td", h("a", { href: `#/outputs/${each.position}` }, "causes")))) : h("tr", h("td.note", "none yet")));
    } catch { /* told above */ }
    setTimeout(outputs, 3000);
  }

  fill(main,
    h("p", h("a", { href: "#/rules" }, "← all rules")), head, picture,
    h("div.columns.wide-left", text,
      h("section.panel", h("h2", "Why has it not fired?"),
        h("p.note", "For one key, or for those that have come nearest."),
        h("div.bar", key, keys, h("button", { onclick: why }, "ask")), reasons)),
    h("section.panel", h("h2", "Latest outputs"), h("div.scroll", h("table", heads("time", "key", "data", ""), recent))));
  look();
  outputs();
  if (query.has("key")) why();
  return () => { stopped = true; };
}

function words(text) {
  return text.replaceAll("`", "");
}

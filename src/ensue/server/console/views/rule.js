// One rule: what it counts, its machine with the keys in it, its text, and why it has not fired.

import { put, to } from "../base/address.js";
import { ask } from "../base/api.js";
import { counted, fill, h, heads, later, number, plain, refill, scrolled } from "../base/dom.js";
import { ago, clock, exactly, stamp, zone } from "../base/times.js";
import { tell, trouble } from "../base/troubles.js";
import { legend, machine, occupy } from "../drawing/machine.js";
import { highlighted } from "../editing/editor.js";
import { eventLink } from "./event.js";

const FORMS = {
  memory: "from the events that it remembers",
  linear: "as a machine, with the times of its events",
  table: "as a machine, one step an event",
};

export function rule(main, library, name, query) {
  const path = `/v1/libraries/${encodeURIComponent(library)}/rules/${encodeURIComponent(name)}`;
  const head = h("section.panel", h("h1", name));
  const picture = h("section.panel", { hidden: true });
  const text = h("section.panel", { hidden: true });
  const reasons = h("div", { role: "status" });
  const asked = h("section.panel", { id: "why-not" });
  const keys = h("datalist", { id: "keys" });
  const key = h("input", {
    type: "search", list: "keys", value: query.get("key") || "", placeholder: "any key",
    "aria-label": "key", id: "why-key", oninput: later(400, why),
  });
  const recent = h("div");
  let drawing = null;
  let drawn = null;
  let isFormTold = false;
  let stopped = false;

  async function look() {
    if (stopped) return;
    try {
      show(await ask(path));
    } catch (error) {
      tell(head, error, h("h1", name, h("span.note", ` in ${library}`)));
    }
    setTimeout(look, 1000);
  }

  function show(found) {
    refill(head,
      h("h1", name, h("span.note", " in "), h("a", { href: to("libraries", library) }, library), h("span.note", `, version ${found.version}`)),
      h("dl.facts",
        h("dt", "outputs"), h("dd", found.outputs ? h("a", { href: to("outputs", { library, correlation: name }) }, number(found.outputs)) : "0"),
        h("dt", "rate"), h("dd", `${number(found.rate * 60)} a minute`),
        h("dt", "last output"), h("dd", found.last
          ? [ago(found.last.time), " ", h("a", { href: to("outputs", found.last.position) }, "why")]
          : ["never yet ", h("button.quiet", { onclick: whyNot }, "why not")]),
        h("dt", "keys in progress"), h("dd", number(found.keys)),
        h("dt", "runs"), h("dd", FORMS[found.form] ?? found.form, " ", h("button.quiet", { onclick: () => { isFormTold = !isFormTold; show(found); }, "aria-expanded": String(isFormTold) }, "why so"),
          isFormTold ? h("p.note", `${plain(found.why_form)}.`) : null)));
    if (drawn !== found.version) draw(found);
    if (found.svg) {
      occupy(drawing, found.states);
      const badge = picture.querySelector(".badge");
      if (badge) badge.textContent = number(found.keys);
    }
    fill(keys, found.some_keys.map((each) => h("option", { value: each })));
  }

  function draw(found) {
    drawn = found.version;
    picture.hidden = text.hidden = false;
    fill(text, h("h2", "The rule"), h("pre.code", { tabindex: "0" }, highlighted(found.text)),
      h("p", h("a", { href: to("libraries", library) }, "change it")));
    const none = found.form === "memory"
      ? `There is no machine to draw, since the rule runs from the events that it remembers: ${plain(found.why_form)}.`
      : "The machine is too large to be drawn.";
    drawing = found.svg ? machine(found.svg) : h("p.note", none);
    fill(picture, h("h2", "The machine, with its keys"), scrolled("the machine", drawing), found.svg ? legend(found.keys) : null);
  }

  function whyNot() {
    asked.scrollIntoView({ block: "nearest" });
    key.focus({ preventScroll: true });
    why();
  }

  async function why() {
    if (stopped) return;
    const wanted = key.value.trim();
    put(to("rules", library, name, wanted ? { key: wanted } : { why: "not" }));
    fill(reasons, h("p.note", "reading the latest events again …"));
    try {
      const found = await ask(`${path}/why${wanted ? `?key=${encodeURIComponent(wanted)}` : ""}`);
      fill(reasons, found.reasons.map((each) => reason(each, wanted)),
        h("p.note", found.read
          ? ["According to the latest ", counted(found.read, "event"), found.since ? [", from ", stamp(found.since, exactly(found.since)), " on"] : null, found.whole ? "." : "; there was no time for the rest."]
          : "No event has come yet."));
    } catch (error) {
      fill(reasons, trouble(error));
    }
  }

  function reason(each, wanted) {
    const title = each.key === null ? (wanted ? `key ${wanted}` : "Any key") : ["key ", h("a", { href: to("outputs", { key: each.key }) }, each.key)];
    return h("article.reason",
      h("h3", title),
      each.waits_for
        ? h("p", "waits for ", h("strong", plain(each.waits_for)), each.before ? [", no later than ", stamp(each.before)] : "")
        : h("p", each.started ? "is finished: it puts nothing out any more." : "has not begun: none of the events that the rule begins with has come."),
      h("ul", each.done.map((part) => h("li.done", step(part)))),
      h("ul", each.left.map((part) => h("li.left", step(part), " is too long ago to count"))));
  }

  function step(part) {
    return [`${plain(part.part)} by `, part.event ? eventLink(part.event) : "the clock", ", ", stamp(part.time, clock(part.time))];
  }

  async function outputs() {
    if (stopped) return;
    try {
      const found = await ask(`/v1/outputs?${new URLSearchParams({ library, correlation: name, limit: 8 })}`);
      refill(recent, found.outputs.length
        ? scrolled("latest outputs", h("table", heads(`time, ${zone()}`, "key", "data", "more"), h("tbody", found.outputs.map((each) => h("tr",
          h("td.time", stamp(each.event.time)), h("td.source", each.key ?? ""),
          h("td.data", JSON.stringify(each.event.data ?? null)),
          h("td", h("a", { href: to("outputs", each.position) }, "causes")))))))
        : h("p.note", "None yet."));
    } catch { /* told above */ }
    setTimeout(outputs, 3000);
  }

  fill(asked, h("h2", "Why has it not fired?"),
    h("p.note", "For one key, or for the keys that have come nearest to an output."),
    h("div.bar", key, keys, h("button", { onclick: why }, "ask")), reasons);
  fill(main,
    h("p", h("a", { href: "#/rules" }, "← all rules")), head, picture,
    h("div.columns.wide-left", text, asked),
    h("section.panel", h("h2", "Latest outputs"), recent));
  look();
  outputs();
  if (query.has("key")) why();
  else if (query.has("why")) whyNot();
  return () => { stopped = true; };
}

// The playground: a rule and some events side by side, in virtual time; what follows, at once.

import { ask } from "./api.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { counted, fill, h, json, later, notice } from "./dom.js";
import { machine } from "./machine.js";
import { pack, unpack } from "./share.js";
import { marks, pointOut, timeline } from "./timeline.js";
import { copy } from "./views.js";

const MOST_LISTED = 200;

function plain(text) {
  // Names without their marks, and virtual times as the seconds in which they are written.
  return text.trim().replaceAll("`", "").replace(/1970-01-(\d\d)T(\d\d):(\d\d):(\d\d(?:\.\d+)?)Z/g,
    (_, day, hours, minutes, seconds) => `${+(((+day - 1) * 24 + +hours) * 3600 + +minutes * 60 + +seconds).toFixed(6)}\u00a0s`);
}

export function playground(main, { query }) {
  let abort = new AbortController();
  const run = later(250, play);
  const changed = () => { remember(); run(); };
  // On a phone what follows is below: the nearer, the better.
  const isNarrow = matchMedia("(max-width: 44rem)").matches;
  const rules = new Editor("rules", "", changed, { rows: isNarrow ? 14 : 17 });
  const events = new Editor("events", "", changed, { rules: false, rows: isNarrow ? 9 : 14 });
  const until = h("input", { size: "8", placeholder: "last event", "aria-label": "time at the end", id: "until", oninput: changed });
  const choose = h("select", { "aria-label": "examples", onchange: () => take(EXAMPLES[choose.selectedIndex]) },
    EXAMPLES.map((each) => h("option", each.name)));
  const counts = h("h2", { role: "status" });
  const follows = h("div");
  const result = h("section.panel.result", counts, follows);
  const waiting = h("section.panel");
  const picture = h("section.panel");

  function now() {
    return { library: rules.text, events: events.text, until: until.value };
  }

  function remember() {
    sessionStorage.setItem("ensue-playground", JSON.stringify(now()));
  }

  function take(given) {
    if (typeof given?.library !== "string") throw new TypeError("no rules");
    rules.text = given.library;
    events.text = String(given.events ?? "");
    until.value = String(given.until ?? "");
    changed();
  }

  async function play() {
    abort.abort();
    abort = new AbortController();
    const body = { library: rules.text, events: events.text, until: until.value.trim() || null };
    try {
      show(await ask("/v1/playground", { method: "POST", body, signal: abort.signal }));
    } catch (error) {
      if (error.name !== "AbortError") { fill(counts, "Nothing runs"); fill(follows, h("p.problem", error.message)); }
    }
  }

  function show(found) {
    rules.find(found.diagnostics);
    events.find(found.problems.map((each) => ({
      line: each.line, column: 1, width: 200, severity: "error", message: each.problems.join("; "), hint: null,
    })));
    const wrong = found.diagnostics.some((each) => each.severity === "error");
    fill(counts, wrong ? "Nothing runs yet" : counted(found.outputs.length, "output"));
    fill(follows,
      wrong ? h("p.note", "Correct the marks in the rules; what follows appears here.") : null,
      found.late ? h("p.note", `${found.late} came too late`) : null,
      story(found));
    fill(waiting, h("h2", "What rules still wait for"),
      found.waiting.map((each) => h("p.reason", each.text.split("\n").map((line, at) => h(at ? "span.line.note" : "span.line", plain(line))))));
    fill(picture, h("h2", found.machines.length === 1 ? "The machine" : "The machines"),
      found.machines.map((each) => h("figure", h("figcaption", each.rule, h("span.note", ` ${each.form}`)),
        each.svg ? h("div.scroll", machine(each.svg)) : h("p.note", "too large to be drawn, or run from memory"))));
  }

  function story(found) {
    // All events of the run, and the outputs; one of them opened shows why, there and in words.
    const keyed = (kind) => (mark, at) => ({ ...mark, key: `${kind}:${at}`, at });
    const all = marks(found.events.map((each) => each.event), "event").map(keyed("event"));
    const shown = found.outputs.slice(0, MOST_LISTED);
    const made = marks(shown.map((each) => each.event), "output").map(keyed("output"));
    made.forEach((mark, at) => {
      mark.causes = shown[at].causes.filter((each) => each.number !== null).map((each) => `${each.kind}:${each.number}`);
    });
    const picked = h("div.picked", { role: "status" });
    const drawing = timeline(all, made, { picked: (mark) => pick(mark) });
    const items = shown.map((each, at) => h("details", {
      ontoggle: (event) => {
        if (event.target.open) open(at);
        else if (opened === at) open(null);
      },
    },
    h("summary", { "data-row": true }, h("strong", each.event.type), ` at ${each.seconds} s `, h("code", JSON.stringify(each.event.data ?? null)),
      h("span.note", ` by ${each.event.correlation}`)),
    h("p.note", each.why.split("\n").slice(1).map((line) => h("span.line", plain(line))))));
    let opened = null;

    function open(at) {
      opened = at;
      items.forEach((item, number) => { item.open = number === at; });
      pointOut(drawing, at === null ? null : made[at]);
      if (at !== null) fill(picked);
    }

    function pick(mark) {
      if (mark.kind === "output") {
        open(opened === mark.at ? null : mark.at);
        if (opened !== null) items[opened].scrollIntoView({ block: "nearest" });
        return;
      }
      const led = made.filter((each) => each.causes.includes(mark.key)).map((each) => `${each.event.type} at ${shown[each.at].seconds} s`);
      const words = led.length ? `led to ${led.slice(0, 3).join(", ")}${led.length > 3 ? ` and ${led.length - 3} more` : ""}` : "led to no output";
      fill(picked, h("p", h("strong", mark.event.type), ` at ${found.events[mark.at].seconds} s, line ${found.events[mark.at].line}`, h("span.note", `: ${words}`)), json(mark.event));
    }

    if (made.length === 1) open(0);
    return [
      h("div.scroll", drawing),
      all.length ? h("p.note.signs", h("span.full", "led to an output"), h("span.hollow", "did not"), h("span.fired", "an output: open it to see why")) : null,
      picked,
      h("ol.outputs", items.map((item) => h("li", item))),
      found.outputs.length > shown.length ? h("p.note", `and ${found.outputs.length - shown.length} more, which are not drawn`) : null,
    ];
  }

  async function share() {
    const link = `${location.origin}${location.pathname}#/playground?s=${await pack(now())}`;
    history.replaceState(null, "", link);
    copy(link, "a link to this playground");
  }

  async function put() {
    const name = prompt("Put these rules on the server, under the name:", "mine");
    if (!name) return;
    try {
      const done = await ask(`/v1/libraries/${encodeURIComponent(name)}`, { method: "PUT", body: rules.text, type: "text/plain" });
      notice(`${name}, version ${done.version}, runs from now on`);
      location.hash = "#/rules";
    } catch (error) {
      if (error.document?.diagnostics) rules.find(error.document.diagnostics);
      notice(error.message, "bad");
    }
  }

  fill(main,
    h("div.bar", h("label", "example ", choose), h("span.grow"),
      h("button", { onclick: share, id: "share" }, "copy a link"), h("button.strong", { onclick: put, id: "put" }, "put on the server")),
    h("div.columns.wide-left",
      h("section", h("h2", "Rules"), rules.element),
      h("section", h("h2", "Events"), events.element, h("label.row", "the clock goes on to ", until, " s"))),
    result, picture, waiting);

  (async () => {
    const shared = query.get("s");
    const kept = sessionStorage.getItem("ensue-playground");
    try {
      take(shared ? await unpack(shared) : kept ? JSON.parse(kept) : EXAMPLES[0]);
    } catch {
      notice("the link cannot be read; here is an example instead", "bad");
      take(EXAMPLES[0]);
    }
  })();
  return () => abort.abort();
}

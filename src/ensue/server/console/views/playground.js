// The playground: a rule and some events side by side, in virtual time; what follows, at once.

import { put as address } from "../base/address.js";
import { ask } from "../base/api.js";
import { counted, fill, h, json, later, notice, scrolled, told, unseen } from "../base/dom.js";
import { copy } from "../base/saved.js";
import { clock } from "../base/times.js";
import { machine } from "../drawing/machine.js";
import { marks, pointOut, timeline } from "../drawing/timeline.js";
import { Draft } from "../editing/drafts.js";
import { Editor } from "../editing/editor.js";
import { EXAMPLES } from "../editing/examples.js";
import { askForName, putInForce } from "../editing/putting.js";
import { pack, unpack } from "../editing/share.js";
import { Undo } from "../editing/undo.js";

const MOST_LISTED = 200;
const OWN = "own";

function virtual(text) {
  // Names without their marks, and virtual times as the seconds in which they are written.
  return text.trim().replaceAll("`", "").replace(/1970-01-(\d\d)T(\d\d):(\d\d):(\d\d(?:\.\d+)?)Z/g,
    (_, day, hours, minutes, seconds) => `${+(((+day - 1) * 24 + +hours) * 3600 + +minutes * 60 + +seconds).toFixed(6)}\u00a0s`);
}

function same(one, other) {
  return ["library", "events", "until"].every((each) => (one[each] ?? "") === (other[each] ?? ""));
}

function isOwn(value) {
  return Boolean(value?.library?.trim()) && !EXAMPLES.some((each) => same(each, value));
}

export function bring(library, name) {
  // Open a text in the playground; what is there is set aside.
  const draft = new Draft("playground");
  const before = draft.load();
  if (isOwn(before)) draft.setAside(before);
  draft.save({ library, events: "", until: "", name });
}

export function playground(main, { query }) {
  let abort = new AbortController();
  const draft = new Draft("playground");
  const run = later(250, play);
  // On a phone what follows is below: the nearer, the better.
  const isNarrow = matchMedia("(max-width: 44rem)").matches;
  const rules = new Editor("rules", "", () => edited(), { rows: isNarrow ? 14 : 17 });
  const events = new Editor("events", "", () => edited(), { rules: false, rows: isNarrow ? 9 : 14 });
  const until = h("input", { size: "8", placeholder: "last event", "aria-label": "time at the end", id: "until", oninput: () => edited() });
  const choose = h("select", { "aria-label": "examples", onchange: () => chosen(choose.value) });
  const counts = h("h2");
  const follows = h("div");
  const result = h("section.panel.result", h("div", { role: "status" }, counts), follows);
  const waiting = h("section.panel");
  const picture = h("section.panel");
  const aside = h("div", { role: "status" });
  const undo = new Undo({
    library: { element: rules.field, read: () => rules.text, write: (text) => { rules.text = text; } },
    events: { element: events.field, read: () => events.text, write: (text) => { events.text = text; } },
    until: { element: until, read: () => until.value, write: (text) => { until.value = text; } },
  }, () => edited());
  let name = "mine";

  function now() {
    return { library: rules.text, events: events.text, until: until.value };
  }

  function edited() {
    draft.save({ ...now(), name });
    // A link that was copied or opened shows what it holds, and no longer what is here.
    address("#/playground");
    offer();
    run();
  }

  function offer() {
    // What can be chosen: examples, and one's own texts that have made way for others.
    const at = EXAMPLES.findIndex((each) => same(each, now()));
    fill(choose,
      at < 0 ? h("option", { value: OWN }, "your own text") : null,
      h("optgroup", { label: "examples" }, EXAMPLES.map((each, place) => h("option", { value: `example ${place}` }, each.name))),
      draft.aside.length ? h("optgroup", { label: "set aside" }, draft.aside.map((each, place) =>
        h("option", { value: `aside ${place}` }, `${clock(each.at).slice(0, -4)}: ${title(each.value)}`))) : null);
    choose.value = at < 0 ? OWN : `example ${at}`;
  }

  function title(value) {
    return value.library.match(/^\w+ (?:correlation|ecl) (\w+)/m)?.[1] ?? value.library.trim().slice(0, 24);
  }

  function chosen(value) {
    const [kind, place] = value.split(" ");
    if (kind === OWN) return;
    const given = kind === "example" ? EXAMPLES[place] : draft.aside[place].value;
    if (isOwn(now())) draft.setAside(now());
    fill(aside);
    take(given);
  }

  function take(given) {
    undo.apply({ library: given.library, events: String(given.events ?? ""), until: String(given.until ?? "") });
  }

  function begin(given) {
    if (typeof given?.library !== "string") throw new TypeError("no rules");
    rules.text = given.library;
    events.text = String(given.events ?? "");
    until.value = String(given.until ?? "");
    undo.begin();
    offer();
    run();
  }

  async function play() {
    abort.abort();
    abort = new AbortController();
    const body = { library: rules.text, events: events.text, until: until.value.trim() || null };
    try {
      show(await ask("/v1/playground", { method: "POST", body, signal: abort.signal }));
    } catch (error) {
      if (error.name !== "AbortError") { fill(counts, "Nothing runs"); fill(follows, h("p.problem", told(error.message))); }
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
      found.late ? h("p.note", `${counted(found.late, "event")} came too late to be read: their times lie before those of earlier lines.`) : null,
      story(found));
    fill(waiting, h("h2", "What rules still wait for"),
      found.waiting.map((each) => h("p.reason", each.text.split("\n").map((line, at) => h(at ? "span.line.note" : "span.line", virtual(line))))));
    fill(picture, h("h2", found.machines.length === 1 ? "The machine" : "The machines"),
      found.machines.map((each) => h("figure", h("figcaption", each.rule),
        each.svg ? scrolled(`the machine of ${each.rule}`, machine(each.svg)) : h("p.note", "There is no machine to draw: it would be too large, or the rule runs from the events that it remembers."))));
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
    h("p.note", each.why.split("\n").slice(1).map((line) => h("span.line", virtual(line))))));
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
      scrolled("the run on a line of time", drawing),
      all.length ? h("p.note.signs", h("span.full", "led to an output"), h("span.hollow", "did not"), h("span.fired", "an output: open it to see why")) : null,
      picked,
      h("ol.outputs", items.map((item) => h("li", item))),
      found.outputs.length > shown.length ? h("p.note", `and ${found.outputs.length - shown.length} more, which are not drawn`) : null,
    ];
  }

  async function share() {
    const link = `#/playground?s=${await pack(now())}`;
    address(link);
    copy(`${location.origin}${location.pathname}${link}`, "a link to this playground");
  }

  async function put() {
    for (let problem = "", asked = true; asked;) {
      const given = await askForName(problem, name);
      if (!given) return;
      name = given;
      try {
        asked = await putAs(given) === null;
        problem = "";
      } catch (error) {
        if (error.status !== 422 && error.status !== 400) { notice(error.message, "bad"); return; }
        problem = error.message;
      }
    }
  }

  async function putAs(given) {
    // Null if the difference was seen, and the text was not to be put under this name.
    const result = await putInForce({ name: given, text: rules.text });
    if (!result) return null;
    if (result.findings) {
      rules.find(result.findings);
      notice("the rules have mistakes: nothing was put on the server", "bad");
    } else {
      draft.save({ ...now(), name });
      notice(result.done ? `\`${given}\`, version ${result.done.version}, runs from now on` : `\`${given}\` has these rules already`);
      location.hash = "#/rules";
    }
    return result;
  }

  const onKey = (event) => { if (!document.querySelector("dialog[open]")) undo.key(event); };

  fill(main, unseen("The playground"),
    h("div.bar", h("label", "show ", choose), h("button", { onclick: () => undo.undo(), id: "undo", title: "take back the last edit (Ctrl-Z)" }, "undo"), h("span.grow"),
      h("button", { onclick: share, id: "share" }, "copy a link"), h("button.strong", { onclick: put, id: "put" }, "put on the server")),
    aside,
    h("div.columns.wide-left",
      h("section", h("h2", "Rules"), rules.element),
      h("section", h("h2", "Events"), events.element, h("label.row", "the clock goes on to ", until, " s"))),
    result, picture, waiting);
  document.addEventListener("keydown", onKey);

  (async () => {
    const kept = draft.load();
    name = kept?.name || name;
    const shared = query.get("s");
    try {
      const given = shared ? await unpack(shared) : kept ?? EXAMPLES[0];
      begin(given);
      if (shared && isOwn(kept) && !same(kept, given)) {
        draft.setAside(kept);
        offer();
        fill(aside, h("p.hint", "This is from a link. Your own text is set aside: ", h("button.quiet", { onclick: () => { take(kept); fill(aside); } }, "bring it back")));
      }
    } catch {
      if (shared) notice("the link cannot be read; here is what was there before", "bad");
      begin(isOwn(kept) ? kept : EXAMPLES[0]);
    }
  })();
  return () => {
    abort.abort();
    document.removeEventListener("keydown", onKey);
  };
}

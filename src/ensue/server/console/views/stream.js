// The live stream: events and outputs as they come, with a filter, a pause, and each opened.

import { put, to } from "../base/address.js";
import { Stream, ask } from "../base/api.js";
import { fill, h, heads, opens, unseen } from "../base/dom.js";
import { stamp, zone } from "../base/times.js";
import { Detail, quoted } from "./event.js";
import { FilterField } from "./filtering.js";
import { firstSteps } from "./first.js";

const MOST = 400;
const BUFFERED = 5000;
const BEFORE = 200;
const KINDS = [["event", "events"], ["output", "outputs"], ["late", "late events"]];

export function stream(main, { query }) {
  const wanted = { filter: query.get("filter") || "", kinds: query.get("kinds") || "event,output" };
  let source = null;
  let paused = false;
  let held = [];
  let seen = 0;
  const body = h("tbody");
  // A count that goes up all the time is not read aloud.
  const state = h("span.note", { role: "status", "aria-live": "off" });
  const detail = new Detail();
  const filter = new FilterField(wanted.filter, () => { wanted.filter = filter.value; restart(); });
  const kinds = KINDS.map(([name, words]) => {
    const box = h("input", {
      type: "checkbox", checked: wanted.kinds.split(",").includes(name),
      onchange: () => {
        if (!kinds.some(({ box }) => box.checked)) box.checked = true;
        wanted.kinds = kinds.filter(({ box }) => box.checked).map(({ name }) => name).join(",");
        restart();
      },
    });
    return { name, box, label: h("label.check", box, ` ${words}`) };
  });
  const pause = h("button", { "data-pause": true, onclick: () => hold(!paused), title: "pause (p)" }, "pause");
  const introduction = h("section.panel.introduction", { hidden: true });
  const first = h("div", { hidden: true });
  const table = h("div.split",
    h("div.scroll", h("table.stream", heads(`time, ${zone()}`, "kind", "type", "key or source", "data"), body)),
    detail.element);

  function hold(on) {
    paused = on;
    pause.textContent = on ? "go on" : "pause";
    pause.classList.toggle("on", on);
    if (!on) { place(held); held = []; }
    tell();
  }

  function tell() {
    const waiting = held.length ? `, ${held.length} held back` : "";
    const received = seen ? `${seen} received` : "waiting for events";
    state.textContent = paused ? `paused${waiting}` : received;
  }

  function restart() {
    // What the new choice finds takes the place of all that is shown, once the server has taken it.
    let isFresh = true;
    hold(false);
    put(to("stream", { filter: wanted.filter, kinds: wanted.kinds === "event,output" ? "" : wanted.kinds }));
    source?.close();
    source = new Stream(wanted, {
      opened: () => {
        if (isFresh) { clear(); filter.right(); }
        isFresh = false;
        tell();
      },
      failed: (error) => filter.wrong(error),
      given: (found) => {
        welcome(false);
        seen += found.length;
        if (paused) held = [...held, ...found].slice(-BUFFERED);
        else place(found);
        tell();
      },
    }, BEFORE);
  }

  function clear() {
    fill(body);
    held = [];
    seen = 0;
  }

  function place(found) {
    const rows = found.slice(-MOST).map(row).reverse();
    body.prepend(...rows);
    while (body.rows.length > MOST) body.lastElementChild.remove();
  }

  function row({ id, event: kind, data }) {
    const only = () => { filter.value = `type = ${quoted(data.type)}`; wanted.filter = filter.value; restart(); };
    return h(`tr.${kind}`, opens(() => detail.show(data, { kind, position: id, only })),
      h("td.time", stamp(data.time)),
      h("td", h(`span.kind.${kind}`, kind)),
      h("td.type", data.type, data.correlation ? h("span.note", ` by ${data.correlation}`) : null),
      h("td.source", data.partitionkey ?? data.source),
      h("td.data", data.data === undefined ? "" : JSON.stringify(data.data)));
  }

  function welcome(isEmpty) {
    if (first.hidden !== isEmpty) return;
    first.hidden = !isEmpty;
    table.hidden = isEmpty;
    fill(first, isEmpty ? firstSteps() : null);
  }

  async function introduce() {
    const { demo, position } = await ask("/v1/figures?seconds=1");
    if (!position && !seen) welcome(true);
    // Only the demonstration needs words: who runs a server knows what it is sent.
    if (!demo || sessionStorage.getItem("ensue-introduced")) return;
    const close = () => { sessionStorage.setItem("ensue-introduced", "yes"); introduction.hidden = true; };
    introduction.hidden = false;
    fill(introduction,
      h("p", "A demonstration: made-up readings of vans that must stay cold, and logins of an office. ",
        h("a", { href: "#/rules" }, "Rules"), " read them as they come; what they put out is marked, and opens to what caused it. ",
        "Write a rule of your own in the ", h("a", { href: "#/playground" }, "playground"), "."),
      h("button.quiet", { onclick: close, "aria-label": "close the introduction" }, "✕"));
  }

  fill(main, unseen("The stream of events and outputs"),
    introduction,
    h("div.bar", filter.field, ...kinds.map(({ label }) => label), pause, state),
    filter.problem, filter.hint, first, table);
  restart();
  introduce().catch(() => {});
  return () => source?.close();
}

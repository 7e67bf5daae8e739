// The live stream: events and outputs as they come, with a filter, a pause, and each opened.

import { Stream, ask } from "./api.js";
import { go } from "./app.js";
import { clock, fill, h, heads, json, later, opens } from "./dom.js";

const MOST = 400;
const BUFFERED = 5000;
const BEFORE = 200;

export function stream(main, { query }) {
  const wanted = { filter: query.get("filter") || "", kinds: query.get("kinds") || "event,output" };
  let source = null;
  let paused = false;
  let held = [];
  let seen = 0;
  const body = h("tbody");
  // A count that goes up all the time is not read aloud.
  const state = h("span.note", { role: "status", "aria-live": "off" });
  const detail = h("aside.detail", { hidden: true });
  const filter = h("input.grow.code", {
    type: "search", value: wanted.filter, spellcheck: false, id: "filter",
    placeholder: "filter, such as  celsius > 7 AND van = 'van-3'", "aria-label": "filter in CESQL",
    oninput: later(350, () => { wanted.filter = filter.value.trim(); restart(); }),
  });
  const kinds = ["event", "output", "late"].map((each) => {
    const box = h("input", {
      type: "checkbox", checked: wanted.kinds.split(",").includes(each),
      onchange: () => {
        if (!kinds.some(({ box }) => box.checked)) box.checked = true;
        wanted.kinds = kinds.filter(({ box }) => box.checked).map(({ name }) => name).join(",");
        restart();
      },
    });
    return { name: each, box, label: h("label.check", box, ` ${each}s`.replace("lates", "late")) };
  });
  const pause = h("button", { "data-pause": true, onclick: () => hold(!paused), title: "pause (p)" }, "pause");
  const problem = h("pre.problem", { hidden: true, role: "alert", id: "filter-problem" });
  filter.setAttribute("aria-describedby", problem.id);

  function hold(on) {
    paused = on;
    pause.textContent = on ? "go on" : "pause";
    pause.classList.toggle("on", on);
    if (!on) { place(held); held = []; }
    tell();
  }

  function tell() {
    const waiting = held.length ? `, ${held.length} held` : "";
    const received = seen ? `${seen} received` : "waiting for events";
    state.textContent = paused ? `paused${waiting}` : received;
  }

  function restart() {
    // What the new choice finds takes the place of all that is shown, once the server has taken it.
    let isFresh = true;
    hold(false);
    go("stream", { filter: wanted.filter, kinds: wanted.kinds === "event,output" ? "" : wanted.kinds });
    source?.close();
    source = new Stream(wanted, {
      opened: () => {
        problem.hidden = true;
        filter.removeAttribute("aria-invalid");
        if (isFresh) clear();
        isFresh = false;
        tell();
      },
      failed: (error) => {
        const found = error.document?.diagnostics;
        problem.hidden = false;
        problem.textContent = found ? found.map((each) => each.shown).join("\n\n") : error.message;
        filter.setAttribute("aria-invalid", found ? "true" : "false");
      },
      given: (found) => {
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
    const open = () => show(id, kind, data);
    return h(`tr.${kind}`, opens(open),
      h("td.time", clock(data.time)),
      h("td", h(`span.kind.${kind}`, kind)),
      h("td.type", data.type, data.correlation ? h("span.note", ` by ${data.correlation}`) : null),
      h("td.source", data.partitionkey ?? data.source),
      h("td.data", data.data === undefined ? "" : JSON.stringify(data.data)));
  }

  function show(id, kind, data) {
    detail.hidden = false;
    fill(detail,
      h("div.row", h("h2", data.type), h("button.quiet", { onclick: () => { detail.hidden = true; }, "aria-label": "close" }, "✕")),
      h("p.note", `${kind} at position ${id}`),
      kind === "output" ? h("p", h("a", { href: `#/outputs/${id}` }, "what caused it")) : null,
      h("p", h("button.quiet", { onclick: () => { filter.value = `type = '${data.type.replace(/['\\]/g, "\\$&")}'`; wanted.filter = filter.value; restart(); } }, `only ${data.type}`)),
      json(data));
  }

  async function introduce() {
    // Only the demonstration needs words: who runs a server knows what it is sent.
    const { demo } = await ask("/v1/figures?seconds=1");
    if (!demo || sessionStorage.getItem("ensue-introduced")) return;
    const close = () => { sessionStorage.setItem("ensue-introduced", "yes"); introduction.hidden = true; };
    introduction.hidden = false;
    fill(introduction,
      h("p", "A demonstration: made-up readings of vans that must stay cold, and logins of an office. ",
        h("a", { href: "#/rules" }, "Rules"), " read them as they come; what they put out is marked, and opens to what caused it. ",
        "Write a rule of your own in the ", h("a", { href: "#/playground" }, "playground"), "."),
      h("button.quiet", { onclick: close, "aria-label": "close the introduction" }, "✕"));
  }

  const introduction = h("section.panel.introduction", { hidden: true });
  fill(main,
    introduction,
    h("div.bar", filter, ...kinds.map(({ label }) => label), pause, state),
    problem,
    h("div.split",
      h("div.scroll", h("table.stream", heads("time", "kind", "type", "key or source", "data"), body)),
      detail));
  restart();
  introduce().catch(() => {});
  return () => source?.close();
}

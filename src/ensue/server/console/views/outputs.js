// What rules have put out, the latest first: found by rule, key, time and any text.

import { put, to } from "../base/address.js";
import { ask } from "../base/api.js";
import { fill, h, heads, later, opens, unseen } from "../base/dom.js";
import { Pages } from "../base/pages.js";
import { Range } from "../base/range.js";
import { stamp, zone } from "../base/times.js";
import { troubleRow } from "../base/troubles.js";
import { output } from "./output.js";

const PAGE = 50;
const FIELDS = [["library", "library"], ["correlation", "rule"], ["key", "key"], ["search", "any text in them"]];

export function outputs(main, { parts, query }) {
  return parts[0] ? output(main, parts[0]) : list(main, query);
}

function list(main, query) {
  const body = h("tbody");
  const place = h("div");
  const again = () => pages.first();
  const fields = FIELDS.map(([name, words]) => [name, h("input", {
    type: "search", value: query.get(name) || "", placeholder: words, "aria-label": name === "search" ? "search" : words,
    oninput: later(350, again),
  })]);
  const range = new Range(query, again);
  const pages = new Pages(load);
  let turn = 0;

  async function load(before) {
    const mine = (turn += 1);
    const wanted = Object.fromEntries(fields.map(([name, field]) => [name, field.value.trim()]));
    put(to("outputs", { ...wanted, ...range.linked }));
    const given = Object.entries({ ...wanted, ...range.asked, before, limit: PAGE }).filter(([, value]) => value);
    try {
      const found = await ask(`/v1/outputs?${new URLSearchParams(given)}`);
      if (mine !== turn) return null;
      fill(body, found.outputs.map(row));
      fill(place, found.outputs.length ? null : none(found, Object.values(wanted).some(Boolean)));
      return found.next;
    } catch (error) {
      if (mine === turn) { fill(body, troubleRow(error, 5)); fill(place); }
      return null;
    }
  }

  function none(found, isNarrowed) {
    if (found.next) return h("p.panel", "Nothing was found in the time that a question may take. The next page goes on from there.");
    if (isNarrowed || range.isChosen) {
      return h("p.panel", "No output matches. ", h("button.quiet", { onclick: () => { location.hash = "#/outputs?"; } }, "show all outputs"));
    }
    return h("section.panel.first", h("h2", "No output yet"),
      h("p", "A rule puts one out when it fires. Look at ", h("a", { href: "#/rules" }, "the rules"),
        " to see what each of them still waits for, or write one in the ", h("a", { href: "#/playground" }, "playground"), "."));
  }

  function row(each) {
    return h("tr", opens(() => { location.hash = to("outputs", each.position); }),
      h("td.time", stamp(each.event.time)),
      h("td.type", h("a", { href: to("outputs", each.position) }, each.event.type)),
      h("td", h("a", { href: to("rules", each.library, each.correlation) }, each.correlation), h("span.note", ` in ${each.library}`)),
      h("td.source", each.key ?? ""),
      h("td.data", JSON.stringify(each.event.data ?? null)));
  }

  fill(main, unseen("Outputs of rules"),
    h("div.bar", fields.map(([, field]) => field), range.element, h("button", { onclick: again }, "look again"), pages.state),
    h("div.scroll", h("table.listed", heads(`time, ${zone()}`, "output", "rule", "key", "data"), body)),
    place, pages.element);
  pages.first();
}

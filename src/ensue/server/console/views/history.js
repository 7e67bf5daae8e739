// What was published before: found by time, by a filter and by any text, a page at a time; one event
// opened to what followed from it.

import { put, to } from "../base/address.js";
import { ask } from "../base/api.js";
import { fill, h, heads, json, later, opens, scrolled, unseen } from "../base/dom.js";
import { Pages } from "../base/pages.js";
import { Range } from "../base/range.js";
import { exactly, stamp, zone } from "../base/times.js";
import { trouble, troubleRow } from "../base/troubles.js";
import { Detail, eventLink, quoted } from "./event.js";
import { FilterField } from "./filtering.js";
import { firstSteps } from "./first.js";

const PAGE = 50;

export function history(main, { parts, query }) {
  return parts[0] ? one(main, parts[0], query.get("source") || "") : list(main, query);
}

function list(main, query) {
  const body = h("tbody");
  const place = h("div");
  const detail = new Detail();
  const again = () => pages.first();
  const filter = new FilterField(query.get("filter") || "", again);
  const search = h("input", { type: "search", value: query.get("search") || "", placeholder: "any text in them", "aria-label": "search", oninput: later(350, again) });
  const range = new Range(query, again);
  const pages = new Pages(load);
  let turn = 0;

  async function load(before) {
    const mine = (turn += 1);
    const wanted = { filter: filter.value, search: search.value.trim() };
    put(to("history", { ...wanted, ...range.linked }));
    const given = Object.entries({ ...wanted, ...range.asked, before, order: "latest", limit: PAGE }).filter(([, value]) => value);
    body.setAttribute("aria-busy", "true");
    try {
      const found = await ask(`/v1/history?${new URLSearchParams(given)}`);
      if (mine !== turn) return null;
      filter.right();
      fill(body, found.events.map(row));
      fill(place, found.events.length ? null : await none(found, wanted));
      return found.next;
    } catch (error) {
      if (mine !== turn) return null;
      if (error.document?.diagnostics) filter.wrong(error);
      else fill(body, troubleRow(error, 5));
      return null;
    } finally {
      body.removeAttribute("aria-busy");
    }
  }

  async function none(found, wanted) {
    if (found.next) return h("p.panel", "Nothing was found in the time that a question may take. The next page goes on from there.");
    if (wanted.filter || wanted.search || range.isChosen) {
      return h("p.panel", "No event matches. ", h("button.quiet", { onclick: clear }, "show all events"));
    }
    return firstSteps();
  }

  function clear() {
    location.hash = "#/history?";
  }

  function row(data) {
    const only = () => { filter.value = `type = ${quoted(data.type)}`; again(); };
    return h("tr", opens(() => detail.show(data, { only })),
      h("td.time", stamp(data.time)),
      h("td.type", data.type),
      h("td.id", eventLink(data.id, data.id, data.source)),
      h("td.source", data.partitionkey ?? data.source),
      h("td.data", data.data === undefined ? "" : JSON.stringify(data.data)));
  }

  fill(main, unseen("The history of events"),
    h("div.bar", filter.field, search, range.element, pages.state),
    filter.problem, filter.hint,
    h("div.split", h("div.scroll", h("table.listed.history", heads(`time, ${zone()}`, "type", "id", "key or source", "data"), body)), detail.element),
    place, pages.element);
  pages.first();
}

function one(main, id, source) {
  const place = h("section.panel", h("p.note", "looking for it …"));
  const after = h("section.panel", { hidden: true });
  fill(main, h("p", h("a", { href: "#/history" }, "← all events")), place, after);
  const filter = `id = ${quoted(id)}${source ? ` AND source = ${quoted(source)}` : ""}`;
  ask(`/v1/history?${new URLSearchParams({ filter, order: "latest", limit: 10 })}`).then((found) => {
    if (!found.events.length) {
      fill(place, h("h1", `Event ${id}`), h("p", "The history does not have it: it was never published here, or it is older than what is kept."));
      return null;
    }
    fill(place, found.events.map((each, at) => [
      h(at ? "h2" : "h1", each.type, h("span.note", ` ${each.id}`)),
      h("dl.facts",
        h("dt", "time"), h("dd", exactly(each.time)),
        h("dt", "source"), h("dd", each.source)),
      json(each)]));
    return followed(after, id);
  }).catch((error) => fill(place, trouble(error)));
}

async function followed(place, id) {
  // Outputs name the events that are bound; the search finds more, such as longer ids.
  const given = new URLSearchParams({ search: id, limit: 200 });
  const found = (await ask(`/v1/outputs?${given}`)).outputs.filter((each) =>
    [each.event.trigger, ...String(each.event.causes ?? "").split(",")].includes(id));
  place.hidden = false;
  fill(place, h("h2", "What followed from it"),
    found.length
      ? scrolled("outputs that name the event", h("table", heads(`time, ${zone()}`, "output", "rule", "key"), h("tbody", found.map((each) => h("tr",
        h("td.time", stamp(each.event.time)),
        h("td.type", h("a", { href: to("outputs", each.position) }, each.event.type)),
        h("td", h("a", { href: to("rules", each.library, each.correlation) }, each.correlation)),
        h("td.source", each.key ?? ""))))))
      : h("p.note", "No output names it. Rules name the events that they bind; an event may have led to an output and not be named."));
}

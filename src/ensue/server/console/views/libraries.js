// Libraries: which there are, in which version, and whether their rules run.

import { to } from "../base/address.js";
import { ask } from "../base/api.js";
import { counted, fill, h, heads, number, opens, unseen } from "../base/dom.js";
import { ago } from "../base/times.js";
import { trouble } from "../base/troubles.js";
import { Draft } from "../editing/drafts.js";
import { library } from "./library.js";

export function libraries(main, { parts }) {
  return parts[0] ? library(main, parts[0]) : list(main);
}

function list(main) {
  const body = h("tbody");
  const place = h("div");

  async function load() {
    try {
      const found = await ask("/v1/libraries");
      fill(body, found.map(row));
      fill(place, found.length ? null : h("section.panel.first", h("h2", "No library yet"),
        h("p", "A library is a text with rules. Try one over some events in the ", h("a", { href: "#/playground" }, "playground"), ", and put it on the server from there.")));
    } catch (error) {
      fill(place, trouble(error));
    }
  }

  function row(each) {
    const address = to("libraries", each.name);
    return h("tr", opens(() => { location.hash = address; }),
      h("td", h("a", { href: address }, each.name), new Draft(each.name).isThere ? h("span.chip", "draft") : null),
      h("td.number", each.version),
      h("td", each.enabled ? counted(each.rules.length, "rule runs", "rules run") : h("span.note", "switched off")),
      h("td.number", number(each.outputs)),
      h("td", ago(each.at), h("span.note", ` by ${each.author}`)),
      h("td.note", each.refused ? `${counted(each.refused, "event")} could not be read` : each.note));
  }

  fill(main, unseen("Libraries of rules"),
    h("div.bar", h("a.button", { href: "#/playground" }, "write a new one")),
    h("div.scroll", h("table.libraries", heads("library", "#version", "state", "#outputs", "changed", "note"), body)), place);
  load();
}

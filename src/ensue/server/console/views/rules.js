// Rules that run: how often, how fast, when last; one of them with its machine and its keys.

import { to } from "../base/address.js";
import { ask } from "../base/api.js";
import { counted, fill, h, heads, number, opens, refill, s, unseen } from "../base/dom.js";
import { ago } from "../base/times.js";
import { tell } from "../base/troubles.js";
import { rule } from "./rule.js";

export function rules(main, { parts, query }) {
  return parts.length > 1 ? rule(main, parts[0], parts[1], query) : list(main);
}

function list(main) {
  const body = h("tbody");
  const place = h("div");
  const past = new Map();
  let stopped = false;

  async function look() {
    if (stopped) return;
    try {
      const found = await ask("/v1/rules");
      refill(body, found.map(row));
      refill(place, found.length ? null : h("section.panel.first", h("h2", "No rule runs"),
        h("p", "Try one over some events in the ", h("a", { href: "#/playground" }, "playground"),
          ", and put it on the server from there. Libraries that are switched off are among the ", h("a", { href: "#/libraries" }, "libraries"), ".")));
    } catch (error) {
      fill(body);
      tell(place, error);
    }
    setTimeout(look, 1000);
  }

  function row(each) {
    const name = `${each.library}/${each.rule}`;
    const counts = past.get(name) || [];
    counts.push(each.outputs);
    past.set(name, counts.slice(-61));
    const address = to("rules", each.library, each.rule);
    return h("tr", opens(() => { location.hash = address; }),
      h("td", h("a", { href: address }, each.rule), h("span.note", ` in ${each.library}`)),
      h("td.number", number(each.outputs)),
      h("td.number", spark(counts), ` ${number(each.rate * 60)} /min`),
      h("td", each.last
        ? [ago(each.last.time), each.last.key !== null ? h("span.note", ` for ${each.last.key}`) : null, " ", h("a", { href: to("outputs", each.last.position) }, "why")]
        : [h("span.note", "never yet "), h("a", { href: to("rules", each.library, each.rule, { why: "not" }) }, "why not")]),
      h("td.number", each.without_key
        ? h("span", { title: "Events that this rule could not read, since they lack the attribute that it goes by" }, `${counted(each.without_key, "event")} without a key`) : ""));
  }

  fill(main, unseen("Rules that run"),
    h("div.scroll", h("table.rules", heads("rule", "#outputs", "#rate", "last output", "#left out"), body)), place);
  look();
  return () => { stopped = true; };
}

function spark(counts) {
  const steps = counts.slice(1).map((each, at) => each - counts[at]);
  const most = Math.max(1, ...steps);
  const points = steps.map((each, at) => `${(at * 60) / Math.max(1, steps.length - 1)},${16 - (14 * each) / most}`);
  return s("svg", { viewBox: "0 0 60 18", class: "spark", "aria-hidden": "true" }, s("polyline", { points: points.join(" ") }));
}

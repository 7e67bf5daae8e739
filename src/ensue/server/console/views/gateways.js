// Gateways of this process: their services, links and standing requests, as they are; channels and
// the links between them.

import { ask } from "../base/api.js";
import { counted, fill, h, heads, number, refill, scrolled, unseen } from "../base/dom.js";
import { tell } from "../base/troubles.js";

// What the columns of a service count, for who points at them.
const COUNTS = [
  ["received", "Events that came from this service"],
  ["sent", "Events that were sent to it"],
  ["not asked for", "Events that came, and that no other service asks for"],
  ["carried already", "Events that had come before by another way, and were not sent twice"],
  ["dropped", "Events that could not be sent, and why"],
  ["waiting", "Events that are still to be sent"],
  ["behind", "Events at the service that have not been fetched"],
];

const KINDS = { event: "events", output: "outputs", late: "late events" };

export function gateways(main) {
  const place = h("div.stack");
  let stopped = false;
  let isOpen = false; // what the columns count, where it was opened

  async function look() {
    if (stopped) return;
    try {
      const [found, channels] = await Promise.all([ask("/v1/gateways"), ask("/v1/channels")]);
      refill(place, channels.length > 1 ? listed(channels) : null, found.length ? found.map(one) : h("section.panel", h("h2", "No gateway"),
        h("p", "A gateway carries events between this server and other event services, such as MQTT, NATS, Kafka or Redis. It is set up in the server's file:"),
        h("pre.code", { tabindex: "0" }, '[gateway]\nname = "roadside"\n\n[[service]]\nname = "cars"\nkind = "mqtt"\nurl = "mqtt://127.0.0.1:1883"\naddress = "traffic/cars"\n')));
    } catch (error) {
      tell(place, error);
    }
    setTimeout(look, 2000);
  }

  function listed(channels) {
    const links = channels.flatMap((each) => each.links);
    return h("section.panel", h("h2", "Channels"),
      scrolled("channels", h("table",
        heads("channel", "events", "outputs", "libraries", "clock", "events may be late by"),
        h("tbody", channels.map((each) => h("tr",
          h("td", h("a", { href: each.url }, each.name)), h("td", number(each.events)), h("td", number(each.outputs)),
          h("td", each.libraries.join(", ") || "–"), h("td", each.clock), h("td", each.lateness)))))),
      links.length ? scrolled("links between channels", h("table",
        heads("link", "what it carries", "carried so far", "state"),
        h("tbody", links.map((each) => h("tr",
          h("td", `${each.from} → ${each.to}`),
          h("td", [each.kinds.map((kind) => KINDS[kind] ?? kind).join(", "), each.library ? ` of ${each.library}` : "", each.where ? [" where ", h("code", each.where)] : ""]),
          h("td", number(each.delivered)),
          h("td", each.problem ? h("span.bad", each.problem) : h("span.good", "working"))))))) : null);
  }

  function one({ health, status, announced }) {
    return h("section.panel",
      h("h2", `Gateway ${health.gateway} `, h(health.ready ? "span.good" : "span.bad", health.status)),
      health.away.length ? h("p.problem", `not connected: ${health.away.join(", ")}`) : null,
      scrolled(`services of ${health.gateway}`, h("table",
        h("thead", h("tr", ["service", "kind", "state"].map((each) => h("th", each)), COUNTS.map(([name, title]) => h("th.number", { title }, name)))),
        h("tbody", status.map(service)))),
      h("details", { open: isOpen, ontoggle: (event) => { isOpen = event.target.open; } }, h("summary", "what the columns count"),
        h("dl.facts", COUNTS.map(([name, words]) => [h("dt", name), h("dd", words)]))),
      status.map(requests),
      announced.length ? h("dl.facts", h("dt", "events that are to come"),
        h("dd", announced.map((each) => h("div", `from ${each.service}: `, h("code", each.where), each.carried ? " (the service tells its clients)" : "")))) : null);
  }

  function service(each) {
    const dropped = Object.entries(each.dropped);
    const state = !each.connected ? h("span.bad", "not connected") : each.active ? h("span.good", "connected") : "connected, a spare: another way carries the events";
    return h("tr",
      h("td", each.service), h("td", each.kind),
      h("td", state, each.reconnects ? h("span.note", `, reconnected ${counted(each.reconnects, "time")}`) : null,
        each.last_error ? h("div.note", each.last_error) : null),
      [each.in, each.out, each.filtered, each.duplicates].map((count) => h("td.number", number(count))),
      h("td.number", dropped.length ? dropped.map(([why, count]) => `${number(count)} ${why}`).join(", ") : "0"),
      h("td.number", number(each.waiting + each.in_flight)), h("td.number", number(each.lag)));
  }

  function requests(each) {
    // What is asked for at a service, and what of it others want; links lead to other gateways.
    const parts = [
      ["asks for", each.requests], ["is asked for", each.wanted],
      ["is linked to", each.neighbours.map((other) => (typeof other === "object" ? Object.values(other).join(" ") : other))],
    ].filter(([, found]) => found.length);
    return parts.length ? h("dl.facts", parts.flatMap(([what, found]) =>
      [h("dt", `${each.service} ${what}`), h("dd", found.map((text) => h("div", h("code", text))))])) : null;
  }

  fill(main, unseen("Gateways and channels"), place);
  look();
  return () => { stopped = true; };
}

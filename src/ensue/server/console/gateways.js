// Gateways of this process: their services, links and standing requests, as they are; channels and
// the links between them.

import { ask } from "./api.js";
import { fill, h, number } from "./dom.js";

export function gateways(main) {
  const place = h("div");
  let stopped = false;

  async function look() {
    if (stopped) return;
    try {
      const [found, channels] = await Promise.all([ask("/v1/gateways"), ask("/v1/channels")]);
      fill(place, channels.length > 1 ? listed(channels) : null, found.length ? found.map(one) : h("section.panel", h("h2", "No gateway"),
        h("p", "A gateway carries events between this server and other event services, such as MQTT, NATS, Kafka or Redis. It is set up in the server's file:"),
        h("pre.code", '[gateway]\nname = "roadside"\n\n[[service]]\nname = "cars"\nkind = "mqtt"\nurl = "mqtt://127.0.0.1:1883"\naddress = "traffic/cars"\n')));
    } catch (error) {
      fill(place, h("p.problem", error.message));
    }
    setTimeout(look, 2000);
  }

  function listed(channels) {
    const links = channels.flatMap((each) => each.links);
    return h("section.panel", h("h2", "Channels"),
      h("div.scroll", h("table",
        h("thead", h("tr", ["channel", "events", "outputs", "libraries", "clock", "lateness"].map((each) => h("th", each)))),
        h("tbody", channels.map((each) => h("tr",
          h("td", h("a", { href: each.url }, each.name)), h("td", number(each.events)), h("td", number(each.outputs)),
          h("td", each.libraries.join(", ") || "–"), h("td", each.clock), h("td", each.lateness)))))),
      links.length ? h("div.scroll", h("table",
        h("thead", h("tr", ["link", "what", "brought over", "state"].map((each) => h("th", each)))),
        h("tbody", links.map((each) => h("tr",
          h("td", `${each.from} → ${each.to}`),
          h("td", [each.kinds.join(", "), each.library ? ` of ${each.library}` : "", each.where ? h("code", ` ${each.where}`) : ""]),
          h("td", number(each.delivered)),
          h("td", each.problem ? h("span.bad", each.problem) : h("span.good", "well"))))))) : null);
  }

  function one({ health, status }) {
    return h("section.panel", h("h2", typeof status === "object" && status?.name ? status.name : "Gateway"), table(health), table(status));
  }

  function table(value) {
    // Whatever a gateway tells of itself: objects as facts, lists of objects as tables.
    if (Array.isArray(value)) {
      if (!value.length) return h("p.note", "none");
      if (typeof value[0] !== "object") return h("p", value.join(", "));
      const names = [...new Set(value.flatMap((each) => Object.keys(each)))];
      return h("div.scroll", h("table", h("thead", h("tr", names.map((each) => h("th", each)))),
        h("tbody", value.map((each) => h("tr", names.map((name) => h("td", cell(each[name]))))))));
    }
    if (value && typeof value === "object") {
      return h("dl.facts", Object.entries(value).flatMap(([name, each]) => [h("dt", name), h("dd", each && typeof each === "object" ? table(each) : cell(each))]));
    }
    return h("p", cell(value));
  }

  function cell(value) {
    if (value === true) return h("span.good", "yes");
    if (value === false) return h("span.bad", "no");
    if (value && typeof value === "object") return h("code", JSON.stringify(value));
    return value ?? "–";
  }

  fill(main, place);
  look();
  return () => { stopped = true; };
}

// How the server does: throughput, latency, queues, the history behind; changes of rules.

import { to } from "../base/address.js";
import { ask } from "../base/api.js";
import { fill, h, heads, number, scrolled, unseen } from "../base/dom.js";
import { Pages } from "../base/pages.js";
import { span, stamp, zone } from "../base/times.js";
import { tell, trouble } from "../base/troubles.js";
import { plot } from "../drawing/plot.js";

const NARROWEST = 460;
const AROUND = 34; // of a panel, around what is in it
const GAP = 12;
const CHANGES = 20;
const ACTIONS = { put: "put on the server", "roll back": "restored", enable: "switched on", disable: "switched off", delete: "deleted", reload: "read again" };

export function system(main) {
  const plots = h("div.plots");
  const facts = h("section.panel");
  const audit = h("div");
  const pages = new Pages(changes);
  let stopped = false;

  async function look() {
    if (stopped) return;
    try {
      draw(await ask("/v1/figures?seconds=300"));
    } catch (error) {
      tell(facts, error);
    }
    setTimeout(look, 1000);
  }

  function draw(found) {
    const samples = found.samples;
    const shown = [
      ["version", found.version], ["running for", span(found.uptime)], ["events", number(found.events)],
      ["outputs", number(found.outputs)], ["late events", number(found.late), "Events that came too late to be read by rules"],
      ["rejected events", number(found.rejected), "Events that are not as they have to be"],
      ["sent twice", number(found.duplicates), "Events that had come before, and were not read again"],
      ["expired", number(found.expired), "Events, and deliveries of them, that came after their expirytime"],
      ["subscribers", number(found.subscribers)],
      ["entries kept", `${number(found.first_position)} to ${number(found.position)}`, "Positions in the journal from which a subscriber can go on"],
    ];
    fill(facts, h("h2", "Since the start"), h("dl.facts.many", shown.map(([name, value, title]) => h("div", { title }, h("dt", name), h("dd", value)))));
    const room = plots.clientWidth;
    const columns = Math.max(1, Math.floor((room + GAP) / (NARROWEST + GAP)));
    const width = Math.max(240, Math.floor((room - (columns - 1) * GAP) / columns) - AROUND);
    const of = (name) => (each) => each[name];
    fill(plots,
      plot({ title: "Throughput", unit: "a second", samples, width, lines: [["events", of("events")], ["outputs", of("outputs")], ["delivered", of("delivered")]] }),
      plot({ title: "How long publishers wait", unit: "ms", samples, width, lines: [["half under", of("median_ms")], ["99 of 100 under", of("p99_ms")]] }),
      plot({ title: "Waiting to be read by rules", unit: "events", samples, width, lines: [["waiting", of("waiting")]] }),
      plot({ title: "Not in the history yet", unit: "entries", samples, width, lines: [["behind", of("history_lag")]] }));
  }

  async function changes(before) {
    try {
      const found = await ask(`/v1/audit?limit=${CHANGES}${before ? `&before=${before}` : ""}`);
      fill(audit, found.length
        ? scrolled("changes", h("table.changes", heads(`when, ${zone()}`, "who", "what", "library", "more"), h("tbody", found.map(change))))
        : h("p.note", "None yet."));
      return found.length === CHANGES ? found.at(-1).number : null;
    } catch (error) {
      fill(audit, trouble(error));
      return null;
    }
  }

  function change(each) {
    const isLibrary = each.action in ACTIONS && each.action !== "reload" && each.action !== "delete";
    return h("tr",
      h("td.time", stamp(each.at)), h("td", each.author), h("td", ACTIONS[each.action] ?? each.action),
      h("td", isLibrary ? h("a", { href: to("libraries", each.subject) }, each.subject) : each.subject), h("td.note", each.detail));
  }

  fill(main, unseen("The server"), plots, facts, h("section.panel", h("h2", "Changes"), audit, pages.element));
  look();
  pages.first();
  return () => { stopped = true; };
}

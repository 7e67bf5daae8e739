// What is shown where nothing is yet: where events go, a line that sends one, what to do next.

import { base } from "../base/api.js";
import { h } from "../base/dom.js";
import { copy } from "../base/saved.js";
import { hasToken } from "../base/token.js";

function line(address) {
  const event = { id: "1", source: "me", type: "Hello", data: { name: "world" } };
  const token = hasToken() ? " \\\n  -H 'Authorization: Bearer YOUR-TOKEN'" : "";
  return `curl ${address} \\\n  -H 'Content-Type: application/json'${token} \\\n  -d '${JSON.stringify(event)}'`;
}

export function firstSteps() {
  const address = `${location.origin}${base}/v1/events`;
  const text = line(address);
  return h("section.panel.first", h("h2", "No event has come yet"),
    h("p", "Programs publish events to this address, as ", h("a", { href: "https://cloudevents.io", rel: "noreferrer" }, "CloudEvents"), ":"),
    h("p.row", h("code.address", address), h("button", { onclick: () => copy(address, "the address") }, "copy")),
    h("p", "This line sends one; it appears here at once."),
    h("div.row.top", h("pre.code", { tabindex: "0", id: "curl" }, text), h("button", { onclick: () => copy(text, "the line") }, "copy")),
    h("p", "To see what rules do with events before you send any, try some in the ", h("a", { href: "#/playground" }, "playground"),
      "; put them on the server from there, and they read what comes."));
}

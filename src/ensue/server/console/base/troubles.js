// What went wrong, where it went wrong: in a sentence, with what can be done about it.

import { fill, h, told } from "./dom.js";
import { change } from "./token.js";

export function trouble(error) {
  const isAboutToken = error.status === 401 || (error.status === 403 && error.document?.type?.endsWith("role"));
  return h("div.problem", { role: "alert", "data-message": error.message }, h("p", told(error.message)),
    isAboutToken ? h("button", { onclick: () => change() }, error.status === 401 ? "give a token" : "use another token") : null);
}

export function tell(place, error, ...before) {
  // Where it is tried every second: said once, and not over and over.
  if (place.querySelector(":scope > .problem")?.dataset.message === error.message) return;
  fill(place, ...before, trouble(error));
}

export function troubleRow(error, columns) {
  return h("tr", h("td", { colSpan: columns }, trouble(error)));
}

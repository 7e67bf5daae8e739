// The token of this tab: asked for when the server wants one, said if it is refused, and changed.
// It is kept until the tab is closed, and is in no address.

import { choose } from "./dialogs.js";
import { h } from "./dom.js";

const KEPT = "ensue-token";
let token = sessionStorage.getItem(KEPT) || "";
let asking = null;
let isDeclined = false;
const watching = [];

export function withToken(headers) {
  return token ? { ...headers, Authorization: `Bearer ${token}` } : headers;
}

export function hasToken() {
  return Boolean(token);
}

export function watch(work) {
  // Called when the token is another one, or is wanted and not given.
  watching.push(work);
}

function tell(isChanged) {
  watching.forEach((each) => each({ hasToken: hasToken(), isDeclined, isChanged }));
}

export async function wanted(refused) {
  // Whether there is a token to try again with, after an answer to a request with `refused`.
  if (isDeclined) return false;
  const given = (refused?.Authorization || "").replace(/^Bearer /, "");
  // Another request may have been given one meanwhile.
  if (token && token !== given) return true;
  return change(given ? "The server does not know this token. It may be mistyped, or no longer valid." : "");
}

export function change(problem = "") {
  // One question at a time, however many requests wait for its answer.
  asking ??= ask(problem).finally(() => { asking = null; });
  return asking;
}

async function ask(problem) {
  const input = h("input", { type: "password", autocomplete: "off", id: "token", required: true });
  if (problem) {
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", "token-problem");
  }
  const choices = [["use", "use it", "strong"]];
  if (token && !problem) choices.push(["forget", "forget the one in use"]);
  const chosen = await choose("Token", [
    problem ? h("p.problem", { id: "token-problem", role: "alert" }, problem) : null,
    h("label", "A token that the server's file names. It is kept until this tab is closed.", input),
  ], choices, { form: (value) => value !== "use" || Boolean(input.value.trim()) });
  const given = input.value.trim();
  isDeclined = !chosen && (Boolean(problem) || !token);
  if (chosen) {
    token = chosen === "use" ? given : "";
    if (token) sessionStorage.setItem(KEPT, token);
    else sessionStorage.removeItem(KEPT);
  }
  tell(Boolean(chosen));
  return chosen === "use";
}

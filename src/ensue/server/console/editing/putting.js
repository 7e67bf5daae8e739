// A text, or other values of its parameters, are put in force: with the difference shown before anything is replaced, a note for those
// who read it later, and never over what others have put meanwhile without their being told.
// The server compares; it makes a change only to what its author has seen (`If-Match`).

import { answer, ask } from "../base/api.js";
import { choose } from "../base/dialogs.js";
import { counted, fill, h, told } from "../base/dom.js";
import { ago } from "../base/times.js";
import { merged } from "./merging.js";

const EFFECTS = [
  ["kept", "goes on as it is", "go on as they are"], ["changed", "is changed, and begins anew", "are changed, and begin anew"],
  ["added", "is new", "are new"], ["removed", "is gone", "are gone"],
];

export function pathOf(name) {
  return `/v1/libraries/${encodeURIComponent(name)}`;
}

export function difference(found) {
  // Lines that go and come, and what becomes of the rules.
  const lines = found.unified.split("\n").slice(2, -1);
  const kinds = { "+": "new", "-": "gone", "@": "place" };
  return h("div.difference",
    lines.length
      ? h("pre.code", { tabindex: "0", "aria-label": "the difference" }, lines.map((line) => h(`span.line${kinds[line[0]] ? `.${kinds[line[0]]}` : ""}`, line || " ")))
      : h("p.note", "The texts are equal."),
    found.rules ? h("ul", EFFECTS.filter(([name]) => found.rules[name].length).map(([name, one, many]) =>
      h("li", found.rules[name].join(", "), ` ${found.rules[name].length === 1 ? one : many}`))) : null);
}

export function versionLine(each) {
  return [`version ${each.version} by ${each.author}, `, ago(each.at), each.note ? `: ${each.note}` : ""];
}

export function noteField(value = "") {
  return h("input.grow", { value, maxlength: "1000", placeholder: "what for? Others read it among the versions", "aria-label": "note", id: "note" });
}

export async function putInForce({ name, text, values, seen = null, note = "" }) {
  // `seen` is what the text was made from: its tag, text and version; none where it is a new one.
  // `values` of parameters are put in place of a text.
  // Gives one of: `done`; `findings`; `merged` with the `base` that it was merged with; `theirs`;
  // or null, if it is not to be put after all.
  for (let allowed = seen?.tag; ;) {
    const { value: found, tag } = await answer(`${pathOf(name)}/${values ? "parameters" : "difference"}`, { method: "POST", ...sent(text, values) });
    const wrong = found.diagnostics.filter((each) => each.severity === "error");
    if (wrong.length) return { findings: found.diagnostics };
    if (tag && !found.unified) return { done: null, tag };
    const isChanged = allowed && allowed !== tag;
    if (!isChanged) {
      const agreed = await agree(name, found, note);
      if (!agreed) return null;
      note = agreed.note;
    }
    // What others have changed is told by the server, with its refusal of a change to what is gone.
    const result = await tryPut(`${pathOf(name)}${values ? "/parameters" : ""}`, sent(text, values), isChanged ? allowed : tag, note);
    if (!result.problem) return result;
    const choice = await conflict(name, result.problem, text, seen);
    if (choice !== "replace") return choice;
    allowed = result.problem.document.current?.etag;
  }
}

function sent(text, values) {
  return values ? { body: values } : { body: text, type: "text/plain" };
}

async function tryPut(path, sent, tag, note) {
  const headers = tag ? { "If-Match": tag } : { "If-None-Match": "*" };
  try {
    const given = await answer(`${path}${note ? `?note=${encodeURIComponent(note)}` : ""}`, { method: "PUT", ...sent, headers });
    return { done: given.value, tag: given.tag };
  } catch (error) {
    if (error.status === 412) return { problem: error };
    throw error;
  }
}

async function agree(name, found, note) {
  const field = noteField(note);
  const isNew = found.from === null;
  const rules = found.rules?.removed.length;
  const chosen = await choose(isNew ? `Put ${name} on the server` : `Replace ${name}`, [
    isNew ? h("p", "There is no library of this name yet. Its rules run from now on, over what comes.")
      : [h("p", "The server has ", versionLine(found.from), "."),
        rules ? h("p.hint", `${counted(rules, "rule")} of it would be gone: ${found.rules.removed.join(", ")}.`) : null,
        difference(found)],
    h("label", "note", field),
  ], [["put", isNew ? "put it on the server" : `replace version ${found.from.version}`, "strong"]]);
  return chosen ? { note: field.value.trim() } : null;
}

async function conflict(name, problem, text, seen) {
  // Without a text it is about values, which can be put into a text of others.
  const { current, since = [], difference: theirs } = problem.document;
  if (!current) {
    const again = await choose(`${name} was deleted meanwhile`, h("p", "Its versions are kept. Your text can be put as the next one."), [["replace", "put mine", "strong"]], { cancel: "go on editing" });
    return again;
  }
  const isText = text !== undefined;
  const merge = seen && isText ? merged(seen.text, text, current.text) : null;
  const base = { tag: current.etag, text: current.text, version: current.version };
  const list = since.length ? since : [current];
  const chosen = await choose(`Others have changed ${name} meanwhile`, [
    h("p", "Nothing was replaced. ", seen ? `Since version ${seen.version}, with which you began, there came:` : "There is now:"),
    h("ul", list.map((each) => h("li", versionLine(each)))),
    theirs?.unified ? [h("h3", "What they changed"), difference(theirs)] : h("p.note", told(problem.message)),
    merge ? h("p", merge.conflicts
      ? `Both of you changed ${counted(merge.conflicts, "place")} in different ways. Merged, both versions stand there between marks, for you to decide.`
      : "Their changes and yours do not touch each other, and can be merged.") : null,
    h("p.note", "Whatever you choose, every version stays in the list of versions."),
  ], [
    ...(merge ? [["merge", "merge both", "strong"]] : []),
    ["replace", isText ? "replace theirs by mine …" : "put my values into theirs …"],
    ...(seen && isText ? [["theirs", "take theirs"]] : []),
  ], { cancel: "go on editing" });
  if (chosen === "merge") return { merged: merge, base };
  if (chosen === "theirs") return { theirs: base };
  return chosen;
}

export async function change(name, what, { tag, note = "", body } = {}) {
  // Switch a library on or off, restore a version, or delete it: only what was seen.
  const method = what ? "POST" : "DELETE";
  const path = `${pathOf(name)}${what ? `/${what}` : ""}${body || !note ? "" : `?note=${encodeURIComponent(note)}`}`;
  return ask(path, { method, body: body && { ...body, note }, headers: tag ? { "If-Match": tag } : {} });
}

export async function askForName(problem, given) {
  // A name for rules that are put on the server for the first time; null if they are not.
  const field = h("input", { value: given, required: true, pattern: "[A-Za-z][A-Za-z0-9_.\\-]{0,63}", title: "a letter, then letters, digits, _, - and .", "aria-label": "name", id: "name" });
  const names = h("datalist", { id: "names" });
  field.setAttribute("list", "names");
  ask("/v1/libraries").then((found) => fill(names, found.map((each) => h("option", { value: each.name })))).catch(() => {});
  const chosen = await choose("Put these rules on the server", [
    problem ? h("p.problem", { role: "alert" }, told(problem)) : null,
    h("label", "The name of the library. If there is one of this name, you see the difference first.", field), names,
  ], [["put", "go on", "strong"]]);
  return chosen ? field.value.trim() : null;
}

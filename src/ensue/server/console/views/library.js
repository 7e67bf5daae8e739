// One library: its text, changed and tried over the history before it is put in force. What is
// written and not put is a draft of this browser; what others put meanwhile is told.

import { to } from "../base/address.js";
import { answer, ask } from "../base/api.js";
import { choose } from "../base/dialogs.js";
import { counted, fill, h, later, notice } from "../base/dom.js";
import { guarded } from "../base/leaving.js";
import { ago } from "../base/times.js";
import { trouble } from "../base/troubles.js";
import { Draft } from "../editing/drafts.js";
import { Editor } from "../editing/editor.js";
import { change, difference, noteField, pathOf, putInForce, versionLine } from "../editing/putting.js";
import { Undo } from "../editing/undo.js";
import { Values } from "./parameters.js";
import { bring } from "./playground.js";
import { DryRun } from "./trying.js";
import { Versions } from "./versions.js";

const WATCH = 4000; // milliseconds between looks at what others have put

export function library(main, name) {
  const path = pathOf(name);
  const draft = new Draft(name);
  let base = null; // what the text was made from: its tag, text and version
  let latest = null; // what is in force, as it was seen last
  let isKept = true; // whether the browser has room for the draft
  let stopped = false;

  const head = h("section.panel", h("h1", name));
  const told = h("div", { role: "status" });
  const editor = new Editor(`the text of ${name}`, "", () => edited(), { rows: 24 });
  const undo = new Undo({ text: { element: editor.field, read: () => editor.text, write: (text) => { editor.text = text; } } }, () => edited());
  const check = later(300, async () => {
    try {
      editor.find((await ask("/v1/playground", { method: "POST", body: { library: editor.text } })).diagnostics);
    } catch (error) {
      notice(error.message, "bad");
    }
  });
  const tried = new DryRun(path, editor);
  const versions = new Versions(name, {
    show: (each) => { undo.apply({ text: each.text }); editor.field.focus(); },
    restored: () => load({ isFresh: true }),
    seen: () => latest?.tag,
  });
  const values = new Values(name, { seen: () => latest, changed: () => load() });
  const work = h("section.panel", { hidden: true }, told, editor.element,
    h("div.bar", tried.controls, h("span.grow"),
      h("button", { onclick: () => undo.undo(), title: "take back the last edit (Ctrl-Z)" }, "undo"),
      h("button", { onclick: compare, id: "compare" }, "what would change?"),
      h("button.strong", { onclick: () => put(), id: "put" }, "put in force")));

  const isChanged = () => base !== null && editor.text !== base.text;

  function edited() {
    if (!base) return;
    if (isChanged()) isKept = draft.save({ text: editor.text, base });
    else draft.discard();
    tell();
    check();
  }

  async function load({ isFresh = false } = {}) {
    try {
      const found = await answer(path);
      if (stopped) return;
      if (latest && latest.version !== found.value.version) versions.load();
      latest = { ...found.value, tag: found.tag };
      show();
      values.load();
      if (!base || isFresh) begin();
      else if (!isChanged() && latest.text !== base.text) follow();
      else if (latest.text === base.text) base = seenOf(latest);
      tell();
    } catch (error) {
      fill(head, h("h1", name), trouble(error), offered());
    }
  }

  function seenOf(found) {
    return { tag: found.tag, text: found.text, version: found.version };
  }

  function begin() {
    const kept = draft.load();
    base = kept?.base?.text !== undefined ? kept.base : seenOf(latest);
    editor.text = kept?.base ? kept.text : latest.text;
    if (!isChanged()) { draft.discard(); base = seenOf(latest); editor.text = latest.text; }
    undo.begin();
    editor.fit(10, 24);
    work.hidden = false;
    check();
    versions.load();
  }

  function follow() {
    // Nothing was written here: what others have put is shown, and can be taken back in the editor.
    base = seenOf(latest);
    undo.apply({ text: latest.text });
    notice(`\`${latest.author}\` has put version ${latest.version}; it is shown now`);
  }

  function offered() {
    // A draft of a library that is gone is not gone with it.
    const kept = draft.load();
    const open = () => { bring(kept.text, name); location.hash = "#/playground"; };
    return kept?.text ? h("p", "A draft of it is in this browser: ", h("button", { onclick: open }, "open it in the playground")) : null;
  }

  function show() {
    fill(head, h("h1", name, h("span.note", ` version ${latest.version}, `), h("span.note", ago(latest.at), ` by ${latest.author}`)),
      h("p", latest.enabled ? `${counted(latest.rules.length, "rule runs", "rules run")}: ` : "Switched off: no rule of it runs. ",
        latest.rules.map((each) => [h("a", { href: to("rules", name, each) }, each), " "])),
      latest.refusals.length ? h("details", h("summary", `${counted(latest.refused, "event")} could not be read`),
        h("ul", latest.refusals.map((each) => h("li", `${each.type} ${each.id}: ${each.problems.join("; ")}`)))) : null,
      h("div.row",
        h("button", { onclick: () => toggle(!latest.enabled), id: "switch" }, latest.enabled ? "switch off" : "switch on"),
        h("button.danger", { onclick: remove }, "delete")));
  }

  function tell() {
    if (!isChanged()) { fill(told); return; }
    const isOld = latest.text !== base.text;
    fill(told, h("div.hint.row",
      h("span", isOld ? ["Meanwhile there is ", versionLine(latest), ". Your draft began with version ", base.version, "; nothing of it is lost."]
        : [isKept ? "A draft, kept in this browser and not on the server." : "A draft that this browser has no room for: it is gone when the page is closed.", " It began with version ", base.version, "."]),
      isOld ? h("button", { onclick: theirs }, "what did they change?") : null,
      h("button", { onclick: discard }, "discard the draft")));
  }

  async function theirs() {
    await working(async () => {
      const found = await ask(`${path}/difference?from=${base.version}&to=${latest.version}`);
      const chosen = await choose(`From version ${base.version} to ${latest.version}`, [h("p", versionLine(latest)), difference(found)], [["put", "merge or put mine …", "strong"]], { cancel: "go on editing" });
      if (chosen) await put();
    });
  }

  async function discard() {
    draft.discard();
    base = seenOf(latest);
    undo.apply({ text: latest.text });
    notice("the version in force is shown; Ctrl-Z brings the draft back");
  }

  async function compare() {
    await working(async () => {
      const found = await ask(`${path}/difference`, { method: "POST", body: editor.text, type: "text/plain" });
      if (found.diagnostics.length) editor.find(found.diagnostics);
      await choose("What would change", difference(found), [], { cancel: "close" });
    });
  }

  async function put() {
    await working(async () => {
      const result = await putInForce({ name, text: editor.text, seen: base });
      if (!result) return;
      if (result.findings) {
        editor.find(result.findings);
        notice("the text has mistakes: nothing was replaced", "bad");
      } else if (result.merged) {
        base = result.base;
        undo.apply({ text: result.merged.text });
        edited();
        notice(result.merged.conflicts ? "both versions stand in the text, between marks: choose, then put it in force" : "both changes are in the text: look at it, then put it in force");
      } else if (result.theirs) {
        draft.setAside(editor.text);
        base = result.theirs;
        undo.apply({ text: base.text });
        edited();
        notice("theirs is shown; Ctrl-Z brings yours back");
      } else settle(result);
      await load();
    });
  }

  function settle({ done, tag }) {
    base = { tag, text: editor.text, version: done?.version ?? base.version };
    draft.discard();
    if (!done) { notice("nothing has changed"); return; }
    const kept = done.kept.length ? `; without interruption: ${done.kept.join(", ")}` : "";
    notice(`version ${done.version} is in force${kept}`);
    editor.find(done.warnings);
  }

  async function toggle(on) {
    await working(async () => {
      if (!on) {
        const agreed = await choose(`Switch ${name} off`, h("p", "Its rules stop, and forget what they have read so far. When it is switched on again, they begin anew."), [["off", "switch it off", "strong"]]);
        if (!agreed) return;
      }
      await change(name, on ? "enable" : "disable", { tag: latest.tag });
      notice(on ? `\`${name}\` runs, from now on` : `\`${name}\` is switched off`);
      await load();
      if (latest.text === base.text) base = seenOf(latest);
    });
  }

  async function remove() {
    await working(async () => {
      const note = noteField();
      const agreed = await choose(`Delete ${name}`, [
        h("p", "Its rules stop. Its versions are kept, and are there again when a library of this name is put."), h("label", "note", note),
      ], [["delete", "delete it", "danger"]]);
      if (!agreed) return;
      await change(name, "", { tag: latest.tag, note: note.value.trim() });
      base = null;
      location.hash = "#/libraries";
    });
  }

  async function working(action) {
    try {
      await action();
    } catch (error) {
      if (error.document?.diagnostics) editor.find(error.document.diagnostics);
      notice(error.message, "bad");
      if (error.status === 412) load();
    }
  }

  async function leave() {
    if (!isChanged()) return await choose("Leave the parameters?", h("p", `The values that you have typed for ${name} are not on the server, and are gone when you leave.`), [["leave", "leave, forget them", "danger"]], { cancel: "go on editing" });
    const chosen = await choose("Leave the editor?", h("p", `What you have changed in ${name} is not on the server. As a draft, it stays in this browser, and is there when you come back.`), [
      ["keep", "leave, keep the draft", "strong"], ["discard", "leave, discard it", "danger"],
    ], { cancel: "go on editing" });
    if (chosen === "discard") draft.discard();
    return Boolean(chosen);
  }

  const onKey = (event) => {
    const isElsewhere = /^(INPUT|SELECT)$/.test(event.target.tagName) || document.querySelector("dialog[open]");
    if (!isElsewhere) undo.key(event);
  };

  fill(main, h("p", h("a", { href: "#/libraries" }, "← all libraries")), head, values.element, work, tried.element, versions.element);
  document.addEventListener("keydown", onKey);
  guarded(() => isChanged() || (base !== null && values.isChanged), leave);
  load();
  const watching = setInterval(() => { if (!document.hidden && base && !document.querySelector("dialog[open]")) load(); }, WATCH);
  return () => {
    stopped = true;
    clearInterval(watching);
    document.removeEventListener("keydown", onKey);
  };
}

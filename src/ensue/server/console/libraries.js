// Libraries: their text, changed and tried over the history before it goes live; their versions.

import { ask } from "./api.js";
import { ago, counted, fill, h, heads, later, notice, number, opens } from "./dom.js";
import { Editor } from "./editor.js";

export function libraries(main, { parts }) {
  return parts.length && parts[0] ? one(main, parts[0]) : list(main);
}

function list(main) {
  const body = h("tbody");
  async function load() {
    try {
      const found = await ask("/v1/libraries");
      const open = (name) => { location.hash = `#/libraries/${encodeURIComponent(name)}`; };
      fill(body, found.length ? found.map((each) => h("tr", opens(() => open(each.name)),
        h("td", h("a", { href: `#/libraries/${encodeURIComponent(each.name)}` }, each.name)),
        h("td.number", each.version),
        h("td", each.enabled ? counted(each.rules.length, "rule runs", "rules run") : h("span.note", "rests")),
        h("td.number", number(each.outputs)),
        h("td", ago(each.at), h("span.note", ` by ${each.author}`)),
        h("td.note", each.refused ? `${counted(each.refused, "event")} could not be read` : each.note))) : h("tr", h("td.note", { colSpan: 6 }, "There is none yet.")));
    } catch (error) {
      fill(body, h("tr", h("td.problem", { colSpan: 6 }, error.message)));
    }
  }
  fill(main, h("div.bar", h("a.button", { href: "#/playground" }, "write a new one")),
    h("div.scroll", h("table.libraries", heads("library", "#version", "state", "#outputs", "changed", "note"), body)));
  load();
}

function one(main, name) {
  const path = `/v1/libraries/${encodeURIComponent(name)}`;
  const head = h("section.panel");
  const tried = h("section.panel", { hidden: true, "aria-live": "polite" });
  const versions = h("tbody");
  const check = later(300, async () => {
    try {
      editor.find((await ask("/v1/playground", { method: "POST", body: { library: editor.text } })).diagnostics);
    } catch (error) {
      notice(error.message, "bad");
    }
  });
  const editor = new Editor(`the text of ${name}`, "", check, { rows: 24 });
  const since = h("input", { type: "datetime-local", "aria-label": "since", id: "since" });

  async function load() {
    try {
      const found = await ask(path);
      fill(head, h("h1", name, h("span.note", ` version ${found.version}, ${ago(found.at)} by ${found.author}`)),
        h("p", found.enabled ? `${counted(found.rules.length, "rule runs", "rules run")}: ` : "It rests, and no rule of it runs. ",
          found.rules.map((each) => [h("a", { href: `#/rules/${encodeURIComponent(name)}/${encodeURIComponent(each)}` }, each), " "])),
        found.refusals.length ? h("details", h("summary", `${counted(found.refused, "event")} could not be read`),
          h("ul", found.refusals.map((each) => h("li", `${each.type} ${each.id}: ${each.problems.join("; ")}`)))) : null,
        h("div.row",
          h("button", { onclick: () => act(found.enabled ? "disable" : "enable") }, found.enabled ? "let it rest" : "let it run"),
          h("button.danger", { onclick: remove }, "delete")));
      if (!editor.text) { editor.text = found.text; editor.fit(10, 24); check(); }
      const past = await ask(`${path}/versions`);
      fill(versions, past.map((each) => h("tr",
        h("td.number", each.version), h("td", ago(each.at), h("span.note", ` by ${each.author}`)), h("td.note", each.note),
        h("td", each.in_force ? h("span.badge", "in force") : [
          h("button.quiet", { onclick: () => { editor.text = each.text; check(); } }, "show"),
          h("button.quiet", { onclick: () => act("rollback", { version: each.version }) }, "put back")]))));
    } catch (error) {
      fill(head, h("p.problem", error.message));
    }
  }

  async function act(what, body) {
    try {
      const done = await ask(`${path}/${what}`, { method: "POST", body });
      notice(`version ${done.version} ${done.enabled ? "runs" : "rests"}`);
      if (what === "rollback") editor.text = "";
      load();
    } catch (error) { notice(error.message, "bad"); }
  }

  async function remove() {
    if (!confirm(`Delete ${name}? Its versions are kept, and it can be put again.`)) return;
    try {
      await ask(path, { method: "DELETE" });
      location.hash = "#/libraries";
    } catch (error) { notice(error.message, "bad"); }
  }

  async function put() {
    try {
      const done = await ask(path, { method: "PUT", body: editor.text, type: "text/plain" });
      notice(done.is_new ? `version ${done.version} is in force; kept their state: ${done.kept.join(", ") || "none"}` : "nothing has changed");
      editor.find(done.warnings);
      load();
    } catch (error) {
      if (error.document?.diagnostics) editor.find(error.document.diagnostics);
      notice(error.message, "bad");
    }
  }

  async function dry() {
    tried.hidden = false;
    fill(tried, h("p.note", "running over the history …"));
    const body = { text: editor.text };
    if (since.value) body.since = new Date(since.value).toISOString();
    try {
      const found = await ask(`${path}/dry-run`, { method: "POST", body });
      const other = found.difference;
      fill(tried, h("h2", `It would have fired ${counted(found.outputs, "time")}`, h("span.note", ` (${found.seconds} s)`)),
        found.whole ? null : h("p.problem", found.why),
        h("table", heads("rule", "#outputs", "#keys", "most often for"),
          h("tbody", found.rules.map((each) => h("tr", h("td", each.rule), h("td.number", number(each.outputs)), h("td.number", number(each.keys)),
            h("td", each.top_keys.slice(0, 6).map(([key, count]) => h("span.chip", `${key || "–"} ${count}`))))))),
        other ? [h("h2", "Compared with the version in force"),
          h("dl.facts", h("dt", "both"), h("dd", number(other.both)), h("dt", "only the new one"), h("dd.good", `+${number(other.only_new)}`), h("dt", "only the one in force"), h("dd.bad", `−${number(other.only_in_force)}`)),
          h("ul.outputs", [...other.new_outputs.slice(0, 5).map((each) => ["+", each]), ...other.missing_outputs.slice(0, 5).map((each) => ["−", each])]
            .map(([sign, each]) => h(`li.${sign === "+" ? "good" : "bad"}`, `${sign} ${each.correlation} ${each.partitionkey ?? ""} ${each.time} `, h("code", JSON.stringify(each.data ?? null)))))] : null);
    } catch (error) {
      if (error.document?.diagnostics) editor.find(error.document.diagnostics);
      fill(tried, h("p.problem", error.message));
    }
    tried.scrollIntoView({ block: "nearest" });
  }

  fill(main, h("p", h("a", { href: "#/libraries" }, "← all libraries")), head,
    h("section.panel", editor.element,
      h("div.bar", h("label", "over the history since ", since), h("button", { onclick: dry, id: "dry" }, "try it"), h("span.grow"), h("button.strong", { onclick: put, id: "put" }, "put in force"))),
    tried,
    h("section.panel", h("h2", "Versions"), h("div.scroll", h("table.versions", heads("#version", "put", "note", "state"), versions))));
  load();
}

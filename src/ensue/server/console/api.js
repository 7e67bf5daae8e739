// Requests to the server that this page came from: JSON, problems, and streams that go on.
// A page below `/channels/NAME/` is about that channel, and asks there.

let token = sessionStorage.getItem("ensue-token") || "";
let asking = null;

export const channel = (location.pathname.match(/^\/channels\/([^/]+)/) || ["", "main"])[1];
const base = channel === "main" ? "" : `/channels/${channel}`;

export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || `the server has answered ${status}`);
    this.status = status;
    this.document = document;
  }
}

async function refusal(answer) {
  // What stands between the page and the server may answer with something else than a problem.
  return new Problem(answer.status, await answer.json().catch(() => ({})));
}

function headers(more) {
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

export async function ask(path, { method = "GET", body, type = "application/json", signal } = {}) {
  let answer;
  const options = { method, signal, headers: headers(body === undefined ? {} : { "Content-Type": type }) };
  if (body !== undefined) options.body = type === "application/json" ? JSON.stringify(body) : body;
  try {
    answer = await fetch(base + path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "the server cannot be reached; it is tried again" });
  }
  if (answer.status === 401) {
    await askForToken();
    return ask(path, { method, body, type, signal });
  }
  if (answer.status === 204) return null;
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

export async function askForToken() {
  // One question at a time, however many requests wait for its answer.
  asking ??= new Promise((resolve) => {
    const dialog = document.createElement("dialog");
    const form = document.createElement("form");
    form.method = "dialog";
    const label = document.createElement("label");
    label.textContent = "A token is needed. It is kept until this tab is closed.";
    const input = document.createElement("input");
    input.type = "password";
    input.autocomplete = "off";
    input.required = true;
    input.id = "token";
    const button = document.createElement("button");
    button.textContent = "use it";
    label.append(input);
    form.append(label, button);
    dialog.append(form);
    document.body.append(dialog);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    form.addEventListener("submit", () => {
      token = input.value.trim();
      sessionStorage.setItem("ensue-token", token);
      dialog.remove();
      asking = null;
      resolve();
    });
    dialog.showModal();
  });
  return asking;
}

export class Stream {
  // Server-sent events over fetch, which can carry a token; goes on from the last id by itself.
  // It begins `back` entries before now, so that there is something to see at once.
  constructor(parameters, { given, opened, failed }, back = 0) {
    this.parameters = parameters;
    this.back = back;
    this.given = given;
    this.opened = opened;
    this.failed = failed;
    this.abort = new AbortController();
    this.run();
  }

  close() {
    this.abort.abort();
  }

  async first() {
    const { position, first_position: kept } = await ask("/v1/figures?seconds=1");
    return Math.max(kept - 1, position - this.back);
  }

  async run() {
    while (!this.abort.signal.aborted) {
      try {
        await this.read();
      } catch (error) {
        if (this.abort.signal.aborted) return;
        this.failed(error);
        // What the journal has lost is not waited for.
        if (error.status === 410) this.last = undefined;
        else if (error.status >= 400 && error.status < 500 && error.status !== 429) return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  async read() {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(this.parameters)) {
      if (value) query.set(name, value);
    }
    this.last ??= await this.first();
    query.set("after", this.last);
    const answer = await fetch(`${base}/v1/events?${query}`, {
      headers: headers({ Accept: "text/event-stream" }),
      signal: this.abort.signal,
    });
    if (answer.status === 401) {
      await askForToken();
      return;
    }
    if (!answer.ok) throw await refusal(answer);
    this.opened();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      waiting += value;
      const frames = waiting.split("\n\n");
      waiting = frames.pop();
      // An id without data says from where to go on if nothing comes.
      const all = frames.map(read);
      for (const each of all) if (each.id) this.last = each.id;
      const wrong = all.find((each) => each.event === "problem");
      if (wrong) throw new Problem(wrong.data.status, wrong.data);
      const found = all.filter((each) => each.data !== undefined);
      if (found.length) this.given(found);
    }
  }
}

function read(frame) {
  const found = {};
  for (const line of frame.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) found[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (found.data !== undefined) found.data = JSON.parse(found.data);
  return found;
}

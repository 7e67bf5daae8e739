// Requests to the server that this page came from: JSON, problems, and streams that go on.
// A page below `/channels/NAME/` is about that channel, and asks there.

import { wanted, withToken } from "./token.js";

export const channel = (location.pathname.match(/^\/channels\/([^/]+)/) || ["", "main"])[1];
export const base = channel === "main" ? "" : `/channels/${channel}`;

export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || `The server has answered with status ${status}, and does not say why.`);
    this.status = status;
    this.document = document;
  }
}

async function refusal(answer) {
  // What stands between the page and the server may answer with something else than a problem.
  return new Problem(answer.status, await answer.json().catch(() => ({})));
}

export async function ask(path, options) {
  // The JSON of an answer; null where there is none.
  return (await answer(path, options)).value;
}

export async function answer(path, { method = "GET", body, type = "application/json", headers = {}, signal } = {}) {
  // The JSON of an answer, and the tag of what it shows.
  const sent = withToken(body === undefined ? headers : { ...headers, "Content-Type": type });
  const options = { method, signal, headers: sent };
  if (body !== undefined) options.body = type === "application/json" ? JSON.stringify(body) : body;
  let given;
  try {
    given = await fetch(base + path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The server cannot be reached. It is tried again." });
  }
  if (given.status === 401) {
    if (await wanted(sent)) return answer(path, { method, body, type, headers, signal });
    throw new Problem(401, { detail: "The server wants a token. Give one by the button at the top." });
  }
  if (!given.ok) throw await refusal(given);
  return { value: given.status === 204 ? null : await given.json(), tag: given.headers.get("ETag") };
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
    const sent = withToken({ Accept: "text/event-stream" });
    const answer = await fetch(`${base}/v1/events?${query}`, {
      headers: sent,
      signal: this.abort.signal,
    });
    if (answer.status === 401) {
      if (await wanted(sent)) return;
      throw new Problem(401, { detail: "The server wants a token. Give one by the button at the top." });
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

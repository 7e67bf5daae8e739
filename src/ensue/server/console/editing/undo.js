// Undo and redo over several fields at once: choosing an example, or an earlier version, is an edit
// as typing is. The browser's own undo knows nothing of texts that a page puts into a field.

const TOGETHER = 1000; // milliseconds within which typing is one edit
const MOST = 500;
const MOST_LETTERS = 20_000_000; // of all that can be taken back

export class Undo {
  // `fields`: by name, each with an `element` that is typed into, and `read` and `write` of its text.
  constructor(fields, changed) {
    this.fields = fields;
    this.changed = changed;
    this.past = [];
    this.future = [];
    this.now = this.read();
    this.last = { field: "", kind: "", at: 0 };
    for (const [name, field] of Object.entries(fields)) {
      field.element.addEventListener("input", (event) => this.typed(name, event.inputType || "", event.data));
      field.element.addEventListener("beforeinput", (event) => {
        // By the menu of the browser.
        if (event.inputType === "historyUndo") { event.preventDefault(); this.undo(); }
        if (event.inputType === "historyRedo") { event.preventDefault(); this.redo(); }
      });
    }
  }

  read() {
    return Object.fromEntries(Object.entries(this.fields).map(([name, field]) => [name, field.read()]));
  }

  begin() {
    // What the fields hold now is where everything begins.
    this.past = [];
    this.future = [];
    this.now = this.read();
  }

  typed(field, kind, data) {
    const now = this.read();
    const at = Date.now();
    const isOneWord = kind === this.last.kind && field === this.last.field && at - this.last.at < TOGETHER
      && data !== " " && /^(insertText|deleteContent(Backward|Forward))$/.test(kind);
    this.last = { field, kind, at };
    if (isOneWord && this.past.length) this.now = now;
    else this.push(now);
    this.future = [];
  }

  push(now) {
    this.past = [...this.past, this.now].slice(-MOST);
    this.now = now;
    let letters = 0;
    const first = this.past.findLastIndex((each) => (letters += lettersIn(each)) > MOST_LETTERS);
    this.past = this.past.slice(first + 1);
  }

  apply(values) {
    // Put texts into the fields, as one edit.
    const now = { ...this.now, ...values };
    if (JSON.stringify(now) === JSON.stringify(this.now)) return;
    this.push(now);
    this.future = [];
    this.write();
  }

  undo() {
    if (!this.past.length) return;
    this.future.push(this.now);
    this.go(this.past.pop());
  }

  redo() {
    if (!this.future.length) return;
    this.past.push(this.now);
    this.go(this.future.pop());
  }

  go(values) {
    const before = this.now;
    this.now = values;
    this.write();
    const name = Object.keys(values).find((each) => values[each] !== before[each]);
    const field = this.fields[name]?.element;
    if (!field) return;
    const place = endOfChange(before[name], values[name]);
    field.focus({ preventScroll: true });
    field.setSelectionRange?.(place, place);
  }

  write() {
    this.last = { field: "", kind: "", at: 0 };
    for (const [name, field] of Object.entries(this.fields)) {
      if (field.read() !== this.now[name]) field.write(this.now[name]);
    }
    this.changed();
  }

  key(event) {
    // Whether a key was one of ours.
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return false;
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return false;
    event.preventDefault();
    if (key === "y" || event.shiftKey) this.redo();
    else this.undo();
    return true;
  }
}

function lettersIn(values) {
  return Object.values(values).reduce((sum, each) => sum + each.length, 0);
}

function endOfChange(before, after) {
  let same = 0;
  const most = Math.min(before.length, after.length);
  while (same < most && before[before.length - 1 - same] === after[after.length - 1 - same]) same += 1;
  return after.length - same;
}

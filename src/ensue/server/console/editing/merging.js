// Two changes of one text, merged line by line. Changes that lie apart are both made; where they do
// not, both versions of the place stand in the text, between marks, as diff3 does it.
// What differs is found by the greedy search of Myers. Differences that are shown come from the server.

const MOST_STEPS = 500; // lines that differ; beyond, the middle is taken as replaced

export function merged(base, mine, theirs) {
  // The text with both changes, and how many places both have changed in different ways.
  const lines = base.split("\n");
  const [one, other] = [mine, theirs].map((text) => chunks(lines, text));
  const found = [];
  let conflicts = 0;
  let at = 0;
  while (at < lines.length + 1) {
    // A place: lines of the base that one or both have changed, as far as the changes reach into each other.
    let end = at;
    for (let more = true; more;) {
      const reach = Math.max(end, ...[one, other].flatMap((side) => side.filter((each) => each.begin <= end && each.end >= at).map((each) => each.end)));
      more = reach > end;
      end = reach;
    }
    const [a, b] = [one, other].map((side) => replaced(lines, side, at, end));
    const was = lines.slice(at, end);
    if (same(a, b) || same(b, was)) found.push(...a);
    else if (same(a, was)) found.push(...b);
    else {
      conflicts += 1;
      found.push("// <<<<<<< yours", ...a, "// ======= theirs", ...b, "// >>>>>>>");
    }
    if (end < lines.length) found.push(lines[end]);
    at = end + 1;
  }
  return { text: found.join("\n"), conflicts };
}

function compared(a, b) {
  // Each line of both, in order, as `["same" | "gone" | "new", line]`.
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const same = (line) => ["same", line];
  return [
    ...a.slice(0, head).map(same),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map(same),
  ];
}

function middle(a, b) {
  const trace = [];
  let reach = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, MOST_STEPS); d += 1) {
    trace.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      const isDown = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = isDown ? reach.get(k + 1) : reach.get(k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return way(trace, a, b);
    }
  }
  return [...a.map((line) => ["gone", line]), ...b.map((line) => ["new", line])];
}

function way(trace, a, b) {
  const found = [];
  let [x, y] = [a.length, b.length];
  for (let d = trace.length - 1; d >= 0; d -= 1) {
    const reach = trace[d];
    const k = x - y;
    const isDown = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const from = isDown ? k + 1 : k - 1;
    const [atX, atY] = [reach.get(from), reach.get(from) - from];
    while (x > Math.max(atX, 0) && y > Math.max(atY, 0)) {
      x -= 1;
      y -= 1;
      found.push(["same", a[x]]);
    }
    if (d > 0) found.push(isDown ? ["new", b[atY]] : ["gone", a[atX]]);
    [x, y] = [atX, atY];
  }
  return found.reverse();
}

function chunks(lines, text) {
  // What a side has put in the place of lines `begin` to `end` of the base, the end left out.
  const found = [];
  let at = 0;
  let open = null;
  for (const [kind, line] of compared(lines, text.split("\n"))) {
    if (kind === "same") {
      open = null;
      at += 1;
      continue;
    }
    if (!open) found.push(open = { begin: at, end: at, lines: [] });
    if (kind === "new") open.lines.push(line);
    else { at += 1; open.end = at; }
  }
  return found;
}

function replaced(lines, side, begin, end) {
  const found = [];
  let at = begin;
  for (const each of side) {
    if (each.begin < begin || each.end > end) continue;
    found.push(...lines.slice(at, each.begin), ...each.lines);
    at = each.end;
  }
  return [...found, ...lines.slice(at, end)];
}

function same(a, b) {
  return a.length === b.length && a.every((each, at) => each === b[at]);
}

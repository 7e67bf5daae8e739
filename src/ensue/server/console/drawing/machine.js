// A machine as the server draws it, with the number of keys beside each of its states.

import { h, number, s } from "../base/dom.js";

const SCALE = 1.15;

export function machine(text) {
  // The drawing brings a style of its own, which the page's policy does not admit: ours is used.
  const plain = text.replace(/<style>[\s\S]*?<\/style>/g, "");
  const parsed = new DOMParser().parseFromString(plain, "image/svg+xml").documentElement;
  parsed.querySelectorAll("style, script").forEach((each) => each.remove());
  const drawing = document.importNode(parsed, true);
  drawing.classList.add("machine");
  drawing.setAttribute("role", "img");
  // As large as its letters need to be read; what is wider than its place is scrolled.
  const [, , width, height] = drawing.getAttribute("viewBox").split(/\s+/).map(Number);
  drawing.setAttribute("width", Math.round(width * SCALE));
  drawing.setAttribute("height", Math.round(height * SCALE));
  return drawing;
}

export function occupy(drawing, states) {
  // Write how many keys stand in each state; none where it is empty.
  drawing.querySelectorAll(".count").forEach((each) => each.remove());
  for (const node of drawing.querySelectorAll("[data-node]")) {
    const count = states[node.dataset.node];
    node.classList.toggle("occupied", Boolean(count));
    if (!count) continue;
    const circle = node.querySelector("circle");
    const x = Number(circle.getAttribute("cx"));
    const y = Number(circle.getAttribute("cy")) - 11;
    const words = number(count);
    const width = 8 + 6 * words.length;
    node.append(s("g", { class: "count" },
      s("rect", { x: x - width / 2, y: y - 11, width, height: 14, rx: 7 }),
      s("text", { x, y }, words)));
  }
}

export function legend(keys) {
  return h("p.note", "Circles are states, boxes are the steps between them; a full circle is where every key begins. ",
    h("span.badge", number(keys)), " keys are in progress; the numbers at the circles say how many are where.");
}

// Elements, made and filled: `h("p.note", {title: "x"}, "text", child)`.
// Text is always set as text, so that nothing that an event holds can become markup.

export function h(what, ...rest) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const each of rest) add(element, each);
  return element;
}

function add(element, what) {
  if (what === null || what === undefined || what === false) return;
  if (Array.isArray(what)) what.forEach((each) => add(element, each));
  else if (what instanceof Node) element.append(what);
  else if (typeof what === "object") {
    for (const [name, value] of Object.entries(what)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      // Properties take only what cannot be markup: `innerHTML` would take a list of texts.
      else if (name in element && ["boolean", "number"].includes(typeof value)) element[name] = value;
      else element.setAttribute(name, value === true ? "" : value);
    }
  } else element.append(String(what));
}

const SVG = "http://www.w3.org/2000/svg";

export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  for (const each of children) element.append(each);
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren();
  children.forEach((each) => add(element, each));
  return element;
}

export function refill(element, ...children) {
  // As `fill`, for what is told anew every second: whoever goes through it by keys stays where they are.
  const place = [];
  const focused = document.activeElement;
  for (let each = element.contains(focused) ? focused : element; each !== element; each = each.parentElement) {
    place.unshift([...each.parentElement.children].indexOf(each));
  }
  fill(element, ...children);
  if (!place.length) return element;
  const found = place.reduce((within, at) => within?.children[at], element);
  if (found?.tagName === focused.tagName) found.focus({ preventScroll: true });
  return element;
}

export function opens(open) {
  // A row that is opened by a click or by Enter; links and buttons in it lead where they say.
  const isOwn = (event) => !event.target.closest("a, button");
  return {
    tabindex: "0", "data-row": true,
    onclick: (event) => isOwn(event) && open(),
    onkeydown: (event) => event.key === "Enter" && isOwn(event) && open(),
  };
}

export function heads(...names) {
  // The heads of a table's columns; `#` marks a column of numbers.
  return h("thead", h("tr", names.map((name) => (name.startsWith("#") ? h("th.number", name.slice(1)) : h("th", name)))));
}

export function told(text) {
  // What the server says, as a sentence: names in its marks become code.
  return text.split("`").map((part, at) => {
    if (at % 2) return h("code", part);
    return at ? part : part.charAt(0).toUpperCase() + part.slice(1);
  });
}

export function plain(text) {
  return text.replaceAll("`", "");
}

export function scrolled(name, ...content) {
  // What may be wider than its place can be scrolled by keys as well, so it has a name.
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": name }, ...content);
}

export function unseen(text) {
  // A heading for those who go from heading to heading; the others see where they are.
  return h("h1.unseen", text);
}

export function later(milliseconds, work) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), milliseconds);
  };
}

export function notice(text, kind = "") {
  const place = document.getElementById("notice");
  fill(place, h(`p.${kind || "plain"}`, told(text)));
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => fill(place), 6000);
}

export function number(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (Math.abs(value) >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
  if (Number.isInteger(value)) return String(value);
  return String(+value.toFixed(Math.abs(value) < 10 ? 2 : 1));
}

export function counted(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function json(value) {
  // JSON with its kinds of values told apart by colour.
  const text = JSON.stringify(value, null, 2);
  const made = h("pre.json", { tabindex: "0" });
  const parts = text.split(/("(?:\\.|[^"\\])*"(?:\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/);
  for (const part of parts) {
    let kind = "";
    if (/^".*":$/s.test(part)) kind = "key";
    else if (part.startsWith('"')) kind = "text";
    else if (/^(true|false|null)$/.test(part)) kind = "word";
    else if (/^-?\d/.test(part)) kind = "number";
    made.append(kind ? h(`span.${kind}`, part) : part);
  }
  return made;
}

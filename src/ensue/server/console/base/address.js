// The address of the page: `#/rules/lib/rule?key=x` is the view `rules`, with the parts `lib` and
// `rule`, and `key`. What a view shows is in it, so that it can be linked.

export function route(hash = location.hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").map(decoded);
  return { view: view || "stream", parts, query: new URLSearchParams(query) };
}

function decoded(part) {
  // An address may be typed by hand: what is not encoded stands for itself.
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function to(view, ...rest) {
  // The address of a view: parts of its path, and at the end its query, if there is one.
  const query = typeof rest.at(-1) === "object" ? rest.pop() : {};
  const path = [view, ...rest.map((each) => encodeURIComponent(each))].join("/");
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return [...given].length ? `#/${path}?${given}` : `#/${path}`;
}

export function put(address) {
  // The view itself has changed what it shows: there is nothing to draw, and no way back to it.
  if (address !== location.hash) history.replaceState(null, "", address);
}

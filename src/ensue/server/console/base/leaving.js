// An editor with changes that are only in this browser is not left without a question.

let guard = null;

export function guarded(isChanged, ask) {
  // `ask` tells whether the view may be left; it is asked while `isChanged` says so.
  guard = { isChanged, ask };
}

export function release() {
  guard = null;
}

export function isHeld() {
  return Boolean(guard?.isChanged());
}

export async function mayLeave() {
  return !isHeld() || guard.ask();
}

addEventListener("beforeunload", (event) => {
  if (isHeld()) event.preventDefault();
});

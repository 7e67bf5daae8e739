"""`bind latest`: the events of the latest match of an expression.

In come what a branch remembers, an expression and a stretch of readings; out goes a `Match`:

    port       its last event
    x + y      the latest match of each
    x | y      the one that starts later; then the one whose last event is later; then the left
    x ; y      the latest match of y, with the latest match of x that lies before it
    x ; timeout(D)   of the matches of x whose time is up, the one that starts later

At a trigger it is the latest match in which the event just read takes part: of `x | y` among the
sides in which it does, of `x ; timeout(D)` among the matches whose time is up at just this firing.
Whether there is a match at all is asked of `memory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ensue.engine.reference.memory import NEVER, BranchMemory, Place
from ensue.lang.syntax import Both, Either, Filter, Labelled, PortRef, Then, Timeout, Times


@dataclass(frozen=True, slots=True)
class Match:
    """A match: the places of its first and last reading, and the places of each port's events."""

    first: int
    last: int
    places: tuple[tuple[str, int], ...]

    @property
    def bound(self) -> dict[str, int]:
        """The event that each port stands for: the last of its events."""
        found: dict[str, int] = {}
        for port, place in self.places:
            found[port] = max(place, found.get(port, place))
        return found


def latest(
    memory: BranchMemory, x: Filter, start: Place, end: int, *, with_last: bool = False
) -> Match | None:
    """The latest match among the readings from `start` to `end`.

    `with_last` asks for the latest in which the last of them takes part, and it does.
    """
    match x:
        case PortRef(name):
            return _last_event(memory, name, start, end)
        case Timeout():
            raise AssertionError("`;` asks for its timeouts itself, with what is left of them")
        case Labelled(_, body):
            return latest(memory, body, start, end, with_last=with_last)
        case Both(parts):
            return _joined(
                latest(
                    memory,
                    part,
                    start,
                    end,
                    with_last=with_last and memory.takes_part(part, start, end),
                )
                for part in parts
            )
        case Either(parts):
            taking = [p for p in parts if not with_last or memory.takes_part(p, start, end)]
            return _later(latest(memory, p, start, end, with_last=with_last) for p in taking)
        case Then(parts):
            return _latest_chain(memory, parts, start, end, with_last)
        case Times(body, count):
            return _latest_chain(memory, (body,) * count, start, end, with_last)


def _last_event(memory: BranchMemory, port: str, start: Place, end: int) -> Match | None:
    for at in range(end - 1, -1, -1):
        if at < start:
            return None
        if port in memory.readings[at].ports:
            return Match(at, at, ((port, at),))
    return None


def _joined(matches: Iterable[Match | None]) -> Match | None:
    """The matches of several parts as one match; None if a part has none."""
    found = []
    for each in matches:
        if each is None:
            return None
        found.append(each)
    places = tuple(place for each in found for place in each.places)
    return Match(min(each.first for each in found), max(each.last for each in found), places)


def _later(matches: Iterable[Match | None]) -> Match | None:
    """The match that starts later, then the one whose last event is later, then the first."""
    best: Match | None = None
    for each in matches:
        if each is not None and (best is None or (each.first, each.last) > (best.first, best.last)):
            best = each
    return best


def _latest_chain(
    memory: BranchMemory, parts: Sequence[Filter], start: Place, end: int, with_last: bool
) -> Match | None:
    """`x ; y ; ...`, from the right: each part as late as the one behind it allows."""
    begins = list(memory.begins(parts, start))
    found: list[Match | None] = []
    for number in range(len(parts) - 1, -1, -1):
        part, is_last = parts[number], number == len(parts) - 1
        if begins[number] == NEVER:
            return None
        if isinstance(part, Timeout):
            # It counts from all that is left of it, so that is found together with it.
            by = end - 1 if with_last and is_last else None
            found.append(_latest_timed(memory, parts[:number], part, start, end, by))
            break
        one = latest(memory, part, begins[number], end, with_last=with_last and is_last)
        if one is None:
            return None
        found.append(one)
        end = one.first
    return _joined(reversed(found))


def _latest_timed(
    memory: BranchMemory,
    left: Sequence[Filter],
    timeout: Timeout,
    start: Place,
    end: int,
    by: int | None,
) -> Match | None:
    """The latest match of `left` whose time was up before `end`, or just at the firing `by`."""
    best: Match | None = None
    for firing, at in memory.timed(left, start, end, timeout.after.microseconds):
        if by is not None and firing != by:
            continue
        if best is not None and at < best.first:
            # What ends here starts before it, and so earlier than what was found.
            break
        one = _latest_chain(memory, left, start, at + 1, with_last=True)
        if one is not None and (best is None or one.first > best.first):
            best = Match(one.first, firing, one.places)
    return best

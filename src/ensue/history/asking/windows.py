"""From a temporal term and the times of X to where in a store its Y can be, and which Y count.

In come a term and an `Interval`; out goes a `Search`: a window that no Y lies outside of, a test of
the times of each Y, surely or possibly, and how many are needed. All conditions of §III and §IV of
the paper and of Allen stand here and in `intervals`; filters are `asker`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ensue.history.asking.intervals import relates
from ensue.history.publication import Interval
from ensue.history.store import FOREVER, LONG_AGO, Window
from ensue.lang.expressions.tree import After, Before, During, Related


class Search(NamedTuple):
    window: Window
    admits: Callable[[Interval], bool]
    times: int = 1


def search_of(
    term: After | Before | During | Related, x: Interval, possibly: bool
) -> Search | None:
    """Where to look; None if X has no end yet, and the term refers to it."""
    if isinstance(term, Related):
        return _related(term, x, possibly)
    if term.reference == "start":
        low, high = x.start, x.start_until
    elif x.end is None or x.end_until is None:
        return None
    else:
        low, high = x.end, x.end_until
    match term:
        case After():
            return _after(low, high, term.limit, term.times, possibly)
        case Before():
            return _before(low, high, term.limit, term.times, possibly)
        case During():
            return _during(low, high, term.times, possibly)


def _after(low: int, high: int, limit: int | None, times: int, possibly: bool) -> Search:
    """Y ended 1 to `limit` microseconds before the reference: time has no finer step."""
    most = FOREVER if limit is None else limit

    def admits(y: Interval) -> bool:
        if y.end is None or y.end_until is None:
            return False
        return _lies_within(low - y.end_until, high - y.end, most, possibly)

    earliest = LONG_AGO if limit is None else low - limit
    return Search(Window("ended", earliest, high - 1), admits, times)


def _before(low: int, high: int, limit: int | None, times: int, possibly: bool) -> Search:
    most = FOREVER if limit is None else limit

    def admits(y: Interval) -> bool:
        return _lies_within(y.start - high, y.start_until - low, most, possibly)

    latest = FOREVER - 1 if limit is None else high + limit
    return Search(Window("started", low + 1, latest), admits, times)


def _lies_within(least: int, greatest: int, most: int, possibly: bool) -> bool:
    """Whether a distance between `least` and `greatest` is one of 1 to `most`."""
    if possibly:
        return greatest >= 1 and least <= most
    return least >= 1 and greatest <= most


def _during(low: int, high: int, times: int, possibly: bool) -> Search:
    def admits(y: Interval) -> bool:
        if possibly:
            last = FOREVER if y.end_until is None else y.end_until
            return max(low, y.start) <= min(high, last)
        return y.start_until <= low and (y.end is None or y.end >= high)

    return Search(Window("overlapping", low, high), admits, times)


def _related(term: Related, x: Interval, possibly: bool) -> Search | None:
    if term.reference == "start":
        x = Interval(x.start, x.start_until, x.start, x.start_until)
    elif term.reference == "end":
        if x.end is None or x.end_until is None:
            return None
        x = Interval(x.end, x.end_until, x.end, x.end_until)
    relation = term.relation
    if x.end is None or x.end_until is None:
        # Only the relations that leave the end of X out can be told.
        if relation not in ("AFTER", "MET_BY"):
            return None
        end = end_until = x.start
    else:
        end, end_until = x.end, x.end_until
    match relation:
        case "BEFORE":
            window = Window("started", end + 1)
        case "AFTER":
            window = Window("ended", high=x.start_until - 1)
        case "MEETS":
            window = Window("started", end, end_until)
        case "MET_BY":
            window = Window("ended", x.start, x.start_until)
        case "STARTS" | "STARTED_BY" | "EQUALS":
            window = Window("started", x.start, x.start_until)
        case "FINISHES" | "FINISHED_BY":
            window = Window("ended", end, end_until)
        case "OVERLAPS":
            window = Window("overlapping", end, end_until)
        case "CONTAINS":
            window = Window("ended", x.start + 1, end_until)
        case _:  # DURING, OVERLAPPED_BY
            window = Window("overlapping", x.start, x.start_until)
    return Search(window, lambda y: relates(relation, x, y, possibly))

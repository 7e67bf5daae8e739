"""Zones: sets of possible times of moments, as difference bound matrices.

A zone has the present (place 0) and some past moments (places 1, 2, ..., in their order).
`zone[i][j]` bounds the *time of i minus the time of j*. A zone is always closed: each bound is the
tightest that follows from all bounds. A zone without past moments is the single point `PRESENT`.

A bound is `at_most(c)` or `less_than(c)`, held as the integers 2c + 1 and 2c, so that the tighter
of two bounds is the smaller number. Time is dense in zones, although the clock counts microseconds:
a path without dense times has none in microseconds, and the times of a path are found as integers
(`earliest_times`). To take `<` for "one microsecond less" would be exact as well, but bounds would
creep by one in every round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Bound = int
UNBOUNDED: Bound = 1 << 90
_LARGE = 1 << 80

Zone = tuple[tuple[Bound, ...], ...]

Constraint = tuple[int, int, Bound]
"""`(i, j, bound)` on the time of i minus the time of j."""


def at_most(microseconds: int) -> Bound:
    return 2 * microseconds + 1


def less_than(microseconds: int) -> Bound:
    return 2 * microseconds


NOTHING = at_most(0)
PRESENT: Zone = ((NOTHING,),)


def _sum(a: Bound, b: Bound) -> Bound:
    if a > _LARGE or b > _LARGE:
        return UNBOUNDED
    return (a & -2) + (b & -2) + (a & b & 1)


def later(zone: Zone) -> Zone:
    """The zone after any amount of time has passed."""
    if len(zone) == 1:
        return zone
    first = (NOTHING, *(UNBOUNDED for _ in zone[1:]))
    return (first, *zone[1:])


def constrained(zone: Zone, constraints: Iterable[Constraint]) -> Zone | None:
    """The part of a zone in which constraints hold, or None if it is empty."""
    rows: list[list[Bound]] | None = None
    current: Sequence[Sequence[Bound]] = zone
    for i, j, bound in constraints:
        if bound >= current[i][j]:
            continue
        if _sum(current[j][i], bound) < NOTHING:
            return None
        if rows is None:
            current = rows = [list(row) for row in zone]
        _tighten(rows, i, j, bound)
    return zone if rows is None else tuple(tuple(row) for row in rows)


def _tighten(rows: list[list[Bound]], i: int, j: int, bound: Bound) -> None:
    """Lower one bound of a closed zone, and close it again."""
    to_i = [row[i] for row in rows]
    from_j = list(rows[j])
    for row, before in zip(rows, to_i, strict=True):
        through = _sum(before, bound)
        for place, after in enumerate(from_j):
            whole = _sum(through, after)
            if whole < row[place]:
                row[place] = whole


def rearranged(zone: Zone, places: Sequence[int]) -> Zone:
    """The zone of the given places, in their order; a place may occur twice."""
    return tuple(tuple(zone[i][j] for j in places) for i in places)


def includes(large: Zone, small: Zone) -> bool:
    for wide, narrow in zip(large, small, strict=True):
        for a, b in zip(wide, narrow, strict=True):
            if a < b:
                return False
    return True


def earliest_times(
    count: int, constraints: Iterable[Constraint], margin: int = 1
) -> list[int] | None:
    """The earliest integer times of `count` moments, from 0 on, or None if there are none.

    A time that must be less than another is less by at least the margin.
    """
    times = [0] * count
    # An upper bound on time i minus time j is a lower bound on time j minus time i.
    least = [(i, j, (0 if bound & 1 else margin) - (bound >> 1)) for i, j, bound in constraints]
    for _ in range(count + 1):
        changed = False
        for i, j, after in least:
            if times[i] + after > times[j]:
                times[j] = times[i] + after
                changed = True
        if not changed:
            return times
    return None

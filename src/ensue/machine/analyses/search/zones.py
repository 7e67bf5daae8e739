"""Sets of times, as bounds on differences: what is known of when past moments were.

A zone speaks of the present (place 0) and of some past moments (places 1, 2, ..., in the order in
which they came). `zone[i][j]` bounds the *time of i minus the time of j*. A zone is always closed:
each bound is the tightest that follows from all of them. Without past moments a zone is the single
point `PRESENT`, and costs nothing.

A bound is `at_most(c)` or `less_than(c)`, held as the whole numbers 2c + 1 and 2c, so that the
tighter of two is the smaller. Zones take time to be dense, although the clock counts microseconds:
what no dense times allow no microseconds do, and times found for a way are whole
(`earliest_times`). Taking `<` for "one microsecond less" would be exact as well, but bounds would
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
    """Let time pass: the present may be any amount later."""
    if len(zone) == 1:
        return zone
    first = (NOTHING, *(UNBOUNDED for _ in zone[1:]))
    return (first, *zone[1:])


def constrained(zone: Zone, constraints: Iterable[Constraint]) -> Zone | None:
    """The part of a zone in which constraints hold, or None if there is none."""
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
    """The zone over the given places of it, in their order; a place may come twice."""
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
    """The earliest whole times from 0 on of so many moments, or None if there are none.

    What must be less than something is less by at least the margin.
    """
    times = [0] * count
    # That i is at most so much after j says that j is at least that much before i.
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

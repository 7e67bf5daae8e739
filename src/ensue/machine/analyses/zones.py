"""Sets of times, as bounds on differences: what is known of when past moments were.

A zone speaks of the present (place 0) and of some past moments (places 1, 2, ..., in the order in
which they came). `zone[i][j]` is the largest that *time of i minus time of j* can be. Times are
whole microseconds, so that `<` is `<=` of one less and every bound is exact. A zone is always
closed: each bound is the tightest that follows from all of them. Without past moments a zone is
the single point `PRESENT`, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Bound = float
"""A whole number of microseconds, or UNBOUNDED."""

UNBOUNDED: Bound = float("inf")

Zone = tuple[tuple[Bound, ...], ...]

Constraint = tuple[int, int, Bound]
"""`(i, j, bound)`: the time of i minus the time of j is at most the bound."""

PRESENT: Zone = ((0,),)


def later(zone: Zone) -> Zone:
    """Let time pass: the present may be any amount later."""
    if len(zone) == 1:
        return zone
    first = (0, *(UNBOUNDED for _ in zone[1:]))
    return (first, *zone[1:])


def constrained(zone: Zone, constraints: Iterable[Constraint]) -> Zone | None:
    """The part of a zone in which constraints hold, or None if there is none."""
    rows: list[list[Bound]] | None = None
    current: Sequence[Sequence[Bound]] = zone
    for i, j, bound in constraints:
        if bound >= current[i][j]:
            continue
        if current[j][i] + bound < 0:
            return None
        if rows is None:
            current = rows = [list(row) for row in zone]
        _tighten(rows, i, j, bound)
    return zone if rows is None else tuple(tuple(row) for row in rows)


def _tighten(rows: list[list[Bound]], i: int, j: int, bound: Bound) -> None:
    """Lower one bound of a closed zone, and close it again."""
    places = range(len(rows))
    to_i = [rows[k][i] for k in places]
    from_j = list(rows[j])
    for k in places:
        through = to_i[k] + bound
        row = rows[k]
        for m in places:
            if through + from_j[m] < row[m]:
                row[m] = through + from_j[m]


def rearranged(zone: Zone, places: Sequence[int]) -> Zone:
    """The zone over the given places of it, in their order; a place may come twice."""
    return tuple(tuple(zone[i][j] for j in places) for i in places)


def includes(large: Zone, small: Zone) -> bool:
    return all(a >= b for x, y in zip(large, small, strict=True) for a, b in zip(x, y, strict=True))


def earliest_times(count: int, constraints: Iterable[Constraint]) -> list[int] | None:
    """The earliest times from 0 on of so many moments, or None if there are none.

    A constraint `(i, j, bound)` says: the time of j is at least the time of i less the bound.
    """
    times: list[Bound] = [0] * count
    kept = list(constraints)
    for _ in range(count + 1):
        changed = False
        for i, j, bound in kept:
            if times[i] - bound > times[j]:
                times[j] = times[i] - bound
                changed = True
        if not changed:
            return [int(time) for time in times]
    return None

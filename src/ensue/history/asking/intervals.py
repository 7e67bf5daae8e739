"""How two intervals lie to each other: the relations of Allen.

In come the intervals of X and Y; out goes whether a relation holds: surely (wherever in their
ranges the ends lie) or possibly (for some place of them). A relation is a conjunction of
comparisons of ends, as Allen has defined it. An end that is not known yet stands in no comparison.
For intervals of some length exactly one of the thirteen holds; an instant may stand in more than
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from operator import eq, gt, lt
from typing import Final

from ensue.history.publication import Interval

Ends = tuple[int, int]

_COMPARISONS: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "BEFORE": (("xe", "<", "ys"),),
    "AFTER": (("ye", "<", "xs"),),
    "MEETS": (("xe", "=", "ys"),),
    "MET_BY": (("ye", "=", "xs"),),
    "OVERLAPS": (("xs", "<", "ys"), ("ys", "<", "xe"), ("xe", "<", "ye")),
    "OVERLAPPED_BY": (("ys", "<", "xs"), ("xs", "<", "ye"), ("ye", "<", "xe")),
    "STARTS": (("xs", "=", "ys"), ("xe", "<", "ye")),
    "STARTED_BY": (("xs", "=", "ys"), ("ye", "<", "xe")),
    "DURING": (("ys", "<", "xs"), ("xe", "<", "ye")),
    "CONTAINS": (("xs", "<", "ys"), ("ye", "<", "xe")),
    "FINISHES": (("xe", "=", "ye"), ("ys", "<", "xs")),
    "FINISHED_BY": (("xe", "=", "ye"), ("xs", "<", "ys")),
    "EQUALS": (("xs", "=", "ys"), ("xe", "=", "ye")),
}
RELATIONS: Final = tuple(_COMPARISONS)

_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = {"<": lt, "=": eq, ">": gt}
_PLACES: Final = {"xs": 0, "xe": 1, "ys": 2, "ye": 3}


def relates(relation: str, x: Interval, y: Interval, possibly: bool = False) -> bool:
    """Whether X stands in a relation to Y, surely or possibly."""
    low = (x.start, x.end, y.start, y.end)
    if x.is_certain and y.is_certain:
        return all(
            (a := low[_PLACES[left]]) is not None
            and (b := low[_PLACES[right]]) is not None
            and _COMPARE[sign](a, b)
            for left, sign, right in _COMPARISONS[relation]
        )
    high = (x.start_until, x.end_until, y.start_until, y.end_until)
    places = [(_PLACES[left], sign, _PLACES[right]) for left, sign, right in _COMPARISONS[relation]]
    if any(low[place] is None for left, _, right in places for place in (left, right)):
        return False
    if possibly:
        return _is_feasible(low, high, places)
    return all(
        _surely(sign, (low[a], high[a]), (low[b], high[b]))  # type: ignore[arg-type]
        for a, sign, b in places
    )


def compares(sign: str, left: Ends, right: Ends, possibly: bool) -> bool:
    """Whether two instants, each somewhere in a range, compare so. `sign` is one of CESQL."""
    if sign == "!=":
        return not compares("=", left, right, not possibly)
    if sign in ("<=", ">="):
        opposite = ">" if sign == "<=" else "<"
        return not compares(opposite, left, right, not possibly)
    if sign == ">":
        left, right, sign = right, left, "<"
    if not possibly:
        return _surely(sign, left, right)
    if sign == "<":
        return left[0] < right[1]
    return left[0] <= right[1] and right[0] <= left[1]


def _surely(sign: str, left: Ends, right: Ends) -> bool:
    if sign == "<":
        return left[1] < right[0]
    return left[0] == left[1] == right[0] == right[1]


def _is_feasible(
    low: Sequence[int | None], high: Sequence[int | None], places: Sequence[tuple[int, str, int]]
) -> bool:
    """Whether ends exist in their ranges that meet every comparison.

    Each condition bounds a difference of two ends, so the shortest paths between them tell: they
    cannot be met just if some circle of bounds is negative. Node 4 is the origin of time.
    """
    far = 1 << 70
    distance = [[0 if i == j else far for j in range(5)] for i in range(5)]

    def bound(larger: int, smaller: int, most: int) -> None:
        """Let `larger - smaller <= most`."""
        distance[smaller][larger] = min(distance[smaller][larger], most)

    for place, (lowest, highest) in enumerate(zip(low, high, strict=True)):
        if lowest is not None and highest is not None:
            bound(place, 4, highest)
            bound(4, place, -lowest)
    bound(0, 1, 0)
    bound(2, 3, 0)
    for left, sign, right in places:
        bound(left, right, -1 if sign == "<" else 0)
        if sign == "=":
            bound(right, left, 0)
    for k, i, j in product(range(5), repeat=3):
        distance[i][j] = min(distance[i][j], distance[i][k] + distance[k][j])
    return all(distance[i][i] >= 0 for i in range(5))

"""Circles in who reads whom, found without ever writing out every pair of reader and read.

In comes, for each correlation, the groups of correlations that read it; many correlations share
one group. Out come shortest circles through two or more correlations, each from its first one in
library order. A correlation in its own group is no circle, for none reads its own outputs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

Group = tuple[int, ...]


def circles(groups: Sequence[Sequence[Group]], at_most: int) -> list[tuple[int, ...]]:
    """A shortest circle through every correlation that is on one, each circle once."""
    found: dict[tuple[int, ...], None] = {}
    covered: set[int] = set()
    for knot in _knots(groups):
        for start in knot:
            if start in covered:
                continue
            circle = _shortest_circle(start, groups)
            first = circle.index(min(circle))
            covered.update(circle)
            found[(*circle[first:], *circle[:first])] = None
            if len(found) >= at_most:
                return list(found)
    return list(found)


def _knots(groups: Sequence[Sequence[Group]]) -> list[list[int]]:
    """The sets of correlations that all reach each other, of two or more (Tarjan 1972).

    A node is a correlation (its number) or a group of readers (the complement of its number):
    with groups as nodes the graph is as large as what was written, not its square.
    """
    group_ids: dict[int, int] = {}
    members: list[Group] = []
    for each in groups:
        for group in each:
            if id(group) not in group_ids:
                group_ids[id(group)] = len(members)
                members.append(group)

    def successors(node: int) -> Iterator[int]:
        if node < 0:
            return iter(members[~node])
        return (~group_ids[id(group)] for group in groups[node])

    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    unsettled: dict[int, None] = {}
    knots: list[list[int]] = []
    for root in range(len(groups)):
        if root in number:
            continue
        number[root] = lowest[root] = len(number)
        unsettled[root] = None
        pending = [(root, successors(root))]
        while pending:
            node, rest = pending[-1]
            following = next(rest, None)
            if following is None:
                pending.pop()
                if pending:
                    above = pending[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == number[node]:
                    knot = []
                    while (last := unsettled.popitem()[0]) != node:
                        knot.append(last)
                    correlations = sorted(each for each in (node, *knot) if each >= 0)
                    if len(correlations) > 1:
                        knots.append(correlations)
            elif following not in number:
                number[following] = lowest[following] = len(number)
                unsettled[following] = None
                pending.append((following, successors(following)))
            elif following in unsettled:
                lowest[node] = min(lowest[node], number[following])
    return sorted(knots)


def _shortest_circle(start: int, groups: Sequence[Sequence[Group]]) -> tuple[int, ...]:
    """The way from a correlation that is on a circle back to itself, breadth first."""
    came_from: dict[int, int] = {}
    opened: set[int] = set()
    pending = deque([start])
    while pending:
        current = pending.popleft()
        if current != start and any(start in group for group in groups[current]):
            path = [current]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return tuple(reversed(path))
        for group in groups[current]:
            if id(group) in opened:
                continue
            opened.add(id(group))
            for each in group:
                if each != start and each not in came_from:
                    came_from[each] = current
                    pending.append(each)
    raise AssertionError(f"correlation {start} was said to be on a circle and is on none")

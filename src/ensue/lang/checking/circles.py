"""Circles of rules that read each other's outputs.

In comes a graph: for each correlation, by its number, those that read its outputs. Out come
shortest circles, each from its first correlation, so that every correlation that is on a circle is
on one of them. A correlation that reads itself is a circle of one. Libraries may have very many
rules and chains may be long, so nothing here calls itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Readers = Sequence[Sequence[int]]


def circles(readers: Readers, at_most: int) -> list[tuple[int, ...]]:
    """A shortest circle through every correlation that is on a circle, each circle once."""
    found: dict[tuple[int, ...], None] = {}
    covered: set[int] = set()
    for component in _components(readers):
        for start in component:
            if start in covered:
                continue
            circle = _shortest_circle(start, readers)
            first = circle.index(min(circle))
            covered.update(circle)
            found[*circle[first:], *circle[:first]] = None
            if len(found) >= at_most:
                return list(found)
    return list(found)


def _components(readers: Readers) -> list[list[int]]:
    """The strongly connected components that have a circle (Tarjan 1972)."""
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    unsettled: dict[int, None] = {}
    components: list[list[int]] = []
    pending: list[tuple[int, Iterator[int]]] = []

    def enter(node: int) -> None:
        number[node] = lowest[node] = len(number)
        unsettled[node] = None
        pending.append((node, iter(readers[node])))

    for root in range(len(readers)):
        if root not in number:
            enter(root)
        while pending:
            node, rest = pending[-1]
            for following in rest:
                if following not in number:
                    enter(following)
                    break
                if following in unsettled:
                    lowest[node] = min(lowest[node], number[following])
            else:
                pending.pop()
                if pending:
                    above = pending[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == number[node]:
                    component = _settle(node, unsettled)
                    if len(component) > 1 or node in readers[node]:
                        components.append(sorted(component))
    return sorted(components)


def _settle(node: int, unsettled: dict[int, None]) -> list[int]:
    """Remove the component of a correlation from the unsettled ones, and return it."""
    component: list[int] = []
    while True:
        last, _ = unsettled.popitem()
        component.append(last)
        if last == node:
            return component


def _shortest_circle(start: int, readers: Readers) -> tuple[int, ...]:
    """The shortest path from a correlation that is on a circle back to itself."""
    came_from: dict[int, int] = {}
    level = [start]
    while level:
        following_level: list[int] = []
        for current in level:
            for each in readers[current]:
                if each == start:
                    path = [current]
                    while path[-1] != start:
                        path.append(came_from[path[-1]])
                    return tuple(reversed(path))
                if each not in came_from:
                    came_from[each] = current
                    following_level.append(each)
        level = following_level
    raise AssertionError(f"correlation {start} was said to be on a circle and is on none")

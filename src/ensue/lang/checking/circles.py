"""Circles of rules that read each other's outputs, in a graph no larger than the library.

The nodes of the graph are correlations (numbers, in library order) and junctions: a type that
several correlations put out and several read is one junction between them, not an edge for every
pair. Out come shortest circles through two or more correlations, each from its first one. An edge
from a correlation to itself is no circle, since no correlation reads its own outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

Node = Hashable
Successors = Callable[[Node], Iterable[Node]]


def circles(count: int, successors: Successors, at_most: int) -> list[tuple[int, ...]]:
    """A shortest circle through every correlation that is on a circle, each circle once."""
    found: dict[tuple[int, ...], None] = {}
    covered: set[int] = set()
    for component in _components(count, successors):
        for start in component:
            if start in covered:
                continue
            circle = _shortest_circle(start, successors)
            first = circle.index(min(circle))
            covered.update(circle)
            found[*circle[first:], *circle[:first]] = None
            if len(found) >= at_most:
                return list(found)
    return list(found)


def _components(count: int, successors: Successors) -> list[list[int]]:
    """The strongly connected components of two or more correlations (Tarjan 1972)."""
    number: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    unsettled: dict[Node, None] = {}
    components: list[list[int]] = []
    pending: list[tuple[Node, Iterator[Node]]] = []

    def enter(node: Node) -> None:
        number[node] = lowest[node] = len(number)
        unsettled[node] = None
        pending.append((node, iter(successors(node))))

    for root in range(count):
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
                    if len(component) > 1:
                        components.append(sorted(component))
    return sorted(components)


def _settle(node: Node, unsettled: dict[Node, None]) -> list[int]:
    """Remove the component of a node from the unsettled nodes; its correlations are returned."""
    component: list[int] = []
    while True:
        last, _ = unsettled.popitem()
        if isinstance(last, int):
            component.append(last)
        if last == node:
            return component


def _shortest_circle(start: int, successors: Successors) -> tuple[int, ...]:
    """The shortest path from a correlation that is on a circle back to itself."""
    came_from = {
        each: start for each in _next_correlations(start, successors, set()) if each != start
    }
    level = list(came_from)
    # Junctions that the start has passed are passed once more: they may lead back to it.
    passed: set[Node] = set()
    while level:
        following_level: list[int] = []
        for current in level:
            for each in _next_correlations(current, successors, passed):
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


def _next_correlations(
    correlation: int, successors: Successors, passed: set[Node]
) -> Iterator[int]:
    """The next correlations, through junctions that have not been passed yet."""
    reached: list[Node] = [*successors(correlation)]
    for node in reached:
        if isinstance(node, int):
            yield node
        elif node not in passed:
            passed.add(node)
            # The list grows while it is read, so that nearer nodes come first.
            reached.extend(successors(node))

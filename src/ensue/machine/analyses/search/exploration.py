"""A breadth-first search through all situations of one correlation, or of two side by side.

In come behaviours and an alphabet; out come edges, shortest paths first. A node has a configuration
of each behaviour and a zone: the possible times of the moments from which clocks and windows count.
An edge is an event that at least one behaviour reads, or the clock at a time when a timer is due.
Situations that differ only in interchangeable ports (`symmetry`) are one. A node whose zone lies
inside the zone of a known node with equal configurations is not searched again. All clocks are
bounded (starts outside of a window are dropped, due timers fire), so that there are finitely many
zones; a budget keeps the answer quick.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from ensue.machine.analyses.behaviour import Behaviour, Configuration, Countdown, Successor
from ensue.machine.analyses.deadline import poll
from ensue.machine.analyses.events.alphabet import Symbol
from ensue.machine.analyses.search.symmetry import symmetry_of
from ensue.machine.analyses.search.zones import (
    PRESENT,
    Constraint,
    Zone,
    at_most,
    constrained,
    includes,
    later,
    less_than,
    rearranged,
)


@dataclass(eq=False, slots=True)
class SearchNode:
    """A situation, and one shortest path to it, whose last edge is `came`.

    `past` has, for each place of the zone after place 0, the number of its moment on the path.
    """

    configs: tuple[Configuration, ...]
    zone: Zone
    past: tuple[int, ...] = ()
    depth: int = 0
    came: Edge | None = None

    def moment_at(self, place: int) -> int:
        """The number, on the path, of the moment at a place of the zone."""
        return self.depth if place == 0 else self.past[place - 1]


@dataclass(eq=False, slots=True)
class Edge:
    """A moment: an event (`symbol`), or the clock where `symbol` is None.

    An outcome is None for a behaviour that does not read the event. `constraints` are on the
    moments of the path. `to` is the node after the moment, or a known node that includes it.
    """

    source: SearchNode
    symbol: Symbol | None
    outcomes: tuple[Successor | None, ...]
    constraints: tuple[Constraint, ...]
    to: SearchNode = field(init=False)

    @property
    def puts_out(self) -> tuple[bool, ...]:
        return tuple(each is not None and each.puts_out for each in self.outcomes)


class Exploration:
    """A search through all situations. After `edges`, `complete` says whether it has seen them all.

    In any case it has seen all sequences of up to `depth` moments.
    """

    def __init__(
        self, behaviours: Sequence[Behaviour], symbols: Sequence[Symbol], budget: int
    ) -> None:
        self._behaviours = behaviours
        self._symbols = symbols
        self._work_left = budget
        self._symmetry = symmetry_of(behaviours, symbols)
        self._known: dict[Hashable, list[SearchNode]] = {}
        self.complete = False
        self.depth = 0
        self.first = SearchNode(tuple(Configuration() for _ in behaviours), PRESENT)
        self._waiting = deque([self.first])
        self._known[self._symmetry.key(self.first.configs)] = [self.first]

    def edges(self) -> Iterator[Edge]:
        step = sum(each.size for each in self._behaviours)
        while self._waiting:
            poll()
            node = self._waiting.popleft()
            self.depth = node.depth
            for edge, zone, configs in self._from(node):
                self._work_left -= step + len(zone) ** 3
                if self._work_left < 0:
                    return
                self._arrive(edge, zone, configs)
                yield edge
        self.complete = True

    def nodes(self) -> list[SearchNode]:
        """The situations that were seen."""
        return [node for known in self._known.values() for node in known]

    # --- where a node leads -------------------------------------------------------------------

    def _from(self, node: SearchNode) -> Iterator[tuple[Edge, Zone, list[Configuration]]]:
        """Each edge with the zone at its moment, and the configurations just before it."""
        zone = later(node.zone)
        symbols = self._symmetry.distinct(node.configs, self._symbols)
        clocks = [
            (number, clock)
            for number, behaviour in enumerate(self._behaviours)
            for clock in behaviour.clocks(node.configs[number])
        ]
        for due, constraints in clocks_due(zone, clocks):
            for more, expired in self._expiries(zone, constraints, node):
                left = constrained(zone, more)
                if left is None:
                    continue
                place = tuple(on_the_path(node, each) for each in more)
                configs = [c.without(e) for c, e in zip(node.configs, expired, strict=True)]
                if due:
                    outcomes = fire(self._behaviours, configs, due, len(zone))
                    yield Edge(node, None, outcomes, place), left, configs
                    continue
                for symbol in symbols:
                    poll()
                    outcomes = tuple(
                        behaviour.read(config, atoms, len(zone)) if ports else None
                        for behaviour, config, ports, atoms in zip(
                            self._behaviours, configs, symbol.ports, symbol.atoms, strict=True
                        )
                    )
                    yield Edge(node, symbol, outcomes, place), left, configs

    def _expiries(
        self, zone: Zone, constraints: list[Constraint], node: SearchNode
    ) -> Iterator[tuple[list[Constraint], list[frozenset[int]]]]:
        """Sets of starts that may have left their windows together, each with its constraints."""
        ways: list[tuple[list[Constraint], list[frozenset[int]]]] = [(constraints, [])]
        for behaviour, config in zip(self._behaviours, node.configs, strict=True):
            if not behaviour.window:
                ways = [(so_far, [*expired, frozenset()]) for so_far, expired in ways]
                continue
            starts = sorted({int(at) for _, at in config.active if at != float("inf")})
            longer = []
            for so_far, expired in ways:
                for count in range(len(starts) + 1):
                    more = list(so_far)
                    if count:
                        more.append((starts[count - 1], 0, less_than(-behaviour.window)))
                    if count < len(starts):
                        more.append((0, starts[count], at_most(behaviour.window)))
                    if constrained(zone, more) is not None:
                        longer.append((more, [*expired, frozenset(starts[:count])]))
            ways = longer
        yield from ways

    def _arrive(self, edge: Edge, zone: Zone, before: list[Configuration]) -> None:
        """Add the node that an edge leads to, unless a known node includes it."""
        source = edge.source
        configs = [
            config if outcome is None else outcome.config
            for config, outcome in zip(before, edge.outcomes, strict=True)
        ]
        used = sorted(set[int]().union(*(config.moments() for config in configs)))
        now = len(zone)
        names = {moment: place for place, moment in enumerate(used, 1)}
        places = [0, *(0 if moment == now else moment for moment in used)]
        arrived = rearranged(zone, places)
        renamed = tuple(config.renamed(names) for config in configs)
        known = self._known.setdefault(self._symmetry.key(renamed), [])
        self._work_left -= len(known)
        for node in known:
            if includes(node.zone, arrived):
                edge.to = node
                return
        moments = tuple(
            source.depth if moment == now else source.past[moment - 1] for moment in used
        )
        edge.to = SearchNode(renamed, arrived, moments, source.depth + 1, edge)
        known.append(edge.to)
        self._waiting.append(edge.to)


def fire(
    behaviours: Sequence[Behaviour],
    configs: Sequence[Configuration],
    due: list[tuple[int, Countdown]],
    now: int,
) -> tuple[Successor | None, ...]:
    """The successor of each configuration by its clocks that are due; None where none is due."""
    outcomes: list[Successor | None] = []
    for number, config in enumerate(configs):
        own = [clock for owner, clock in due if owner == number]
        outcomes.append(behaviours[number].fire(config, own, now) if own else None)
    return tuple(outcomes)


def clocks_due(
    zone: Zone, clocks: list[tuple[int, Countdown]]
) -> Iterator[tuple[list[tuple[int, Countdown]], list[Constraint]]]:
    """Sets of clocks that can be due together at the next moment; the empty set is for events."""
    ways: list[tuple[list[tuple[int, Countdown]], list[Constraint]]] = [([], [])]
    for owner, clock in clocks:
        longer = []
        for due, constraints in ways:
            waits = [*constraints, (0, clock.since, less_than(clock.after))]
            is_due = [
                *constraints,
                (0, clock.since, at_most(clock.after)),
                (clock.since, 0, at_most(-clock.after)),
            ]
            if constrained(zone, waits) is not None:
                longer.append((due, waits))
            if constrained(zone, is_due) is not None:
                longer.append(([*due, (owner, clock)], is_due))
        ways = longer
    yield from ways


def on_the_path(node: SearchNode, constraint: Constraint) -> Constraint:
    """A constraint on places of a node's zone as one on the moments of the path."""
    i, j, bound = constraint
    return node.moment_at(i), node.moment_at(j), bound

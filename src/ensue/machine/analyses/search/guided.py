"""A search by the order of moments, for outputs that only one of two correlations has.

In come two behaviours and an alphabet; out come edges at which only one puts out, shortest paths
first, and whether the search is complete. Times are kept for clocks only; of the starts in a window
only the *order* is kept. The passing of time is a step of its own: the oldest start leaves its
window, and with it starts that are as old in windows that are not longer. So forty ports in a
window have hundreds of situations, not 2^40.

Since times are neglected, the search follows more paths than are possible. If it finds nothing,
that is a proof. A path that it finds is checked for possible times (`witness`): if there are any,
the path is real, and no real path is shorter; if not, `exploration` has to decide, which knows all
times. The search goes first where an output is near (`distances`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from ensue.machine.analyses.behaviour import Behaviour, Configuration, Countdown
from ensue.machine.analyses.deadline import poll
from ensue.machine.analyses.events.alphabet import Symbol
from ensue.machine.analyses.search.distances import NEVER, Distances
from ensue.machine.analyses.search.exploration import (
    Edge,
    SearchNode,
    clocks_due,
    fire,
    on_the_path,
)
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
from ensue.machine.stepping import NOW

GUIDED_AFTER = 1_000
"""After so many edges the distances are computed."""

Dues = list[tuple[int, Countdown]]


@dataclass(eq=False, slots=True)
class OrderedNode(SearchNode):
    """A situation whose zone has only the moments in `metric`, from which clocks count.

    `left` are the starts that have left their windows since the last moment: the moment on the
    path, and the length of the window.
    """

    metric: tuple[int, ...] = ()
    left: tuple[tuple[int, int], ...] = ()
    is_done: bool = False
    instead: OrderedNode | None = None
    """A node that was reached later, by a path no longer than this one's, and includes this one."""

    @property
    def places(self) -> dict[int, int]:
        """The place of each moment in the zone."""
        return {moment: place for place, moment in enumerate(self.metric, 1)}

    def moment_at(self, place: int) -> int:
        return self.depth if place == 0 else self.past[self.metric[place - 1] - 1]


class GuidedSearch:
    """The search. After `differences`, `complete` says whether all differences have been found.

    A caller may `settle` a side: then outputs of that side alone are not searched any more. Every
    difference of up to `depth` moments has been found. Without `guided` the search goes everywhere,
    and `passing` has the steps in which only time passes.
    """

    def __init__(
        self,
        behaviours: Sequence[Behaviour],
        symbols: Sequence[Symbol],
        budget: int,
        *,
        guided: bool = True,
    ) -> None:
        self._behaviours = behaviours
        self._symbols = symbols
        self._work_left = budget
        self._symmetry = symmetry_of(behaviours, symbols)
        self._distances: list[Distances] = []
        self._guided = guided and any(each.window for each in behaviours)
        self._open = set(range(len(behaviours)))
        self._known: dict[Hashable, list[OrderedNode]] = {}
        self._waiting: list[tuple[int, int, int, OrderedNode]] = []
        self._count = 0
        self.passing: list[tuple[OrderedNode, OrderedNode]] = []
        self.complete = False
        self.depth = 0
        self.first = OrderedNode(tuple(Configuration() for _ in behaviours), PRESENT)
        self._wait(self.first)

    def settle(self, side: int) -> None:
        """Stop looking for outputs that only this correlation has."""
        self._open.discard(side)
        self._order_anew()

    def _guide(self) -> None:
        """Compute distances, and go first where an output is near."""
        self._guided = False
        self._distances = [
            Distances(each, n, self._symbols) for n, each in enumerate(self._behaviours)
        ]
        self._order_anew()

    def _order_anew(self) -> None:
        nodes = [entry[-1] for entry in self._waiting]
        self._waiting = []
        for node in nodes:
            self._push(node)

    def differences(self) -> Iterator[Edge]:
        """Edges at which exactly one side puts out that is not settled."""
        for edge in self.edges():
            sides = [side for side, puts_out in enumerate(edge.puts_out) if puts_out]
            if len(sides) == 1 and sides[0] in self._open:
                yield edge

    def edges(self) -> Iterator[Edge]:
        """All edges in the order of the search."""
        step = sum(each.size for each in self._behaviours)
        looked_at = 0
        while self._waiting and self._open:
            if self._guided and looked_at > GUIDED_AFTER:
                self._guide()
                continue
            length, _, _, node = heappop(self._waiting)
            if node.is_done:
                continue
            node.is_done = True
            self.depth = max(self.depth, length - 1)
            poll()
            for older in self._expired(node):
                self.passing.append((node, self._arrive(older)))
            for edge, zone, configs in self._from(node):
                looked_at += 1
                self._work_left -= step + len(zone) ** 3
                if self._work_left < 0:
                    return
                self._follow(node, edge, zone, configs)
                yield edge
        self.complete = True

    # --- what waits -----------------------------------------------------------------------------

    def _push(self, node: OrderedNode) -> None:
        far = 1
        if self._distances and self._open:
            far = min(self._distances[side].of(node.configs[side]) for side in self._open)
        if far < NEVER:
            self._count += 1
            # Of equal bounds the deepest node goes first: it is nearest to its output.
            heappush(self._waiting, (node.depth + far, -node.depth, self._count, node))

    def _wait(self, node: OrderedNode) -> None:
        self._known.setdefault(self._symmetry.key(node.configs), []).append(node)
        self._push(node)

    def _arrive(self, node: OrderedNode) -> OrderedNode:
        """Add a node, or return a known node that includes it and has no longer path."""
        known = self._known.setdefault(self._symmetry.key(node.configs), [])
        self._work_left -= len(known)
        for other in known:
            if other.depth <= node.depth and includes(other.zone, node.zone):
                return other
        for other in [each for each in known if includes(node.zone, each.zone)]:
            if node.depth <= other.depth:
                other.is_done, other.instead = True, node
                known.remove(other)
        known.append(node)
        self._push(node)
        return node

    # --- where a node leads -----------------------------------------------------------------------

    def _clocks(self, node: OrderedNode) -> Dues:
        return [
            (number, clock)
            for number, behaviour in enumerate(self._behaviours)
            for clock in behaviour.clocks(node.configs[number])
        ]

    def _expired(self, node: OrderedNode) -> Iterator[OrderedNode]:
        """The nodes after time has passed, until the oldest start of a window has left it."""
        places = node.places
        in_time = [
            (0, places[clock.since], at_most(clock.after)) for _, clock in self._clocks(node)
        ]
        for number, behaviour in enumerate(self._behaviours):
            starts = _starts(node.configs[number]) if behaviour.window else ()
            if not starts:
                continue
            oldest = min(starts)
            older = [place for moment, place in places.items() if moment <= oldest]
            gone = [(place, 0, less_than(-behaviour.window)) for place in older[-1:]]
            zone = constrained(later(node.zone), [*in_time, *gone])
            if zone is None:
                continue
            configs = [
                config.without(frozenset(at for at in _starts(config) if at <= oldest))
                if 0 < each.window <= behaviour.window
                else config
                for each, config in zip(self._behaviours, node.configs, strict=True)
            ]
            left = (*node.left, (node.past[oldest - 1], behaviour.window))
            yield self._named(node, configs, zone, places, left)

    def _named(
        self,
        node: OrderedNode,
        configs: Sequence[Configuration],
        zone: Zone,
        places: dict[int, int],
        left: tuple[tuple[int, int], ...],
    ) -> OrderedNode:
        """The node at the same moment, with the configurations that are left."""
        used = sorted(set[int]().union(*(config.moments() for config in configs)))
        names = {moment: place for place, moment in enumerate(used, 1)}
        metric = [moment for moment in node.metric if moment in names]
        return OrderedNode(
            tuple(config.renamed(names) for config in configs),
            rearranged(zone, [0, *(places[moment] for moment in metric)]),
            tuple(node.past[moment - 1] for moment in used),
            node.depth,
            node.came,
            tuple(names[moment] for moment in metric),
            left,
        )

    def _from(self, node: OrderedNode) -> Iterator[tuple[Edge, Zone, tuple[Configuration, ...]]]:
        """Each edge with the zone at its moment."""
        places = node.places
        inside: list[Constraint] = []
        window_bounds = [(moment, node.depth, less_than(-window)) for moment, window in node.left]
        for number, behaviour in enumerate(self._behaviours):
            starts = _starts(node.configs[number]) if behaviour.window else ()
            if starts:
                oldest = min(starts)
                window_bounds.append((node.depth, node.past[oldest - 1], at_most(behaviour.window)))
                younger = [place for moment, place in places.items() if moment >= oldest]
                inside += [(0, place, at_most(behaviour.window)) for place in younger[:1]]
        zone = constrained(later(node.zone), inside)
        if zone is None:
            return
        now = len(node.past) + 1
        symbols = self._symmetry.distinct(node.configs, self._symbols)
        placed = [(n, replace(c, since=places[c.since])) for n, c in self._clocks(node)]
        for due, constraints in clocks_due(zone, placed):
            at = constrained(zone, constraints)
            if at is None:
                continue
            bounds = (*window_bounds, *(on_the_path(node, each) for each in constraints))
            if due:
                moments = [(n, replace(c, since=node.metric[c.since - 1])) for n, c in due]
                outcomes = fire(self._behaviours, node.configs, moments, now)
                yield Edge(node, None, outcomes, bounds), at, node.configs
                continue
            for symbol in symbols:
                outcomes = tuple(
                    behaviour.read(config, atoms, now) if ports else None
                    for behaviour, config, ports, atoms in zip(
                        self._behaviours, node.configs, symbol.ports, symbol.atoms, strict=True
                    )
                )
                yield Edge(node, symbol, outcomes, bounds), at, node.configs

    def _follow(
        self, node: OrderedNode, edge: Edge, zone: Zone, before: tuple[Configuration, ...]
    ) -> None:
        """Add the node that an edge leads to."""
        configs = [
            config if outcome is None else outcome.config
            for config, outcome in zip(before, edge.outcomes, strict=True)
        ]
        used = sorted(set[int]().union(*(config.moments() for config in configs)))
        now = len(node.past) + 1
        names = {moment: place for place, moment in enumerate(used, 1)}
        counted = {clock.since for clock in self._clocks_of(configs)}
        metric = [moment for moment in used if moment in counted]
        places = node.places
        to = OrderedNode(
            tuple(config.renamed(names) for config in configs),
            rearranged(zone, [0, *(0 if moment == now else places[moment] for moment in metric)]),
            tuple(node.depth if moment == now else node.past[moment - 1] for moment in used),
            node.depth + 1,
            edge,
            tuple(names[moment] for moment in metric),
        )
        edge.to = self._arrive(to)

    def _clocks_of(self, configs: Sequence[Configuration]) -> Iterator[Countdown]:
        for behaviour, config in zip(self._behaviours, configs, strict=True):
            yield from behaviour.clocks(config)


def _starts(config: Configuration) -> set[int]:
    return {int(at) for _, at in config.active if at != NOW}

"""Lower bounds for the number of moments up to the next output.

In come one behaviour and the symbols that it reads; out comes a lower bound for each of its
configurations. A search (`guided`) goes first where an output is near, and not at all where none
can come. The behaviour is explored by itself and without its window: in a filter that puts out at
every trigger, a window only removes matches. For other filters, and where there are too many
situations, the bound is one moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import replace

from ensue.lang.syntax import FilterCorrelation, LabelTrue, PushNew
from ensue.machine.analyses.behaviour import Behaviour, Configuration
from ensue.machine.analyses.events.alphabet import Symbol
from ensue.machine.analyses.search.exploration import Exploration, SearchNode
from ensue.machine.analyses.search.symmetry import symmetry_of
from ensue.machine.stepping import NOW

DISTANCES_WORK = 400_000
"""The budget in transitions that are tested; past that every bound is one moment."""

NEVER = 1 << 60
"""The distance of an output that cannot come."""


class Distances:
    """The bounds of one behaviour; `number` is its place among the behaviours of the symbols."""

    def __init__(self, behaviour: Behaviour, number: int, symbols: Sequence[Symbol]) -> None:
        self._found: dict[Hashable, int] = {}
        if behaviour.window and (behaviour.has_clocks or not _always_puts_out(behaviour)):
            return
        alone = copy(behaviour)
        alone.window = 0
        alone.forget()
        own = {
            (each.ports[number], each.atoms[number]): Symbol(
                (each.ports[number],), (each.atoms[number],), each.event
            )
            for each in symbols
            if each.ports[number]
        }
        read = tuple(own.values())
        self._symmetry = symmetry_of([alone], read)
        search = Exploration([alone], read, DISTANCES_WORK)
        near: list[SearchNode] = []
        before: dict[SearchNode, list[SearchNode]] = {}
        for edge in search.edges():
            before.setdefault(edge.to, []).append(edge.source)
            if edge.puts_out[0]:
                near.append(edge.source)
        if search.complete:
            for node, distance in _backwards(near, before, search.nodes()).items():
                # Situations that differ only in their times share the smallest distance.
                key = self._symmetry.key(node.configs)
                self._found[key] = min(distance, self._found.get(key, NEVER))

    def of(self, config: Configuration) -> int:
        """The least number of moments, the moment of the output included."""
        if not self._found:
            return 1
        plain = replace(config, active=frozenset((state, NOW) for state, _ in config.active))
        ranks = {moment: rank for rank, moment in enumerate(sorted(plain.moments()), 1)}
        return self._found.get(self._symmetry.key((plain.renamed(ranks),)), 1)


def _backwards(
    near: list[SearchNode], before: dict[SearchNode, list[SearchNode]], nodes: Sequence[SearchNode]
) -> dict[SearchNode, int]:
    found = dict.fromkeys(near, 1)
    waiting = deque(found)
    while waiting:
        node = waiting.popleft()
        for earlier in before.get(node, ()):
            if earlier not in found:
                found[earlier] = found[node] + 1
                waiting.append(earlier)
    return {node: found.get(node, NEVER) for node in nodes}


def _always_puts_out(behaviour: Behaviour) -> bool:
    correlation = behaviour.correlation
    return isinstance(correlation, FilterCorrelation) and (
        not correlation.initially
        and len(correlation.cases) == 1
        and isinstance(correlation.cases[0].condition, LabelTrue)
        and any(isinstance(each, PushNew) for each in correlation.cases[0].statements)
        and behaviour.machine is not None
        and not behaviour.machine.switches
    )

"""Properties of one correlation: can it put out, does it always, can it get stuck; its dead parts.

In comes a correlation; out come answers, each yes, no or unknown, with a shortest witness where
something can happen. What *can* happen is shown by events that exist; what *never* happens is
proven over all events that may exist (`events.alphabet`). A situation is stuck if no later event
and no passing of time makes the correlation put anything out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import labels_in
from ensue.lang.syntax import (
    Correlation,
    FilterCorrelation,
    Labelled,
)
from ensue.machine.analyses.behaviour import Behaviour, Successor
from ensue.machine.analyses.comparison import real_witness
from ensue.machine.analyses.deadline import ANALYSIS_SECONDS, UndecidableError, deadline, poll
from ensue.machine.analyses.events.alphabet import Alphabet, Symbol, alphabets
from ensue.machine.analyses.search.exploration import Edge, Exploration, SearchNode
from ensue.machine.analyses.search.guided import GuidedSearch, OrderedNode
from ensue.machine.analyses.witness import Witness, path_to

PROPERTIES_WORK = 5_000_000
"""The budget for the properties of a correlation, in transitions that are tested."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Yes, no, or unknown (`holds` is None) with the reason."""

    holds: bool | None
    witness: Witness | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Properties:
    """The answers for one correlation.

    The witness of `always_puts_out` is an event that is read without an output. `stuck` has the
    shortest path to a stuck situation, `stuck_silently` a shortest one without outputs, if there is
    one. `keeps_on` says that there is no bound on the number of outputs. Dead parts are None where
    they are unknown.
    """

    can_put_out: Answer
    always_puts_out: Answer
    stuck: Answer
    stuck_silently: Witness | None = None
    keeps_on: bool | None = None
    dead_labels: tuple[Labelled, ...] | None = None
    dead_cases: tuple[int, ...] | None = None
    dead_branches: tuple[int, ...] | None = None


def properties(
    correlation: Correlation,
    types: TypeSystem,
    work: int = PROPERTIES_WORK,
    seconds: float | None = ANALYSIS_SECONDS,
) -> Properties:
    """The properties of a correlation; unknown past `work` transitions or `seconds`."""
    try:
        with deadline(seconds):
            return certain_properties(correlation, types, work)
    except UndecidableError as error:
        unknown = Answer(None, reason=str(error))
        return Properties(unknown, unknown, unknown)


def certain_properties(correlation: Correlation, types: TypeSystem, work: int) -> Properties:
    """As `properties`; raises `UndecidableError` where no property is known."""
    behaviour = Behaviour(correlation)
    seen = [_Seen(behaviour, alphabet, work) for alphabet in alphabets([behaviour], types)]
    return _Conclusions(behaviour, seen).properties()


class _Seen:
    """All edges under one kind of key: over events that exist, and over all that may exist.

    Where the budget is too small for a search with times, the search goes by the order of moments
    (`guided`): then `by_order` is true, and there may be edges that no times allow.
    """

    def __init__(self, behaviour: Behaviour, alphabet: Alphabet, work: int) -> None:
        self.alphabet = alphabet
        self._behaviour = behaviour
        self.by_order = False
        self.passing: list[tuple[SearchNode, SearchNode]] = []
        self.real = self._look(alphabet.symbols, work)
        self.possible = self.real
        if not alphabet.is_exact:
            self.possible = self._look(alphabet.possible, work)

    def _look(self, symbols: Sequence[Symbol], work: int) -> list[Edge]:
        search = Exploration([self._behaviour], symbols, work)
        edges = list(search.edges())
        self.complete, self.first = search.complete, search.first
        if not self.complete and self._behaviour.window:
            ordered = GuidedSearch([self._behaviour], symbols, work, guided=False)
            edges = list(ordered.edges())
            for edge in edges:
                edge.to = _latest(edge.to)
            self.passing = [(source, _latest(to)) for source, to in ordered.passing]
            self.complete, self.first = ordered.complete, ordered.first
            self.by_order = True
        return edges

    def outcomes(self) -> Iterator[Successor]:
        return (each for edge in self.possible for each in edge.outcomes if each is not None)

    def live(self) -> set[SearchNode]:
        """The situations from which an output can be reached."""
        ways = [(edge.source, edge.to) for edge in self.possible]
        return _leading_to(
            (edge.source for edge in self.possible if edge.puts_out[0]), [*ways, *self.passing]
        )

    def live_at_once(self) -> set[SearchNode]:
        """The situations from which events alone, with no time between them, lead to an output.

        Such events can always come, whatever is known of times.
        """
        events = self.at_once()
        return _leading_to(
            (edge.source for edge in events if edge.puts_out[0]),
            [(edge.source, edge.to) for edge in events],
        )

    def at_once(self) -> list[Edge]:
        """The edges of events that can come without any time passing."""
        return [
            edge
            for edge in self.real
            if edge.symbol is not None and (self.by_order or not _waits(edge))
        ]

    def nodes(self) -> set[SearchNode]:
        ways = [(edge.source, edge.to) for edge in self.possible]
        return {self.first}.union(*([*ways, *self.passing]))


def _waits(edge: Edge) -> bool:
    """Whether time must pass before the edge, since a start must have left its window."""
    return any(j == edge.source.depth and bound < 0 for _, j, bound in edge.constraints)


def _latest(node: SearchNode) -> SearchNode:
    while isinstance(node, OrderedNode) and node.instead is not None:
        node = node.instead
    return node


def _leading_to(
    wanted: Iterable[SearchNode], ways: Iterable[tuple[SearchNode, SearchNode]]
) -> set[SearchNode]:
    before: dict[SearchNode, list[SearchNode]] = {}
    for source, to in ways:
        before.setdefault(to, []).append(source)
    found = set(wanted)
    waiting = list(found)
    while waiting:
        for node in before.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


class _Conclusions:
    """The answers that follow from what was seen under each kind of key."""

    def __init__(self, behaviour: Behaviour, seen: list[_Seen]) -> None:
        self._behaviour = behaviour
        self._seen = seen
        self._complete = all(each.complete for each in seen)
        gaps = [gap for each in seen for gap in each.alphabet.gaps]
        self._reason = "; ".join(dict.fromkeys(gaps)) or None
        if not self._complete:
            self._reason = "there are more situations than the budget allows to look at"

    def properties(self) -> Properties:
        can = self._can(edge for s in self._seen for edge in s.real if edge.puts_out[0])
        always = self._always()
        stuck, silently = self._stuck(can)
        return Properties(
            can,
            always,
            stuck,
            silently,
            self._keeps_on(),
            *self._dead_parts(),
        )

    def _can(self, edges: Iterable[Edge]) -> Answer:
        witness = self._shortest(edges)
        if witness is not None:
            return Answer(True, witness)
        if self._complete and not any(each.puts_out for s in self._seen for each in s.outcomes()):
            return Answer(False)
        return Answer(None, reason=self._reason)

    def _always(self) -> Answer:
        in_vain = (
            edge
            for each in self._seen
            for edge in each.real
            if edge.symbol is not None and not edge.puts_out[0]
        )
        witness = self._shortest(in_vain)
        if witness is not None:
            return Answer(False, witness)
        events = [e for s in self._seen for e in s.possible if e.symbol is not None]
        if self._complete and all(edge.puts_out[0] for edge in events):
            return Answer(bool(events))
        return Answer(None, reason=self._reason)

    def _stuck(self, can: Answer) -> tuple[Answer, Witness | None]:
        if not self._complete or can.holds is None:
            return Answer(None, reason=self._reason), None
        stuck: list[Edge] = []
        for each in self._seen:
            live = each.live()
            stuck += [
                edge
                for edge in each.possible
                if edge.to not in live
                and edge.to.came is edge
                and all(step.symbol is None or step.symbol.event for step in path_to(edge))
            ]
            if each.first not in live and not each.possible:
                return Answer(None, reason="nothing can come"), None
        silent = [e for e in stuck if not any(step.puts_out[0] for step in path_to(e))]
        witness = self._shortest(stuck)
        if witness is not None:
            return Answer(True, witness), self._shortest(silent)
        if stuck or self._reason is not None:
            return Answer(None, reason=self._reason), None
        is_plain = not self._behaviour.has_clocks and not any(s.by_order for s in self._seen)
        if is_plain or all(s.nodes() <= s.live_at_once() for s in self._seen):
            return Answer(False), None
        # A situation stands for many times, and some of them might not lead on.
        return Answer(None, reason="where times decide, only what is found is certain"), None

    def _keeps_on(self) -> bool | None:
        if not self._complete:
            return None
        if not any(_keeps_on(s.possible, s.passing) for s in self._seen):
            return False
        if not any(s.by_order for s in self._seen):
            return True
        return True if any(_keeps_on(s.at_once(), ()) for s in self._seen) else None

    def _dead_parts(
        self,
    ) -> tuple[tuple[Labelled, ...], tuple[int, ...], tuple[int, ...]] | tuple[None, None, None]:
        correlation = self._behaviour.correlation
        if not self._complete or not isinstance(correlation, FilterCorrelation):
            return None, None, None
        active: set[str] = set()
        cases: set[int] = set()
        branches: set[int] = set()
        for each in self._seen:
            for outcome in each.outcomes():
                cases |= outcome.cases
                for fired in outcome.fired:
                    active |= fired.labels
                    branches.add(fired.branch)
        labels = labels_in(correlation.branches)
        return (
            tuple(each for each in labels if each.label not in active),
            tuple(n for n in range(len(correlation.cases)) if n not in cases),
            tuple(n for n in range(len(correlation.branches)) if n not in branches),
        )

    def _shortest(self, edges: Iterable[Edge]) -> Witness | None:
        for edge in sorted(edges, key=lambda edge: edge.source.depth):
            poll()
            witness = real_witness([self._behaviour], edge)
            if witness is not None:
                return witness
        return None


def _keeps_on(edges: Sequence[Edge], passing: Iterable[tuple[SearchNode, SearchNode]]) -> bool:
    """Whether an edge with an output lies on a cycle: then there can be any number of outputs."""
    after: dict[SearchNode, list[SearchNode]] = {}
    before: dict[SearchNode, list[SearchNode]] = {}
    for source, to in [*((edge.source, edge.to) for edge in edges), *passing]:
        after.setdefault(source, []).append(to)
        before.setdefault(to, []).append(source)
    component: dict[SearchNode, int] = {}
    for number, root in enumerate(_finished(after)[::-1]):
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node not in component:
                component[node] = number
                waiting += before.get(node, ())
    return any(edge.puts_out[0] and component[edge.source] == component[edge.to] for edge in edges)


def _finished(after: dict[SearchNode, list[SearchNode]]) -> list[SearchNode]:
    """The nodes of a graph in postorder: each after the nodes that it leads to, but for cycles."""
    seen: set[SearchNode] = set()
    finished: list[SearchNode] = []
    for root in after:
        waiting = [(root, False)]
        while waiting:
            node, is_done = waiting.pop()
            if is_done:
                finished.append(node)
            elif node not in seen:
                seen.add(node)
                waiting.append((node, True))
                waiting += [(each, False) for each in after.get(node, ())]
    return finished

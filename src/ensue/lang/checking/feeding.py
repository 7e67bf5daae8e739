"""Finds the correlations that read the outputs of others, and refuses circles.

A correlation puts out the types that it pushes: `push new T`, `push(T)` and `notify` an event of
type `T` with the source `ensue/` and the name of the correlation; `push a` any event of port `a`,
with its own source. A push that can never happen feeds no correlation: in a case whose labels
exclude each other, of a port that has no place in the filter, or of `false`. A port reads an output
if its type fits and its `from` does not exclude it. Pairs of correlations are only listed once it
is known that there is no circle, since thousands of rules may put out a type that thousands read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ensue.lang.checking.circles import Node, circles
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.checking.pushing import cases_that_may_run
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.checking.type_forest import TypeForest
from ensue.lang.derived.parts import ports_in
from ensue.lang.syntax import (
    Constant,
    Correlation,
    EclCorrelation,
    EventPort,
    Push,
    PushNew,
    PushPort,
)

# Stands for every source that no `from` names; no text of the language can contain it.
_UNASKED = "\0"

# Many rules that feed each other have more circles than anyone wants to read.
CIRCLES_SHOWN = 20
NAMES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class OutputKind:
    """A kind of output. An event that is sent on (`or_below`) may also be of a subtype.

    A `source` of None stands for any source.
    """

    type: str
    or_below: bool
    source: str | None


def output_source(correlation: str) -> str:
    """The source of every event that a correlation builds."""
    return f"ensue/{correlation}"


def outputs_of(correlation: Correlation) -> Iterator[OutputKind]:
    """The kinds of outputs that a correlation can have, by its text."""
    source = output_source(correlation.name)
    if isinstance(correlation, EclCorrelation):
        for part in expressions_in(correlation.body):
            if isinstance(part, Push) and part.body != Constant(False):
                yield OutputKind(part.type or correlation.output, False, source)
        return
    bound = set(ports_in(correlation.branches))
    ports = {
        each.name: each
        for each in correlation.ports
        if isinstance(each, EventPort) and each.name in bound
    }
    cases = [s for case in cases_that_may_run(correlation) for s in case.statements]
    for statement in (*correlation.initially, *cases):
        if isinstance(statement, PushNew):
            yield OutputKind(statement.type, False, source)
    # Before the first case nothing is bound, so `push a` sends nothing there.
    for statement in cases:
        if isinstance(statement, PushPort) and statement.port in ports:
            port = ports[statement.port]
            yield OutputKind(port.type, True, port.source)


@dataclass(frozen=True, slots=True)
class Junction:
    """The readers of a type and of the types above it, or with `down` of the types below it."""

    type: str
    down: bool
    source: str | None


@dataclass
class Feeding:
    """The graph of feeding: correlations (by number) and the junctions between them."""

    correlations: Sequence[Correlation]
    types: TypeForest
    _ports: dict[str, list[tuple[str | None, int]]] = field(default_factory=dict, init=False)
    _sources: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        for index, each in enumerate(self.correlations):
            for port in each.ports:
                if isinstance(port, EventPort) and port.type in self.types:
                    self._ports.setdefault(port.type, []).append((port.source, index))
                    self._sources |= {port.source} if port.source is not None else set()

    def successors(self, node: Node) -> Iterator[Node]:
        if isinstance(node, Junction):
            yield from self._readers_at(node)
            if node.down:
                for child in self.types.children[node.type]:
                    yield Junction(child, True, node.source)
            elif (parent := self.types.types[node.type].parent) is not None:
                yield Junction(parent, False, node.source)
        elif isinstance(node, int):
            yield from self._junctions_of(node)

    def _junctions_of(self, index: int) -> Iterator[Junction]:
        for output in dict.fromkeys(outputs_of(self.correlations[index])):
            if output.type in self.types:
                asked = output.source is None or output.source in self._sources
                source = output.source if asked else _UNASKED
                yield Junction(output.type, False, source)
                if output.or_below:
                    yield Junction(output.type, True, source)

    def _readers_at(self, junction: Junction) -> Iterator[int]:
        for asked, index in self._ports.get(junction.type, ()):
            if asked is None or junction.source is None or asked == junction.source:
                yield index

    def feeds(self) -> Mapping[str, tuple[str, ...]]:
        """For each correlation the others that read its outputs, in library order."""
        names = [each.name for each in self.correlations]
        # Correlations with equal outputs share the answer, unless they are part of it.
        answers: dict[tuple[Node, ...], tuple[str, ...]] = {}
        result: dict[str, tuple[str, ...]] = {}
        for index, own in enumerate(names):
            junctions = tuple(self._junctions_of(index))
            if junctions not in answers:
                readers = sorted(set(self._readers_beyond(junctions)))
                answers[junctions] = tuple(names[each] for each in readers)
            fed = answers[junctions]
            result[own] = tuple(each for each in fed if each != own) if own in fed else fed
        return result

    def _readers_beyond(self, junctions: Sequence[Node]) -> Iterator[int]:
        pending = list(junctions)
        while pending:
            node = pending.pop()
            if isinstance(node, int):
                yield node
            else:
                pending.extend(self.successors(node))


def check_feeding(
    correlations: Sequence[Correlation], scope: LibraryScope
) -> Mapping[str, tuple[str, ...]]:
    """Report rules that feed each other in a circle; the readers of each rule are returned."""
    feeding = Feeding(correlations, scope.types)
    for circle in circles(len(correlations), feeding.successors, CIRCLES_SHOWN):
        names = [correlations[index].name for index in circle]
        scope.error(
            "circular-feeding",
            f"correlations read each other's outputs in a circle: {_shortened([*names, names[0]])}",
            correlations[circle[0]].span,
            "let one put out a type that the next does not read, or limit its port with `from`",
        )
    return {} if scope.diagnostics.has_errors else feeding.feeds()


def _shortened(path: Sequence[str]) -> str:
    """A long path is shown by its two ends."""
    if len(path) > NAMES_SHOWN:
        half = NAMES_SHOWN // 2
        left_out = f"... {len(path) - 2 * half} more ..."
        path = [*path[:half], left_out, *path[-half:]]
    return " -> ".join(path)

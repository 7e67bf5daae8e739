"""Finds which correlations read what others put out, and refuses circles.

A correlation puts out exactly the types that it pushes: `push new T`, `push(T)` and `notify` a
`T` whose source is `ensue/` and its name; `push a` whatever may come in on port `a`, from its own
source. Who reads that is a port whose type can meet it and whose `from` does not rule it out.
Readers of one kind of output are found once and shared, as thousands of rules may put out the
same type and thousands may read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ensue.lang.checking.circles import circles
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.checking.type_forest import TypeForest
from ensue.lang.syntax import Correlation, EclCorrelation, EventPort, Push, PushNew, PushPort

# Readers are places in the list of correlations, in that order and without repeats.
Readers = tuple[int, ...]

# Stands for every source that no port asks for; a string of the language cannot hold it.
_UNASKED = "\0"

# A knot of many rules holds more circles than anyone wants to read.
CIRCLES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Output:
    """A kind of output. `or_below` is set for an event that is sent on, whose type may be lower;
    a `source` of None stands for any."""

    type: str
    or_below: bool
    source: str | None


def output_source(correlation: str) -> str:
    """The source of every event that a correlation builds."""
    return f"ensue/{correlation}"


def outputs_of(correlation: Correlation) -> Iterator[Output]:
    """What a correlation can put out, as far as its text tells."""
    source = output_source(correlation.name)
    if isinstance(correlation, EclCorrelation):
        for part in expressions_in(correlation.body):
            if isinstance(part, Push):
                yield Output(part.type or correlation.output, False, source)
        return
    ports = {each.name: each for each in correlation.ports if isinstance(each, EventPort)}
    cases = (statement for case in correlation.cases for statement in case.statements)
    for statement in (*correlation.initially, *cases):
        if isinstance(statement, PushNew):
            yield Output(statement.type, False, source)
        elif isinstance(statement, PushPort) and statement.port in ports:
            port = ports[statement.port]
            yield Output(port.type, True, port.source)


@dataclass
class Feeding:
    """The correlations of a library and who reads whom."""

    correlations: Sequence[Correlation]
    types: TypeForest
    _reading: dict[str, list[tuple[str | None, int]]] = field(init=False)
    _upwards: dict[tuple[str, str | None], Readers] = field(default_factory=dict, init=False)
    _downwards: dict[tuple[str, str | None], Readers] = field(default_factory=dict, init=False)
    _sources: frozenset[str] = field(init=False)
    readers: list[tuple[Readers, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self._reading = {}
        for index, each in enumerate(self.correlations):
            for port in each.ports:
                if isinstance(port, EventPort) and port.type in self.types:
                    self._reading.setdefault(port.type, []).append((port.source, index))
        self._sources = frozenset(
            source for ports in self._reading.values() for source, _ in ports if source is not None
        )
        self.readers = [self._readers(each) for each in self.correlations]

    def _readers(self, correlation: Correlation) -> tuple[Readers, ...]:
        found: dict[int, Readers] = {}
        for output in set(outputs_of(correlation)):
            if output.type in self.types:
                asked = output.source is None or output.source in self._sources
                source = output.source if asked else _UNASKED
                upwards = self._above(output.type, source)
                found[id(upwards)] = upwards
                if output.or_below:
                    downwards = self._under(output.type, source)
                    found[id(downwards)] = downwards
        return tuple(each for each in found.values() if each)

    def _at(self, type_name: str, source: str | None) -> set[int]:
        return {
            index
            for asked, index in self._reading.get(type_name, ())
            if asked is None or source is None or asked == source
        }

    def _above(self, type_name: str, source: str | None) -> Readers:
        """Readers with a port of the type itself or of a type above it."""
        unknown: list[str] = []
        readers: Readers = ()
        for each in self.types.lineage(type_name):
            if (each, source) in self._upwards:
                readers = self._upwards[each, source]
                break
            unknown.append(each)
        for each in reversed(unknown):
            own = self._at(each, source)
            # Where a type adds no reader of its own, the tuple of its parent is shared.
            readers = tuple(sorted(own.union(readers))) if own else readers
            self._upwards[each, source] = readers
        return readers

    def _under(self, type_name: str, source: str | None) -> Readers:
        """Readers with a port of a type below."""
        key = (type_name, source)
        if key not in self._downwards:
            own: set[int] = set()
            for each in self.types.below(type_name):
                own |= self._at(each, source)
            self._downwards[key] = tuple(sorted(own))
        return self._downwards[key]

    def feeds(self) -> Mapping[str, tuple[str, ...]]:
        """For each correlation the others that read what it puts out, in library order."""
        names = [each.name for each in self.correlations]
        merged: dict[tuple[int, ...], tuple[str, ...]] = {}
        result: dict[str, tuple[str, ...]] = {}
        for index, groups in enumerate(self.readers):
            key = tuple(sorted(id(each) for each in groups))
            if key not in merged:
                merged[key] = tuple(names[i] for i in sorted(set().union(*groups)))
            fed = merged[key]
            own = names[index]
            result[own] = tuple(each for each in fed if each != own) if own in fed else fed
        return result


def check_feeding(
    correlations: Sequence[Correlation], scope: LibraryScope
) -> Mapping[str, tuple[str, ...]]:
    """Report every circle; out goes who feeds whom."""
    feeding = Feeding(correlations, scope.types)
    for circle in circles(feeding.readers, CIRCLES_SHOWN):
        names = [correlations[index].name for index in circle]
        scope.error(
            "circular-feeding",
            f"correlations read each other's outputs in a circle: "
            f"{' -> '.join([*names, names[0]])}",
            correlations[circle[0]].span,
            "let one put out a type that the next does not read, or limit its port with `from`",
        )
    return {} if scope.diagnostics.has_errors else feeding.feeds()

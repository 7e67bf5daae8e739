"""Scopes: the values of names.

In a predicate over one event a name is looked for as a CloudEvents attribute, then in the event's
data, then as a CloudEvents attribute in lower case; a dotted name leads into nested data. In a
transformer the first part is a port, and the rest is looked for in the event bound to it. A null is
missing, and so is every name of a port that is not bound. A derived attribute is worked out where
it is looked for. Aggregates need the values of a name over all events of a port. Nothing is cast
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from ensue.events.event import Event
from ensue.events.times import datetime_of
from ensue.lang.expressions.derived_names import DerivedName, DerivedValue
from ensue.lang.expressions.tree import ConceptTerm, TemporalTerm


class Missing:
    """The type of `MISSING`, the value of a name that is not there."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


class Scope(Protocol):
    """Values of names."""

    def lookup(self, parts: tuple[str, ...]) -> Any:
        """The value of a bare or dotted name, or `MISSING`."""


@runtime_checkable
class AnsweringScope(Protocol):
    """A scope that can also ask a history or an ontology."""

    def answer(self, term: TemporalTerm | ConceptTerm) -> bool | None:
        """Whether a term holds; None without a history or an ontology to ask."""


@dataclass(frozen=True, slots=True)
class EventScope:
    """Names in one event: its context attributes, then its data."""

    event: Event

    def lookup(self, parts: tuple[str, ...]) -> Any:
        if len(parts) > 1:
            return _walk(self.event.data, parts)
        (name,) = parts
        if name.__class__ is DerivedName and (value := name.values.get(self.event.type)):
            return self._worked_out(value)
        found = self._attribute(name)
        if found is MISSING:
            found = _walk(self.event.data, parts)
        return self._attribute(name.lower()) if found is MISSING else found

    def _worked_out(self, derived: DerivedValue) -> Any:
        outcome = derived.evaluate(derived.expression, self)
        return MISSING if outcome.errors else _present(derived.fitted(outcome.value))

    def _attribute(self, name: str) -> Any:
        match name:
            case "id":
                return self.event.id
            case "source":
                return self.event.source
            case "type":
                return self.event.type
            case "time":
                return datetime_of(self.event.time)
            case "specversion":
                return "1.0"
            case _:
                return _present(self.event.extensions.get(name))


@dataclass(frozen=True, slots=True)
class TimerScope:
    """The firing of a timer: it has a time, in microseconds since 1970, and nothing else."""

    time: int

    def lookup(self, parts: tuple[str, ...]) -> Any:
        is_time = len(parts) == 1 and parts[0].lower() == "time"
        return datetime_of(self.time) if is_time else MISSING


@dataclass(frozen=True, slots=True)
class PortScope:
    """Names in the events that are bound to ports; None for a port without one."""

    bindings: Mapping[str, Event | Scope | None]

    def lookup(self, parts: tuple[str, ...]) -> Any:
        port, *rest = parts
        bound = self.bindings.get(port)
        if bound is None or not rest:
            return MISSING
        scope = EventScope(bound) if isinstance(bound, Event) else bound
        return scope.lookup(tuple(rest))


@dataclass(frozen=True, slots=True)
class StretchScope(PortScope):
    """As `PortScope`, with all events of each port in its stretch, for aggregates."""

    stretches: Mapping[str, Sequence[Event | Scope]]

    def stretch(self, parts: tuple[str, ...]) -> list[Any]:
        """The values of `port.name` over the port's stretch, in order; `MISSING` for a null.

        For the name of a port alone there is some value for each of its events.
        """
        port, *rest = parts
        events = self.stretches.get(port, ())
        if not rest:
            return [True] * len(events)
        scopes = (EventScope(each) if isinstance(each, Event) else each for each in events)
        return [each.lookup(tuple(rest)) for each in scopes]


@dataclass(frozen=True, slots=True)
class ComputedScope(PortScope):
    """As `PortScope`, with aggregates that have been computed already.

    An aggregate is found by its function and the parts of its name; it is a value or a fault.
    """

    computed: Mapping[tuple[str, tuple[str, ...]], Any]


def _walk(data: Any, parts: tuple[str, ...]) -> Any:
    for part in parts:
        if not isinstance(data, Mapping):
            return MISSING
        data = data.get(part)
    return _present(data)


def _present(value: Any) -> Any:
    return MISSING if value is None else value

"""What an event is to a correlation: the ports that it matches, its keys, and its atoms.

In comes an event; out come `Reading`s, one for each key under which the correlation reads it, each
with the set of ports that it matches there (type or subtype, `from`, `where`). To a machine, a
reading is the set of atoms that it satisfies, as a mask (bit i: atom i). An engine starts from
these; nothing here remembers anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.wiring import rules_named, sources_asked
from ensue.lang.expressions import Expression
from ensue.lang.expressions.derived_names import path_to
from ensue.lang.expressions.evaluation import (
    MISSING,
    EventScope,
    TimerScope,
    evaluate,
    holds,
    text_of,
)
from ensue.lang.expressions.names import is_time, names_in
from ensue.lang.syntax import CommonKey, Correlation, EventPort, TimerPort
from ensue.machine.model import AnyAtom, Atom, Machine, PortAtom, PredicateAtom

KeyValue = tuple[str, object]
"""A key's value with its kind, for in Python `1`, `1.0` and `True` would be one key."""

Key = tuple[KeyValue, ...]

KeyNames = tuple[str, ...]
"""The attribute that each `by` key asks for."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a correlation reads: an event, or the firing of a timer, and the ports it matches."""

    time: int
    ports: frozenset[str]
    event: Event | None = None

    @property
    def event_id(self) -> str | None:
        return self.event.id if self.event else None


def key_text(key: Key) -> str:
    """The `partitionkey` of an output."""
    if len(key) == 1 and key[0][1].__class__ is str:
        return key[0][1]
    # Both zeros are one key: it has one text, whichever has begun it.
    return ",".join(text_of(v + 0.0 if isinstance(v, float) else v) for _, v in key)


class Ports:
    """The ports of one correlation, ready to be asked about events."""

    def __init__(self, correlation: Correlation, types: TypeSystem) -> None:
        self.timers = [p for p in correlation.ports if isinstance(p, TimerPort)]
        self._events = [p for p in correlation.ports if isinstance(p, EventPort)]
        self._accepted = {p.name: frozenset(types.subtypes(p.type)) for p in self._events}
        self.key_names = {p.name: key_names(correlation, p) for p in self._events}
        self._sources = {p.name: sources_asked(p) for p in self._events}
        self._rules = {p.name: frozenset(rules_named(p)) for p in self._events}

    def fitting(self, event: Event, author: str | None = None) -> list[str]:
        """The names of the event ports whose type and source an event has, in their order.

        `author` is the correlation that has put the event out; None for an event from outside.
        """
        return [port.name for port in self._fitting(event, author)]

    def matched(self, event: Event, author: str | None = None) -> list[str]:
        """The names of the event ports that the event of an author matches, in their order."""
        return [
            port.name
            for port in self._fitting(event, author)
            if port.where is None or holds(port.where, event)
        ]

    def _fitting(self, event: Event, author: str | None) -> Iterator[EventPort]:
        for port in self._events:
            name = port.name
            if event.type in self._accepted[name]:
                asked = self._sources[name]
                if (
                    asked is None or event.source in asked
                    if author is None
                    else author in self._rules[name]
                ):
                    yield port

    def readings(self, event: Event, matched: list[str]) -> dict[Key, Reading]:
        """The event as each key reads it, in the order of ports; a port without a key does not."""
        by_key: dict[Key, list[str]] = {}
        for port in matched:
            key = key_of(event, self.key_names[port])
            if key is not None:
                by_key.setdefault(key, []).append(port)
        return {key: Reading(event.time, frozenset(p), event) for key, p in by_key.items()}


def key_names(correlation: Correlation, port: EventPort) -> tuple[str, ...]:
    """The attribute that each `by` key asks of one port."""
    return tuple(
        key.name if isinstance(key, CommonKey) else dict(key.parts)[port.name]
        for key in correlation.clauses.by
    )


def key_of(event: Event, names: tuple[str, ...]) -> Key | None:
    scope = EventScope(event)
    values = [scope.lookup(path_to(name)) for name in names]
    if any(value is MISSING or isinstance(value, list | dict) for value in values):
        return None
    return tuple(key_value(value) for value in values)


def key_value(value: object) -> KeyValue:
    """A value with its kind; integers and reals are of one kind."""
    if isinstance(value, bool):
        return "boolean", value
    return ("number" if isinstance(value, int | float) else type(value).__name__), value


def mask_of(machine: Machine, reading: Reading) -> int:
    mask = 0
    for number, atom in enumerate(machine.atoms):
        if satisfies(reading, atom):
            mask |= 1 << number
    return mask


def timer_mask(machine: Machine, port: str) -> int | None:
    """The mask of the firing of a timer port, whenever it is; None if its time matters."""
    return None if asks_time(machine) else mask_of(machine, Reading(0, frozenset({port})))


def asks_time(machine: Machine) -> bool:
    """Whether a predicate of a machine asks for the time, which firings of timers differ in."""
    predicates = [atom.predicate for atom in machine.atoms if isinstance(atom, PredicateAtom)]
    return any(is_time(parts[:1]) for each in predicates for parts in names_in(each))


def satisfies(reading: Reading, atom: Atom) -> bool:
    match atom:
        case PortAtom(name):
            return name in reading.ports
        case PredicateAtom(predicate):
            return predicate_holds(predicate, reading)
        case AnyAtom():
            return True


def predicate_holds(predicate: Expression, reading: Reading) -> bool:
    if reading.event is not None:
        return holds(predicate, reading.event)
    outcome = evaluate(predicate, TimerScope(reading.time))
    return outcome.value is True and not outcome.errors

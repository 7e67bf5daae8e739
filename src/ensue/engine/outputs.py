"""The events that a correlation puts out, and the transformer that says which.

An output is an event that also says where it comes from: the correlation, what triggered it, which
labels were active and which events were bound. Every engine makes its outputs here (`Outputs`), so
that they are the same to the letter.

Which cases run for a trigger, and what their statements do, is the same in every engine, too
(`Transformer`); engines differ in how they abort and revive labels, so a transformer is given the
labels as an object to ask and to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, Protocol, assert_never

from ensue.engine.ports import Key, Reading, key_text
from ensue.events.conformance import conform_value, with_whole_numbers
from ensue.events.event import Event
from ensue.events.nesting import is_nested, nested
from ensue.events.times import format_time, microseconds_of
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.checking.feeding import outputs_of
from ensue.lang.derived.keys import key_places
from ensue.lang.derived.label_logic import change_of, label_value
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import PortScope, StretchScope, TimerScope, evaluate
from ensue.lang.syntax import (
    Change,
    Correlation,
    EclCorrelation,
    Extension,
    FilterCorrelation,
    PushNew,
    PushPort,
    Statement,
)

TIMER = "timer"
"""The `trigger` of what the clock completed."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """The moment at which a correlation puts something out, and what it knows then.

    `bound` holds what each port stands for, in the order in which it was read, and `stretches` all
    readings of a port in its stretch, where the correlation has aggregates. For explanations
    only, `because` is what completed the parts of an expression that binds nothing, and `matched`
    what completed each port of a filter.
    """

    time: int
    event_id: str | None
    labels: frozenset[str] = frozenset()
    bound: Mapping[str, Reading] = field(default_factory=dict)
    stretches: Mapping[str, Sequence[Reading]] = field(default_factory=dict)
    because: Sequence[Reading] = ()
    matched: Sequence[tuple[str, Reading]] = ()

    @property
    def name(self) -> str:
        return TIMER if self.event_id is None else self.event_id

    @property
    def causes(self) -> list[str]:
        """The ids of the bound events, each once, in the order in which they were read."""
        events = [reading.event for reading in self.bound.values() if reading.event]
        return list(dict.fromkeys(event.id for event in events))


class Outputs:
    """Makes the outputs of one correlation under one key.

    `time` and `made` count what was put out at the latest time, for the ids; they are part of the
    state of a run. There may be millions of these, and hardly ever is there more than one trigger
    at a time, so the latest one has its count without a dictionary.
    """

    __slots__ = (
        "_correlation",
        "_count",
        "_keyed",
        "_others",
        "_trigger",
        "_types",
        "key",
        "key_text",
        "time",
    )

    def __init__(self, correlation: str, key: Key, keyed: bool, types: TypeSystem) -> None:
        self._correlation = correlation
        self._keyed = keyed
        self._types = types
        self.key = key
        self.key_text = key_text(key)
        self.time: int | None = None
        self._trigger: str | None = None
        self._count = 0
        self._others: dict[str, int] | None = None

    @property
    def made(self) -> dict[str, int]:
        """How much was put out at the latest time, by trigger."""
        latest = {} if self._trigger is None else {self._trigger: self._count}
        return {**(self._others or {}), **latest}

    @made.setter
    def made(self, made: Mapping[str, int]) -> None:
        others = dict(made)
        self._trigger, self._count = others.popitem() if others else (None, 0)
        self._others = others or None

    def forward(
        self, trigger: Trigger, event: Event, statement: PushPort, scope: PortScope | None = None
    ) -> Event:
        """`push a`: the event as it was but for `with`, at the time of the trigger."""
        self.number(trigger.time, trigger.name)
        scope = scope or port_scope(trigger.bound, trigger.stretches)
        own = extended(event.extensions, statement.extensions, scope)
        provenance = self._provenance(trigger)
        return Event(
            event.id, event.source, event.type, trigger.time, event.data, {**own, **provenance}
        )

    def create(
        self,
        trigger: Trigger,
        type_name: str,
        data: Mapping[str, Any],
        own: Mapping[str, Any] = MappingProxyType({}),
    ) -> Event:
        """A new event; `own` are its extensions beside those that say where it comes from."""
        provenance = {**own, **self._provenance(trigger)}
        return self.make(type_name, data, trigger.time, trigger.name, provenance)

    def build(self, trigger: Trigger, statement: PushNew, scope: PortScope | None = None) -> Event:
        """`push new`: a value that cannot be had, or does not fit its attribute, is null."""
        scope = scope or port_scope(trigger.bound, trigger.stretches)
        attributes = self._types.attributes(statement.type)
        data = {
            assignment.name: value_for(assignment.value, scope, attributes[assignment.name])
            for assignment in statement.assignments
        }
        own = extended({}, statement.extensions, scope)
        return self.create(trigger, statement.type, nested(data), own)

    def filled(self, type_name: str, places: Mapping[str, int]) -> Mapping[str, Any]:
        """The data of an output that carries nothing but its key: `places` by attribute names."""
        attributes = self._types.attributes(type_name)
        return nested(
            {
                name: fitting_key(self.key[place][1], attributes[name])
                for name, place in places.items()
                if name in attributes
            }
        )

    def make(
        self,
        type_name: str,
        data: Mapping[str, Any],
        time: int,
        trigger: str,
        extensions: Mapping[str, Any],
    ) -> Event:
        """A new event, with an id that is the same in every engine and every rerun."""
        number = self.number(time, trigger)
        key = f":{self.key_text}" if self._keyed else ""
        name = self._correlation
        identity = f"{name}:{trigger}@{time}{key}:{number}"
        return Event(identity, f"ensue/{name}", type_name, time, data, extensions)

    def provenance(self, trigger: str, labels: str, causes: str) -> dict[str, str]:
        """Where an output comes from, as its extension attributes say it."""
        attributes = {
            "correlation": self._correlation,
            "trigger": trigger,
            "labels": labels,
            "causes": causes,
        }
        if self._keyed:
            attributes["partitionkey"] = self.key_text
        return attributes

    def number(self, time: int, trigger: str) -> int:
        """The next number among what is put out on this trigger, for its id."""
        self._count = self.count_at(time, trigger) + 1
        return self._count

    def count_at(self, time: int, trigger: str) -> int:
        """How much was put out on this trigger, which is the latest from here on."""
        # One event id may be read twice at one time: as it came, and as another rule sent it on.
        if time != self.time:
            self.time, self._trigger, self._count, self._others = time, trigger, 0, None
        elif trigger != self._trigger:
            others = self.made
            self._trigger, self._count = trigger, others.pop(trigger, 0)
            self._others = others
        return self._count

    def set_count(self, count: int) -> None:
        """So much was put out on the latest trigger."""
        self._count = count

    def _provenance(self, trigger: Trigger) -> dict[str, str]:
        labels = ",".join(sorted(trigger.labels))
        return self.provenance(trigger.name, labels, ",".join(trigger.causes))


def carries_key_inside(correlation: Correlation, types: TypeSystem) -> bool:
    """Whether outputs of an ECL expression are filled with its key inside of nested data."""
    if not isinstance(correlation, EclCorrelation):
        return False
    names = {name for name in key_places(correlation.clauses.by) if is_nested(name)}
    return any(names & types.attributes(each.type).keys() for each in outputs_of(correlation))


def port_scope(
    bound: Mapping[str, Reading], stretches: Mapping[str, Sequence[Reading]] = MappingProxyType({})
) -> StretchScope:
    """The scope in which `having` and the values of a transformer are evaluated.

    A port without a stretch has no events, so that its `count` is 0: no port has one when the
    statements before the first case run.
    """
    bindings = {port: _asked(read) for port, read in bound.items()}
    events = {port: [_asked(each) for each in read] for port, read in stretches.items()}
    return StretchScope(bindings, events)


def _asked(reading: Reading) -> Event | TimerScope:
    return reading.event or TimerScope(reading.time)


def fitting_key(value: Any, type_: ValueType) -> Any:
    """A key as an attribute holds it; both zeros are one key, and what does not fit is null."""
    held = value + 0.0 if isinstance(value, float) else value
    try:
        return conform_value(with_whole_numbers(held, type_), type_)
    except ValueError:
        return None


def value_for(expression: Expression, scope: PortScope, type_: ValueType) -> Any:
    outcome = evaluate(expression, scope)
    if outcome.errors:
        return None
    try:
        return conform_value(outcome.value, type_)
    except ValueError:
        return None


def extended(
    before: Mapping[str, Any], extensions: Sequence[Extension], scope: PortScope
) -> Mapping[str, Any]:
    """Extensions of an event with what `with` sets; one whose value is null is left out."""
    values = ((each.name, extension_value(each, scope)) for each in extensions)
    return with_extensions(before, values) if extensions else before


def with_extensions(
    before: Mapping[str, Any], values: Iterable[tuple[str, Any]]
) -> Mapping[str, Any]:
    held = dict(before)
    for name, value in values:
        if value is None:
            held.pop(name, None)
        else:
            held[name] = value
    return held


def extension_value(extension: Extension, scope: PortScope) -> Any:
    """The value as an event carries it: a timestamp is text."""
    assert extension.type is not None, "the extensions of a checked library have types"
    return carried_value(value_for(extension.value, scope, extension.type))


def carried_value(value: Any) -> Any:
    """The value of an attribute as an extension carries it."""
    return format_time(microseconds_of(value)) if isinstance(value, datetime) else value


class LabelStates(Protocol):
    """The labels of a correlation under one key."""

    def is_aborted(self, label: str) -> bool: ...

    def abort(self, label: str) -> None: ...

    def revive(self, label: str) -> None: ...


class Transformer:
    """The transformer of one correlation under one key."""

    def __init__(
        self, correlation: FilterCorrelation, outputs: Outputs, labels: LabelStates
    ) -> None:
        self._correlation = correlation
        self._outputs = outputs
        self._labels = labels

    def begin(self, trigger: Trigger) -> list[Event]:
        """Run the statements before the first case."""
        return list(self._run(self._correlation.initially, trigger))

    def transform(self, trigger: Trigger) -> list[Event]:
        """Run each case whose label expression is true at its turn."""
        made: list[Event] = []
        for case in self._correlation.cases:
            if label_value(case.condition, trigger.labels, self._labels.is_aborted):
                made += self._run(case.statements, trigger)
        return made

    def _run(self, statements: Sequence[Statement], trigger: Trigger) -> Iterator[Event]:
        for statement in statements:
            match statement:
                case PushPort(port):
                    reading = trigger.bound.get(port)
                    if reading and reading.event:
                        yield self._outputs.forward(trigger, reading.event, statement)
                case PushNew():
                    yield self._outputs.build(trigger, statement)
                case Change(kind, labels):
                    for label in labels:
                        self._change(kind, label.name)
                case _:
                    assert_never(statement)

    def _change(self, kind: Literal["abort", "revive", "toggle"], label: str) -> None:
        if change_of(kind, self._labels.is_aborted(label)) == "abort":
            self._labels.abort(label)
        else:
            self._labels.revive(label)

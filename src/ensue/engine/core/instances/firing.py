"""The outputs of a branch that fires: one builder, for a rule alone and for the rules in cells.

Where no statement changes labels, the cases that run are known with the active labels. So the
statements of each kind of firing are prepared once (`OutputBuilder`): the ports by their places
among what is bound, and each value as a function of that. In come the bound events of a firing; out
go events that are equal to those of `ensue.engine.outputs`. A rule that changes labels runs the
general `Transformer` instead (`filters`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from ensue.engine.outputs import (
    TIMER,
    Outputs,
    carried_value,
    fitting_key,
    port_scope,
    value_for,
    with_extensions,
)
from ensue.engine.ports import Key, Reading
from ensue.events.event import CONTEXT, Event
from ensue.events.nesting import is_nested, nested
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.checking.names import TIMESTAMP
from ensue.lang.derived.extensions import TEXT
from ensue.lang.derived.keys import key_places
from ensue.lang.derived.label_logic import label_value
from ensue.lang.derived.relating import aggregated_name
from ensue.lang.expressions import Expression, Literal, Name
from ensue.lang.expressions.scopes import ComputedScope, PortScope
from ensue.lang.expressions.tree import Call
from ensue.lang.syntax import (
    Correlation,
    EventPort,
    FilterCorrelation,
    PushNew,
    PushPort,
    TimerPort,
)
from ensue.machine.stepping import Fired

NumberedEvent = tuple[int, Event | int]
"""An event, or the time of a timer's firing, with the number of its reading. Numbers grow."""

_number: Callable[[Any], int] = itemgetter(0)


def reading_of(numbered: NumberedEvent) -> Reading:
    _, what = numbered
    if isinstance(what, int):
        return Reading(what, frozenset())
    return Reading(what.time, frozenset(), what)


def trigger_of(numbered: NumberedEvent) -> str:
    """The `trigger` of outputs: the id of the event, or `timer`."""
    return TIMER if isinstance(numbered[1], int) else numbered[1].id


def bound_events(
    pairs: Iterable[tuple[int, str]], places: Sequence[NumberedEvent | None], first: bool
) -> dict[str, NumberedEvent]:
    """The last (or first) over the places of each port."""
    found: dict[str, NumberedEvent] = {}
    for place, port in pairs:
        numbered = places[place]
        assert numbered is not None, "a place that counts as bound holds an event"
        known = found.get(port)
        if known is None or (numbered[0] < known[0]) == first:
            found[port] = numbered
    return found


def in_order(found: Mapping[str, NumberedEvent]) -> dict[str, NumberedEvent]:
    return dict(sorted(found.items(), key=_when_read))


def _when_read(item: tuple[str, NumberedEvent]) -> int:
    return item[1][0]


def causes_of(bound: Sequence[NumberedEvent]) -> str:
    """The ids of bound events, each once, in the order in which they were read."""
    if len(bound) == 2:
        (first, one), (second, other) = bound
        if first != second and isinstance(one, Event) and isinstance(other, Event):
            ids = (one.id, other.id) if first < second else (other.id, one.id)
            return one.id if one.id == other.id else ",".join(ids)
    ordered = sorted(bound, key=_number)
    return ",".join(dict.fromkeys([e.id for _, e in ordered if isinstance(e, Event)]))


def scopes_of(
    places: Sequence[str], aggregates: Sequence[Expression], first: bool
) -> Callable[[Sequence[Any]], PortScope]:
    """A function that gives names and aggregates their values, from the events in places.

    The results of aggregates, values or faults, stand behind the places.
    """
    pairs = list(enumerate(places))
    asked = [
        (each.function, aggregated_name(each)) for each in aggregates if isinstance(each, Call)
    ]

    def scope(held: Sequence[Any]) -> PortScope:
        found = bound_events(pairs, held, first=first)
        plain = port_scope({port: reading_of(each) for port, each in found.items()})
        if not asked:
            return plain
        computed = dict(zip(asked, held[len(pairs) :], strict=True))
        return ComputedScope(plain.bindings, computed)

    return scope


class Moment(NamedTuple):
    """The moment of a firing: its time, and the id of the event that completed it, or `timer`."""

    time: int
    trigger: str


class KeyHolder(Protocol):
    """What has the key under which rules fire."""

    key: Key
    key_text: str


Bound = Sequence[Any]
"""What is bound to each port, as `NumberedEvent`; behind that the results of aggregates."""
GetValue = Callable[[Bound, Key], Any]


class _Statement(NamedTuple):
    """`push a` by the place of its port, or `push new` by its type.

    `own` are the extensions that `with` sets.
    """

    port: int | None
    type: str
    values: tuple[tuple[str, GetValue], ...]
    own: tuple[tuple[str, GetValue], ...]


class OutputBuilder:
    """Builds the outputs of firings with certain labels, over certain bound ports.

    A statement is given as in the language, or as the name of a type that an ECL expression emits.
    `aggregates` are those whose results stand behind the ports in what is bound.
    """

    def __init__(
        self,
        correlation: Correlation,
        types: TypeSystem,
        labels: str,
        ports: Sequence[str],
        statements: Iterable[PushPort | PushNew | str],
        aggregates: Sequence[Expression] = (),
    ) -> None:
        self._types = types
        self._labels = labels
        self._keyed = bool(correlation.clauses.by)
        self._places = {port: place for place, port in enumerate(ports)}
        self._has_results = bool(aggregates)
        self._event_types = {p.name: p.type for p in correlation.ports if isinstance(p, EventPort)}
        self._key_places = key_places(correlation.clauses.by)
        self._scope = scopes_of(ports, aggregates, first=False)
        timers = {port.name for port in correlation.ports if isinstance(port, TimerPort)}
        self._statements = [
            self._prepared(each)
            for each in statements
            # What is bound to a timer is no event that could be sent on.
            if not isinstance(each, PushPort) or each.port in self._places.keys() - timers
        ]
        self._nests = any(is_nested(name) for each in self._statements for name, _ in each.values)
        self.count = len(self._statements)
        """How many events it makes."""

    def _prepared(self, statement: PushPort | PushNew | str) -> _Statement:
        if isinstance(statement, str):
            return _Statement(None, statement, tuple(self._carried(statement)), ())
        own = tuple(
            (each.name, self._extension(each.value, each.type or TEXT))
            for each in statement.extensions
        )
        if isinstance(statement, PushPort):
            return _Statement(self._places[statement.port], "", (), own)
        declared = self._types.attributes(statement.type)
        values = ((s.name, self._value(s.value, declared[s.name])) for s in statement.assignments)
        return _Statement(None, statement.type, tuple(values), own)

    def _carried(self, type_name: str) -> Iterable[tuple[str, GetValue]]:
        """The attributes of an ECL output that are named like a part of its key."""
        attributes = self._types.attributes(type_name)
        for name, place in self._key_places.items():
            if name in attributes:
                yield name, _part_of_key(place, attributes[name])

    def _extension(self, value: Expression, type_: ValueType) -> GetValue:
        get = self._value(value, type_)
        return get if type_ != TIMESTAMP else lambda bound, key: carried_value(get(bound, key))

    def _value(self, expression: Expression, type_: ValueType) -> GetValue:
        """A constant, an attribute that is handed on as it is, or an expression to be evaluated."""
        match expression:
            case Literal():
                constant = value_for(expression, PortScope({}), type_)
                return lambda bound, key: constant  # noqa: ARG005
            case Name((port, attribute)) if (
                port in self._event_types
                and port in self._places
                and attribute.lower() not in CONTEXT
                and type_.element is None
                and self._types.attributes(self._event_types[port]).get(attribute) == type_
            ):
                return self._attribute(self._places[port], attribute, expression, type_)
        scope = self._scope
        return lambda bound, key: value_for(expression, scope(bound), type_)  # noqa: ARG005

    def _attribute(
        self, place: int, attribute: str, expression: Expression, type_: ValueType
    ) -> GetValue:
        scope = self._scope

        def get(bound: Bound, key: Key) -> Any:  # noqa: ARG001
            event = bound[place][1]
            # An extension of the same name goes first, and is of no declared type.
            if event.data.__class__ is dict and not event.extensions:
                return event.data.get(attribute)
            return value_for(expression, scope(bound), type_)

        return get

    def emit(
        self,
        made: list[Event],
        names: tuple[str, str],
        holder: KeyHolder,
        moment: Moment,
        bound: Bound,
        number: int,
    ) -> int:
        """Add the outputs of a firing of the rule with this name and source.

        `number` is how much the rule has put out at this moment before; returns how much it is now.
        """
        name, source = names
        time, trigger = moment
        provenance = {
            "correlation": name,
            "trigger": trigger,
            "labels": self._labels,
            "causes": causes_of(bound[: len(self._places)] if self._has_results else bound),
        }
        partition = ""
        if self._keyed:
            provenance["partitionkey"] = holder.key_text
            partition = f":{holder.key_text}"
        key = holder.key
        for port, type_, values, own in self._statements:
            number += 1
            event = None if port is None else bound[port][1]
            extensions = provenance
            if event is not None:
                extensions = {**event.extensions, **provenance}
            elif self.count > 1:
                extensions = {**provenance}
            if own:
                before = {} if event is None else event.extensions
                given = [(each, get(bound, key)) for each, get in own]
                extensions = {**with_extensions(before, given), **provenance}
            if event is not None:
                made.append(Event(event.id, event.source, event.type, time, event.data, extensions))
                continue
            data: Mapping[str, Any] = {each: get(bound, key) for each, get in values}
            if self._nests:
                data = nested(data)
            identity = f"{name}:{trigger}@{time}{partition}:{number}"
            made.append(Event(identity, source, type_, time, data, extensions))
        return number


def _part_of_key(place: int, type_: ValueType) -> GetValue:
    return lambda bound, key: fitting_key(key[place][1], type_)  # noqa: ARG005


# --- a rule by itself -----------------------------------------------------------------------------

EmitOutputs = Callable[[Outputs, Sequence[Any], int, str], list[Event]]
"""Builds the outputs of a firing from `Outputs`, what the places hold, the time and the trigger."""


def statements_with(correlation: FilterCorrelation, labels: frozenset[str]) -> list[Any]:
    """The statements that run with these labels active, where none changes a label."""
    return [
        statement
        for case in correlation.cases
        if label_value(case.condition, labels, lambda _: False)
        for statement in case.statements
    ]


def outputs_of_firing(
    correlation: FilterCorrelation,
    types: TypeSystem,
    fired: Fired,
    ports: Mapping[int, str],
    aggregates: Sequence[Expression] = (),
) -> EmitOutputs:
    """The function for a branch that fires with certain labels and places.

    `ports` has the port of each place; the results of aggregates stand behind all places. No
    statement of the rule changes labels.
    """
    bound_in: dict[str, list[int]] = {}
    for place in fired.places:
        bound_in.setdefault(ports[place], []).append(place)
    builder = OutputBuilder(
        correlation,
        types,
        ",".join(sorted(fired.labels)),
        tuple(bound_in),
        statements_with(correlation, fired.labels),
        aggregates,
    )
    names = correlation.name, f"ensue/{correlation.name}"
    choose = min if correlation.clauses.bind == "first" else max
    places = list(bound_in.values())
    single = [place for place, *more in places if not more]
    first_result = len(ports) if aggregates else None

    def emit(outputs: Outputs, held: Sequence[Any], time: int, trigger: str) -> list[Event]:
        if len(single) == len(places):
            bound = [held[place] for place in single]
        else:
            bound = [choose((held[place] for place in each), key=_number) for each in places]
        if first_result is not None:
            bound += held[first_result:]
        made: list[Event] = []
        number = outputs.count_at(time, trigger)
        number = builder.emit(made, names, outputs, Moment(time, trigger), bound, number)
        outputs.set_count(number)
        return made

    return emit

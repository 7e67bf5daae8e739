"""What follows when branches fire, prepared once for each step of a table that fires.

Where no statement changes labels, the cases that run are known with the active labels, and most
values of `push new` are attributes handed on as they are. Such a firing only has to fetch, count
and put together. Everything else is the general `Transformer`, which is asked by the instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.engine.outputs import TIMER, Outputs, port_scope, value_for
from ensue.engine.ports import Reading
from ensue.events.event import Event
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.expressions import Expression, Literal, Name
from ensue.lang.expressions.scopes import PortScope
from ensue.lang.label_logic import label_value
from ensue.lang.syntax import Change, EventPort, FilterCorrelation, PushNew, PushPort
from ensue.machine.stepping import Fired

Noted = tuple[int, Event | int]
"""What a place holds: when it was read, as a number that grows, and the event (or a firing's time).
"""

CONTEXT = frozenset({"id", "source", "type", "time", "specversion"})
"""Names that an event answers itself, before or after its data is asked."""


def reading_of(noted: Noted) -> Reading:
    _, what = noted
    if isinstance(what, int):
        return Reading(what, frozenset())
    return Reading(what.time, frozenset(), what)


def bound_events(
    pairs: Iterable[tuple[int, str]], places: Sequence[Noted | None], first: bool
) -> dict[str, Noted]:
    """The last (or first) over the places of each port."""
    found: dict[str, Noted] = {}
    for place, port in pairs:
        noted = places[place]
        assert noted is not None, "a place that counts as bound holds an event"
        known = found.get(port)
        if known is None or (noted[0] < known[0]) == first:
            found[port] = noted
    return found


def in_order(found: Mapping[str, Noted]) -> dict[str, Noted]:
    return dict(sorted(found.items(), key=_when_read))


def _when_read(item: tuple[str, Noted]) -> int:
    return item[1][0]


@dataclass(frozen=True, slots=True)
class Value:
    """A value of `push new`: a constant, an attribute as it is (`port`), or an expression."""

    name: str
    type: ValueType
    expression: Expression
    port: str | None = None
    attribute: str = ""
    constant: Any = None


class Firing:
    """One branch that fires with certain labels and places, in a rule that changes no labels."""

    __slots__ = ("_first", "_labels", "_pairs", "_statements")

    def __init__(
        self,
        correlation: FilterCorrelation,
        types: TypeSystem,
        fired: Fired,
        ports: Mapping[int, str],
    ) -> None:
        self._first = correlation.clauses.bind == "first"
        self._labels = ",".join(sorted(fired.labels))
        self._pairs = tuple((place, ports[place]) for place in fired.places)
        self._statements: list[tuple[str, list[Value]] | str] = []
        for case in correlation.cases:
            if label_value(case.condition, fired.labels, lambda _: False):
                for statement in case.statements:
                    match statement:
                        case PushPort(port):
                            self._statements.append(port)
                        case PushNew(type_name):
                            values = values_of(statement, correlation, types)
                            self._statements.append((type_name, values))
                        case Change():
                            raise AssertionError("a rule that changes labels has no such firing")

    def run(
        self, outputs: Outputs, places: Sequence[Noted | None], time: int, event_id: str | None
    ) -> list[Event]:
        if not self._statements:
            return []
        found = bound_events(self._pairs, places, self._first)
        if len(found) > 1:
            found = in_order(found)
        trigger = TIMER if event_id is None else event_id
        causes = {what.id: None for _, what in found.values() if what.__class__ is not int}  # type: ignore[union-attr]
        provenance = outputs.provenance(trigger, self._labels, ",".join(causes))
        made = []
        for statement in self._statements:
            if isinstance(statement, str):
                noted = found.get(statement)
                if noted is not None and isinstance(noted[1], Event):
                    made.append(outputs.send_on(noted[1], time, trigger, provenance))
            else:
                type_name, values = statement
                data = data_of(values, found)
                made.append(outputs.make(type_name, data, time, trigger, {**provenance}))
        return made


def values_of(statement: PushNew, correlation: FilterCorrelation, types: TypeSystem) -> list[Value]:
    attributes = types.attributes(statement.type)
    ports = {port.name: port for port in correlation.ports if isinstance(port, EventPort)}
    values = []
    for assignment in statement.assignments:
        name, expression, type_ = assignment.name, assignment.value, attributes[assignment.name]
        match expression:
            case Literal():
                constant = value_for(expression, PortScope({}), type_)
                values.append(Value(name, type_, expression, constant=constant))
            case Name((port, attribute)) if (
                port in ports
                and attribute.lower() not in CONTEXT
                and type_.element is None
                and types.attributes(ports[port].type).get(attribute) == type_
            ):
                values.append(Value(name, type_, expression, port, attribute))
            case _:
                values.append(Value(name, type_, expression))
    return values


def data_of(values: Iterable[Value], found: Mapping[str, Noted]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    scope: PortScope | None = None
    for value in values:
        if value.port is not None:
            noted = found.get(value.port)
            if noted is None:
                data[value.name] = None
                continue
            event = noted[1]
            # An extension of the same name goes first, and is of no declared type.
            if isinstance(event, Event) and not event.extensions and type(event.data) is dict:
                data[value.name] = event.data.get(value.attribute)
                continue
        elif isinstance(value.expression, Literal):
            data[value.name] = value.constant
            continue
        if scope is None:
            scope = port_scope({port: reading_of(noted) for port, noted in found.items()})
        data[value.name] = value_for(value.expression, scope, value.type)
    return data

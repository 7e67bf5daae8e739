"""What follows when branches fire, prepared once for each step of a table that fires.

Where no statement changes labels, the cases that run are known with the active labels, and most
values of `push new` are attributes handed on as they are. Such a firing only has to fetch, count
and put together. Everything else is the general `Transformer`, which is asked by the instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from ensue.engine.outputs import TIMER, Outputs, port_scope, value_for
from ensue.engine.ports import Reading
from ensue.engine.step.emitting import Value, compile_single, recipe_of, statements_of, values_of
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.expressions import Literal
from ensue.lang.expressions.scopes import PortScope
from ensue.lang.syntax import FilterCorrelation, PushNew, PushPort
from ensue.machine.stepping import Fired

Noted = tuple[int, Event | int]
"""What a place holds: when it was read, as a number that grows, and the event (or a firing's time).
"""


_number: Callable[[Any], int] = itemgetter(0)


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


class Firing:
    """One branch that fires with certain labels and places, in a rule that changes no labels."""

    __slots__ = (
        "_emit",
        "_first",
        "_labels",
        "_name",
        "_pairs",
        "_places",
        "_source",
        "_statements",
    )

    def __init__(
        self,
        correlation: FilterCorrelation,
        types: TypeSystem,
        fired: Fired,
        ports: Mapping[int, str],
    ) -> None:
        self._name = correlation.name
        self._source = f"ensue/{correlation.name}"
        self._first = correlation.clauses.bind == "first"
        self._labels = ",".join(sorted(fired.labels))
        self._pairs = tuple((place, ports[place]) for place in fired.places)
        self._statements: list[tuple[str, list[Value]] | str] = []
        recipe = recipe_of(correlation, types, fired, ports)
        self._emit = None if recipe is None else compile_single(recipe)
        self._places = [
            [place for place, port in self._pairs if port == name]
            for name in dict.fromkeys(port for _, port in self._pairs)
        ]
        for statement in statements_of(correlation, fired.labels):
            match statement:
                case PushPort(port):
                    self._statements.append(port)
                case PushNew(type_name):
                    values = values_of(statement, correlation, types)
                    self._statements.append((type_name, values))
                case _:
                    raise AssertionError("a rule that changes labels has no such firing")

    def run(
        self, outputs: Outputs, places: Sequence[Noted | None], time: int, event_id: str | None
    ) -> list[Event]:
        if not self._statements:
            return []
        if self._emit is not None and event_id is not None:
            choose = min if self._first else max
            noted = [
                places[held[0]]
                if len(held) == 1
                else choose((places[place] for place in held), key=_number)
                for held in self._places
            ]
            return self._emit(self._name, self._source, outputs, *noted, time, event_id)
        found = bound_events(self._pairs, places, self._first)
        if len(found) > 1:
            found = in_order(found)
        trigger = TIMER if event_id is None else event_id
        causes = {what.id: None for _, what in found.values() if what.__class__ is not int}  # type: ignore[union-attr]
        provenance = outputs.provenance(trigger, self._labels, ",".join(causes))
        made = []
        for statement in self._statements:
            if isinstance(statement, str):
                bound = found.get(statement)
                if bound is not None and isinstance(bound[1], Event):
                    made.append(outputs.send_on(bound[1], time, trigger, provenance))
            else:
                type_name, values = statement
                data = data_of(values, found)
                made.append(outputs.make(type_name, data, time, trigger, {**provenance}))
        return made


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

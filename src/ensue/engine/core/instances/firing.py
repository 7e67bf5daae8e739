"""What follows when branches fire, prepared once for each step of a table that fires.

Where no statement changes labels, the cases that run are known with the active labels, and most
values of `push new` are attributes handed on as they are. Such a firing only has to fetch, count
and put together. Everything else is the general `Transformer`, which is asked by the instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from ensue.engine.core.instances.emitting import (
    AttributeValue,
    Recipe,
    compile_single,
    recipe_of,
    statements_with,
    values_of,
)
from ensue.engine.outputs import TIMER, Outputs, port_scope, value_for
from ensue.engine.ports import Reading
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


RunStatements = Callable[[Outputs, Any, int, str], list[Event]]
"""Builds the outputs of a firing from `Outputs`, the holder of places, the time, the event's id."""


ConstantName = Callable[[int], str]
"""Gives a constant the name by which a generated text calls it."""


@dataclass(frozen=True, slots=True)
class Access:
    """How generated code reads the places of an instance: one, as text over `held`, or all."""

    text: Callable[[int, ConstantName], str]
    all: Callable[[Any], Sequence[Noted | None]]


IN_LIST = Access(lambda place, constant: f"held[{constant(place)}]", lambda held: held)


class Firing:
    """One branch that fires with certain labels and places, in a rule that changes no labels.

    `quickly` is what `run` does where no clock can be the trigger, if it could be written out; it
    takes what holds the places, as `run` does.
    """

    __slots__ = ("_access", "_first", "_labels", "_pairs", "_statements", "quickly")

    def __init__(
        self,
        correlation: FilterCorrelation,
        types: TypeSystem,
        fired: Fired,
        ports: Mapping[int, str],
        access: Access,
    ) -> None:
        self._access = access
        self._first = correlation.clauses.bind == "first"
        self._labels = ",".join(sorted(fired.labels))
        self._pairs = tuple((place, ports[place]) for place in fired.places)
        self._statements: list[tuple[str, list[AttributeValue]] | str] = []
        recipe = recipe_of(correlation, types, fired, ports)
        self.quickly: RunStatements | None = None
        if recipe is not None and recipe.ports:
            self.quickly = self._written_out(correlation.name, recipe)
        for statement in statements_with(correlation, fired.labels):
            match statement:
                case PushPort(port):
                    self._statements.append(port)
                case PushNew(type_name):
                    values = values_of(statement, correlation, types)
                    self._statements.append((type_name, values))
                case _:
                    raise AssertionError("a rule that changes labels has no such firing")

    def run(self, outputs: Outputs, held: Any, time: int, event_id: str | None) -> list[Event]:
        if self.quickly is not None and event_id is not None:
            return self.quickly(outputs, held, time, event_id)
        if not self._statements:
            return []
        found = bound_events(self._pairs, self._access.all(held), self._first)
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

    def _written_out(self, name: str, recipe: Recipe) -> RunStatements:
        """The firing as Python: from its places to its events."""
        values: dict[str, Any] = {"choose": min if self._first else max, "number_of": _number}

        def constant(number: int) -> str:
            called = f"p{len(values)}"
            values[called] = number
            return called

        bound = []
        for each in recipe.ports:
            held = [
                self._access.text(place, constant) for place, port in self._pairs if port == each
            ]
            one = len(held) == 1
            bound.append(held[0] if one else f"choose({', '.join(held)}, key=number_of)")
        return compile_single(recipe, name, bound, values)


def data_of(values: Iterable[AttributeValue], found: Mapping[str, Noted]) -> dict[str, Any]:
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

"""Recipes: the statements that run when a branch fires, ready to become a function.

In comes a filter with the labels and places of a firing, or the types that an ECL expression emits;
out goes a `Recipe`, with ports as numbers instead of names, and with each value of `push new` told
apart: a constant, an attribute that is handed on as it is, or an expression. Rules whose recipes
differ only in the names of their ports share one function (`Recipe.kind`). The functions are
written and compiled in `emitting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ensue.engine.outputs import value_for
from ensue.events.event import CONTEXT
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.derived.extensions import TEXT
from ensue.lang.derived.keys import key_places
from ensue.lang.derived.label_logic import label_value
from ensue.lang.derived.renaming import with_ports
from ensue.lang.expressions import Expression, Literal, Name
from ensue.lang.expressions.scopes import PortScope
from ensue.lang.syntax import (
    Correlation,
    EventPort,
    FilterCorrelation,
    PushNew,
    PushPort,
    TimerPort,
)
from ensue.machine.stepping import Fired


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """A value of `push new`: a constant, an attribute as it is (`port`), or an expression."""

    name: str
    type: ValueType
    expression: Expression
    port: str | None = None
    attribute: str = ""
    constant: Any = None

    @property
    def is_computed(self) -> bool:
        return self.port is None and not isinstance(self.expression, Literal)

    def computed_from(self, ports: Mapping[str, str]) -> str:
        """The computation as text, equal for values that compute the same; "" for plain values."""
        return repr(with_ports(self.expression, ports)) if self.is_computed else ""


PlacedValues = tuple[tuple[str, int | None, AttributeValue], ...]
"""Values by their names, each with the number of the port that it is taken from as it is."""


@dataclass(frozen=True, slots=True)
class SentPort:
    """`push a`, by the number of the port; `extensions` are what `with` sets."""

    port: int
    extensions: PlacedValues = ()


@dataclass(frozen=True, slots=True)
class BuiltEvent:
    """`push new`, with the values of attributes and of extensions.

    `carried` are attributes that are filled with the key: name, type and place in the key.
    """

    type: str
    values: PlacedValues
    carried: tuple[tuple[str, ValueType, int], ...] = ()
    extensions: PlacedValues = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """The statements that run when a branch fires with certain labels.

    `ports` are the bound ports, by the numbers that the statements use. The last `clocks` of them
    are timers, which are bound to times.
    """

    labels: str
    keyed: bool
    ports: tuple[str, ...]
    statements: tuple[SentPort | BuiltEvent, ...]
    clocks: int = 0

    @property
    def count(self) -> int:
        """How many events it makes."""
        return len(self.statements)

    @property
    def event_ports(self) -> tuple[str, ...]:
        return self.ports[: len(self.ports) - self.clocks]

    @property
    def kind(self) -> object:
        """What recipes have in common that differ only in the names of their ports."""
        parts: list[object] = [self.labels, self.keyed, len(self.ports), self.clocks]
        numbered = {port: str(number) for number, port in enumerate(self.ports)}
        for each in self.statements:
            extensions = _kinds_of(each.extensions, numbered)
            if isinstance(each, SentPort):
                parts.append((each.port, extensions))
                continue
            parts.append((each.type, each.carried, extensions, _kinds_of(each.values, numbered)))
        return tuple(parts)


def _kinds_of(values: PlacedValues, numbered: Mapping[str, str]) -> tuple[object, ...]:
    # Constants as text, for in Python `1`, `1.0` and `True` would be one.
    return tuple(
        (
            name,
            number,
            value.port is None,
            value.attribute,
            value.type,
            repr(value.constant),
            value.computed_from(numbered),
        )
        for name, number, value in values
    )


def _values_of(
    given: Iterable[tuple[str, Expression, ValueType]], correlation: Correlation, types: TypeSystem
) -> list[AttributeValue]:
    """The values of names with expressions and types."""
    ports = {port.name: port for port in correlation.ports if isinstance(port, EventPort)}
    values = []
    for name, expression, type_ in given:
        match expression:
            case Literal():
                constant = value_for(expression, PortScope({}), type_)
                values.append(AttributeValue(name, type_, expression, constant=constant))
            case Name((port, attribute)) if (
                port in ports
                and attribute.lower() not in CONTEXT
                and type_.element is None
                and types.attributes(ports[port].type).get(attribute) == type_
            ):
                values.append(AttributeValue(name, type_, expression, port, attribute))
            case _:
                values.append(AttributeValue(name, type_, expression))
    return values


def statements_with(correlation: FilterCorrelation, labels: frozenset[str]) -> list[Any]:
    """The statements that run with these labels active, where none changes a label."""
    return [
        statement
        for case in correlation.cases
        if label_value(case.condition, labels, lambda _: False)
        for statement in case.statements
    ]


def recipe_of(
    correlation: FilterCorrelation, types: TypeSystem, fired: Fired, ports: Mapping[int, str]
) -> Recipe:
    """The recipe of a branch that fires, in a rule whose statements change no labels."""
    bound = tuple(dict.fromkeys(ports[place] for place in fired.places))
    statements = statements_with(correlation, fired.labels)
    labels = ",".join(sorted(fired.labels))
    return recipe_for(correlation, types, labels, bound, statements)


def recipe_for(
    correlation: Correlation,
    types: TypeSystem,
    labels: str,
    bound: tuple[str, ...],
    statements: Iterable[PushPort | PushNew | str],
) -> Recipe:
    """The recipe of statements over bound ports, or of the types that an ECL expression emits."""
    timers = {port.name for port in correlation.ports if isinstance(port, TimerPort)}
    clocks = [port for port in bound if port in timers]
    ports = (*(port for port in bound if port not in timers), *clocks)
    numbers = {port: number for number, port in enumerate(ports)}
    made: list[SentPort | BuiltEvent] = []

    def placed(given: Iterable[tuple[str, Expression, ValueType]]) -> PlacedValues:
        # A port that is not bound has no values: as if null had been written.
        return tuple(
            (value.name, numbers.get(value.port) if value.port else None, value)
            for value in _values_of(given, correlation, types)
        )

    def of_with(statement: PushPort | PushNew) -> PlacedValues:
        return placed((each.name, each.value, each.type or TEXT) for each in statement.extensions)

    for statement in statements:
        if isinstance(statement, str):
            attributes = types.attributes(statement)
            made.append(
                BuiltEvent(
                    statement,
                    (),
                    tuple(
                        (name, attributes[name], place)
                        for name, place in key_places(correlation.clauses.by).items()
                        if name in attributes
                    ),
                )
            )
        elif isinstance(statement, PushPort):
            # What is bound to a timer is no event that could be sent on.
            if statement.port in numbers and statement.port not in timers:
                made.append(SentPort(numbers[statement.port], of_with(statement)))
        else:
            declared = types.attributes(statement.type)
            values = placed((s.name, s.value, declared[s.name]) for s in statement.assignments)
            made.append(BuiltEvent(statement.type, values, extensions=of_with(statement)))
    return Recipe(labels, bool(correlation.clauses.by), ports, tuple(made), len(clocks))

"""What a firing puts out, as Python that is made for its statements.

In comes a `Recipe`: the statements that run when a branch fires with certain labels, with ports as
numbers instead of names. Out go functions that put the events together: `compile_single` for one
rule, `compile_for_cells` for the many rules in cells that fire at one event. Both hold the same
text, and their events are equal, byte for byte, to those of `ensue.engine.outputs`. Values that are
no plain attributes or constants are computed by `value_for`.

Names of attributes and constants are handed over as values; no text of a user is read as Python.

The module is long because both functions are written by the same lines of text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ensue.engine.core.instances.compiling import filled, function_from
from ensue.engine.core.instances.keys import FastKey, whole_key
from ensue.engine.outputs import fitting_key, value_for
from ensue.events.event import CONTEXT, Event
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.derived.keys import key_places
from ensue.lang.derived.label_logic import label_value
from ensue.lang.derived.renaming import with_ports
from ensue.lang.expressions import Expression, Literal, Name
from ensue.lang.expressions.scopes import PortScope, TimerScope
from ensue.lang.syntax import (
    Correlation,
    EventPort,
    FilterCorrelation,
    PushNew,
    PushPort,
    TimerPort,
)
from ensue.machine.stepping import Fired

MOST_SORTED_OUT = 3
"""Up to how many bound events are put in order by comparisons that are written out."""


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


@dataclass(frozen=True, slots=True)
class SentPort:
    """`push a`, by the number of the port."""

    port: int


@dataclass(frozen=True, slots=True)
class BuiltEvent:
    """`push new`: each attribute with its value, and the port that it is taken from as it is.

    `carried` are attributes that are filled with the key: name, type and place in the key.
    """

    type: str
    values: tuple[tuple[str, int | None, AttributeValue], ...]
    carried: tuple[tuple[str, ValueType, int], ...] = ()


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
        said: list[object] = [self.labels, self.keyed, len(self.ports), self.clocks]
        numbered = {port: str(number) for number, port in enumerate(self.ports)}
        for each in self.statements:
            if isinstance(each, SentPort):
                said.append(each.port)
                continue
            # Constants as text, for in Python `1`, `1.0` and `True` would be one.
            values = [
                (
                    name,
                    number,
                    value.port is None,
                    value.attribute,
                    value.type,
                    repr(value.constant),
                    value.computed_from(numbered),
                )
                for name, number, value in each.values
            ]
            said.append((each.type, each.carried, *values))
        return tuple(said)


def values_of(
    statement: PushNew, correlation: Correlation, types: TypeSystem
) -> list[AttributeValue]:
    attributes = types.attributes(statement.type)
    ports = {port.name: port for port in correlation.ports if isinstance(port, EventPort)}
    values = []
    for assignment in statement.assignments:
        name, expression, type_ = assignment.name, assignment.value, attributes[assignment.name]
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
    said: Iterable[PushPort | PushNew | str],
) -> Recipe:
    """The recipe of statements over bound ports, or of the types that an ECL expression emits."""
    timers = {port.name for port in correlation.ports if isinstance(port, TimerPort)}
    clocks = [port for port in bound if port in timers]
    ports = (*(port for port in bound if port not in timers), *clocks)
    numbers = {port: number for number, port in enumerate(ports)}
    made: list[SentPort | BuiltEvent] = []
    for statement in said:
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
                made.append(SentPort(numbers[statement.port]))
        else:
            values = values_of(statement, correlation, types)
            # A port that is not bound has no values: as if null had been written.
            built = tuple((v.name, numbers.get(v.port) if v.port else None, v) for v in values)
            made.append(BuiltEvent(statement.type, built))
    return Recipe(labels, bool(correlation.clauses.by), ports, tuple(made), len(clocks))


# --- the text -----------------------------------------------------------------------------------


_SINGLE = """
def run(outputs, held, time, trigger):
    made = []
    {partition}
    {prepare}
    {statements}
    return made
"""

_FOR_CELLS = """
def emit_all(made, firings, names, state, time, trigger, before):
    events, partition = state.events, state.text
    tail = f":{trigger}@{time}:{partition}:" if {keyed} else f":{trigger}@{time}:"
    if before is None:
        {tails}
    {begin}
    for rule, {bound} in firings:
        name, source = names[rule]
        {fetch}
        {prepare}
        if before is None:
            {statements}
        else:
            number = before.get(rule, 0)
            {numbered}
"""


class _RecipeText:
    """The text of one recipe, and the values that it names."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._numbers = range(len(recipe.event_ports))
        self.scope: dict[str, Any] = {"Event": Event, "causes_of": causes_of}
        self.values: list[str] = []
        self.carried: list[str] = []
        self._provenance = self._provenance_text()
        self._built: list[str | None] = [
            self._data(each) if isinstance(each, BuiltEvent) else None for each in recipe.statements
        ]

    def _constant(self, value: Any) -> str:
        name = f"c{len(self.scope)}"
        self.scope[name] = value
        return name

    def _provenance_text(self) -> str:
        labels = self._constant(self._recipe.labels)
        text = f"'correlation': name, 'trigger': trigger, 'labels': {labels}, 'causes': causes"
        return text + (", 'partitionkey': partition" if self._recipe.keyed else "")

    def _data(self, statement: BuiltEvent) -> str:
        """The data of an event, over variables that `prepare` sets."""
        parts = []
        for name, port, value in statement.values:
            if value.is_computed:
                held = f"v{len(self.values)}"
                compute = self._constant(partial(_computed, value, self._recipe.ports))
                events = ", ".join(f"e{number}" for number in range(len(self._recipe.ports)))
                self.values.append(f"{held} = {compute}({events})")
            elif port is None:
                held = self._constant(None if value.port is not None else value.constant)
            else:
                held = f"v{len(self.values)}"
                attribute = self._constant(value.attribute)
                in_full = self._constant(partial(_value_in_full, value))
                # An extension of the same name goes first, and is of no declared type.
                plain = f"e{port}.data.__class__ is dict and not e{port}.extensions"
                self.values.append(
                    f"{held} = e{port}.data.get({attribute}) if {plain} else {in_full}(e{port})"
                )
            parts.append(f"{self._constant(name)}: {held}")
        for name, type_, place in statement.carried:
            held = f"k{len(self.carried)}"
            fit = self._constant(partial(_carried, type_, place))
            self.carried.append(f"{held} = {fit}(state.key)")
            parts.append(f"{self._constant(name)}: {held}")
        return ", ".join(parts)

    @property
    def times(self) -> list[str]:
        """The variables of the times at which bound timers have fired."""
        return [f"e{n}" for n in range(len(self._numbers), len(self._recipe.ports))]

    @property
    def bound(self) -> list[str]:
        """The variables of what is bound to each port: numbers of events, then times."""
        return [*(f"w{n}" for n in self._numbers), *self.times]

    def fetch(self) -> list[str]:
        """Statements that set the bound events from their numbers."""
        return [f"e{n} = events[w{n}]" for n in self._numbers]

    def prepare(self) -> list[str]:
        """Statements that set the bound events, their ids in the order of reading, the values."""
        numbers = list(self._numbers)
        if not self._recipe.statements:
            return []
        lines = [f"i{n} = e{n}.id" for n in numbers]
        pairs = ", ".join(f"(w{n}, i{n})" for n in numbers)
        if len(numbers) < 2:
            lines.append("causes = i0" if numbers else "causes = ''")
        elif len(numbers) == 2:
            lines.append("if i0 == i1: causes = i0")
            lines.append(f"else: causes = {_joined(0, 1)} if w0 < w1 else {_joined(1, 0)}")
        elif len(numbers) == MOST_SORTED_OUT:
            first = f"{_joined(0, 1, 2)} if w1 < w2 else {_other(0, 2, 1)} else {_joined(2, 0, 1)}"
            second = f"{_joined(1, 0, 2)} if w0 < w2 else {_other(1, 2, 0)} else {_joined(2, 1, 0)}"
            lines += [
                f"if i0 == i1: {_of_three(0, 1, 2)}",
                f"elif i1 == i2: {_of_three(1, 2, 0)}",
                f"elif i0 == i2: {_of_three(0, 2, 1)}",
                f"else: causes = ({first}) if w0 < w1 else ({second})",
            ]
        else:
            lines.append(f"causes = causes_of([{pairs}])")
        return lines + self.values

    def statements(self, identities: Sequence[str], count: str) -> list[str]:
        lines = []
        for statement, data, identity in zip(
            self._recipe.statements, self._built, identities, strict=True
        ):
            lines += [count] if count else []
            if isinstance(statement, SentPort):
                event = f"e{statement.port}"
                lines.append(
                    f"made.append(Event({event}.id, {event}.source, {event}.type, time,"
                    f" {event}.data, {{**{event}.extensions, {self._provenance}}}))"
                )
                continue
            lines.append(
                f"made.append(Event({identity}, source, {self._constant(statement.type)}, time,"
                f" {{{data}}}, {{{self._provenance}}}))"
            )
        return lines


def _joined(*numbers: int) -> str:
    """The ids of bound events in this order, as an expression."""
    return "f'" + ",".join(f"{{i{n}}}" for n in numbers) + "'"


def _other(first: int, second: int, third: int) -> str:
    """The ids in the order of the first two readings, as the head of a conditional."""
    return f"{_joined(first, second, third)} if w{first} < w{second}"


def _of_three(one: int, same: int, other: int) -> str:
    """A statement that puts the ids in order where the first two are one and the same."""
    earlier = f"(w{one} if w{one} < w{same} else w{same}) < w{other}"
    both = f"{_joined(one, other)} if {earlier} else {_joined(other, one)}"
    return f"causes = i{one} if i{one} == i{other} else {both}"


def _value_in_full(value: AttributeValue, event: Event) -> Any:
    assert value.port is not None
    return value_for(value.expression, PortScope({value.port: event}), value.type)


def _computed(value: AttributeValue, ports: Sequence[str], *bound: Event | int) -> Any:
    """A value that is computed over what is bound: events, and the times of timers."""
    scopes = [TimerScope(each) if isinstance(each, int) else each for each in bound]
    scope = PortScope(dict(zip(ports, scopes, strict=True)))
    return value_for(value.expression, scope, value.type)


def _carried(type_: ValueType, place: int, key: FastKey) -> Any:
    """A part of the key as an attribute holds it."""
    return fitting_key(whole_key(key)[place][1], type_)


def causes_of(bound: list[tuple[int, str]]) -> str:
    """The ids of bound events, each once, in the order in which they were read."""
    bound.sort()
    return ",".join(dict.fromkeys([identity for _, identity in bound]))


def compile_single(
    recipe: Recipe, name: str, bound: Sequence[str], values: Mapping[str, Any]
) -> Callable[..., list[Event]]:
    """`run(outputs, held, time, trigger)` for the rule of a name.

    `bound` has an expression over `held` for each port of the recipe, whose value is the numbered
    event; `values` are what these expressions name.
    """
    writing = _RecipeText(recipe)
    key = ":{partition}" if recipe.keyed else ""
    identity = f"f'{{name}}:{{trigger}}@{{time}}{key}:{{number}}'"
    count = "number = outputs.number(time, trigger)"
    text = filled(
        _SINGLE,
        partition=["partition = outputs.key_text"] if recipe.keyed else [],
        prepare=[f"w{n}, e{n} = {each}" for n, each in enumerate(bound)] + writing.prepare(),
        statements=writing.statements([identity] * recipe.count, count),
    )
    scope = {**writing.scope, **values, "name": name, "source": f"ensue/{name}"}
    run: Callable[..., list[Event]] = function_from(text, "run", scope)
    return run


def compile_for_cells(recipe: Recipe) -> Callable[..., None]:
    """`emit_all(made, firings, names, state, time, trigger, before)` for many rules.

    A firing has the number of its rule, and what is bound to each port of the recipe: the number of
    an event of the key's `state`, or the time of a timer. `names` has the name and source
    of each rule by its number; `before`, if rules may have put something out at this trigger
    already, how much each has.
    """
    writing = _RecipeText(recipe)
    numbers = range(len(recipe.event_ports))
    prepare = writing.prepare() or ["causes = ''"]
    if len(numbers) > MOST_SORTED_OUT:
        # At one event many rules have the same events bound: what comes of those is kept.
        remembered = f"({', '.join(['causes', *(f'v{n}' for n in range(len(writing.values)))])},)"
        prepare = [
            f"bound = ({', '.join(writing.bound)})",
            f"if bound in known: {remembered} = known[bound]",
            "else:",
            *(f"    {line}" for line in prepare),
            f"    known[bound] = {remembered}",
        ]
    text = filled(
        _FOR_CELLS,
        keyed=[str(recipe.keyed)],
        tails=[f"tail{n + 1} = f'{{tail}}{n + 1}'" for n in range(recipe.count)],
        begin=[*writing.carried, *(["known = {}"] if len(numbers) > MOST_SORTED_OUT else [])],
        bound=[", ".join(writing.bound)],
        fetch=writing.fetch(),
        prepare=prepare,
        numbered=writing.statements(["f'{name}{tail}{number}'"] * recipe.count, "number += 1"),
        statements=writing.statements(
            [f"name + tail{n + 1}" for n in range(recipe.count)], count=""
        ),
    )
    emit_all: Callable[..., None] = function_from(text, "emit_all", writing.scope)
    return emit_all

"""Functions that build the outputs of firings, as Python that is generated for their statements.

In comes a `Recipe` (`recipes`); out goes a function that builds the events: `compile_single` for
one rule, `compile_for_cells` for the many rules in cells that fire at one event. Both hold the same
lines of text, and their events are equal, byte for byte, to those of `ensue.engine.outputs`. Values
that are no plain attributes or constants are computed by `value_for`.

Names of attributes and constants are handed over as values; no text of a user is read as Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ensue.engine.core.instances.compiling import filled, function_from
from ensue.engine.core.instances.keys import FastKey, whole_key
from ensue.engine.core.instances.recipes import AttributeValue, BuiltEvent, Recipe, SentPort
from ensue.engine.outputs import carried_value, fitting_key, value_for, with_extensions
from ensue.events.event import Event
from ensue.events.types import ValueType
from ensue.lang.checking.names import TIMESTAMP
from ensue.lang.expressions.scopes import PortScope, TimerScope

MOST_SORTED_OUT = 3
"""The most bound events that are put in order by comparisons in the generated text."""


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
        self.scope: dict[str, Any] = {
            "Event": Event,
            "causes_of": causes_of,
            "carried_value": carried_value,
            "with_extensions": with_extensions,
        }
        self.values: list[str] = []
        self.carried: list[str] = []
        self._provenance = self._provenance_text()
        self._built = [
            self._data(each) if isinstance(each, BuiltEvent) else "" for each in recipe.statements
        ]
        self._own = [self._extensions(each) for each in recipe.statements]

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
        parts = [
            f"{self._constant(name)}: {self._value(port, value)}"
            for name, port, value in statement.values
        ]
        for name, type_, place in statement.carried:
            held = f"k{len(self.carried)}"
            fit = self._constant(partial(_carried, type_, place))
            self.carried.append(f"{held} = {fit}(state.key)")
            parts.append(f"{self._constant(name)}: {held}")
        return ", ".join(parts)

    def _value(self, port: int | None, value: AttributeValue) -> str:
        """The name of a value: of a constant, or of a variable that `prepare` sets."""
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
        return held

    def _extensions(self, statement: SentPort | BuiltEvent) -> str:
        """The extensions of an event, over variables that `prepare` sets."""
        event = f"e{statement.port}" if isinstance(statement, SentPort) else ""
        if not statement.extensions:
            return (
                f"{{**{event}.extensions, {self._provenance}}}"
                if event
                else f"{{{self._provenance}}}"
            )
        pairs = []
        for name, port, value in statement.extensions:
            held = self._value(port, value)
            if value.type == TIMESTAMP:
                held = f"carried_value({held})"
            pairs.append(f"({self._constant(name)}, {held}), ")
        before = f"{event}.extensions" if event else "{}"
        return f"{{**with_extensions({before}, ({''.join(pairs)})), {self._provenance}}}"

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
        for statement, data, own, identity in zip(
            self._recipe.statements, self._built, self._own, identities, strict=True
        ):
            lines += [count] if count else []
            if isinstance(statement, SentPort):
                event = f"e{statement.port}"
                lines.append(
                    f"made.append(Event({event}.id, {event}.source, {event}.type, time,"
                    f" {event}.data, {own}))"
                )
                continue
            lines.append(
                f"made.append(Event({identity}, source, {self._constant(statement.type)}, time,"
                f" {{{data}}}, {own}))"
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

"""`having` as Python, for one match whose events have their declared attributes.

In comes a condition over the events of places; out goes a function of what the places hold. The
text is exact under guards: every value it names is there and of its declared type, and what is
computed stays a finite number. Where a guard fails, and for conditions that have no such text, the
evaluation itself is asked, which knows all of CESQL.

Only trees that were checked come here, and constants are handed over as values, never as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ensue.engine.core.instances.compiling import function_from
from ensue.engine.core.instances.firing import scopes_of
from ensue.events.event import CONTEXT
from ensue.events.types import ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.tree import (
    Arithmetic,
    Call,
    Comparison,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)
from ensue.lang.expressions.values import LARGEST_INTEGER, SMALLEST_INTEGER

HavingTest = Callable[[Sequence[Any]], bool]
"""Whether the condition holds of the events that the places hold."""

_CLASSES = {"integer": "int", "real": "float", "string": "str"}
_SIGNS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MOST_NAMES = 16


class _OutsideError(Exception):
    """A condition, or a part of it, has no text."""


def having_of(
    having: Expression,
    places: Sequence[str],
    names: Mapping[str, Mapping[str, ValueType]],
    aggregates: Mapping[Expression, str] | None = None,
    first: bool = False,
) -> HavingTest:
    """`places` are the ports of places, `names` the declared attributes of each port.

    `aggregates` have the kinds of their results, which stand behind the places. Where `first` is
    set, a port with several places stands for the first of their events.
    """
    scope = scopes_of(places, list(aggregates or ()), first)

    def asked(held: Sequence[Any]) -> bool:
        return holds(having, scope(held))

    if len(set(places)) < len(places):
        return asked
    try:
        return _HavingText(places, names, aggregates or {}).function(having, asked)
    except _OutsideError:
        return asked


class _HavingText:
    def __init__(
        self,
        places: Sequence[str],
        names: Mapping[str, Mapping[str, ValueType]],
        aggregates: Mapping[Expression, str],
    ) -> None:
        self._places = list(places)
        self._names = names
        self._kinds = aggregates
        self._results = {each: len(places) + place for place, each in enumerate(aggregates)}
        self._events: dict[str, None] = {}
        self._values: dict[tuple[str, str], str] = {}
        self._guards: list[str] = []
        self._computed: list[str] = []
        self._scope: dict[str, Any] = {}

    def function(self, having: Expression, otherwise: HavingTest) -> HavingTest:
        condition = self._boolean(having)
        lines = ["def having(held):"]
        for port in self._events:
            place = self._places.index(port)
            lines.append(f"    e{place} = held[{place}][1]; d{place} = e{place}.data")
            plain = f"e{place}.extensions or d{place}.__class__ is not dict"
            lines.append(f"    if {plain}: return otherwise(held)")
        lines += [f"    {each}" for each in self._guards]
        lines += [f"    {each}" for each in self._computed]
        lines.append(f"    return {condition}")
        scope = {**self._scope, "otherwise": otherwise}
        found: HavingTest = function_from("\n".join(lines), "having", scope)
        return found

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._scope)}"
        self._scope[name] = value
        return name

    def _boolean(self, x: Expression) -> str:
        match x:
            case Comparison(first, ((sign, second),)):
                left, kind = self._value(first)
                right, other = self._value(second)
                if "string" in (kind, other):
                    if kind != other or sign not in ("=", "!="):
                        raise _OutsideError
                elif kind != other:
                    # An integer meets a real as a real.
                    left = f"float({left})" if kind == "integer" else left
                    right = f"float({right})" if other == "integer" else right
                return f"({left} {_SIGNS[sign]} {right})"
            case Logic(operands, operators) if len(set(operators)) == 1 and "XOR" not in operators:
                word = " and " if operators[0] == "AND" else " or "
                return f"({word.join(self._boolean(each) for each in operands)})"
            case Not(operand):
                return f"(not {self._boolean(operand)})"
        raise _OutsideError

    def _value(self, x: Expression) -> tuple[str, str]:
        match x:
            case Literal(value) if value.__class__ in (int, float, str):
                kinds = {int: "integer", float: "real", str: "string"}
                return self._constant(value), kinds[value.__class__]
            case Name((port, attribute)):
                return self._named(port, attribute)
            case Call() if x in self._results and self._kinds[x] in _CLASSES:
                held, kind = f"r{self._results[x]}", self._kinds[x]
                guard = f"if {held}.__class__ is not {_CLASSES[kind]}: return otherwise(held)"
                self._guards += [f"{held} = held[{self._results[x]}]", guard]
                return held, kind
            case Negate(operand):
                held, kind = self._number(operand)
                return self._kept(f"-{held}", kind, kind)
            case Arithmetic(first, rest):
                held, kind = self._number(first)
                for sign, operand in rest:
                    right, other = self._number(operand)
                    if sign not in ("+", "-", "*") and (sign, kind, other) != ("/", "real", "real"):
                        raise _OutsideError
                    if sign == "/":
                        self._computed.append(f"if {right} == 0.0: return otherwise(held)")
                    held, kind = self._kept(f"{held} {sign} {right}", kind, other)
                return held, kind
        raise _OutsideError

    def _number(self, x: Expression) -> tuple[str, str]:
        held, kind = self._value(x)
        if kind == "string":
            raise _OutsideError
        return held, kind

    def _kept(self, text: str, kind: str, other: str) -> tuple[str, str]:
        """A variable for what is computed, which is a number of 64 bits or a finite real."""
        name = f"t{len(self._computed)}"
        self._computed.append(f"{name} = {text}")
        if kind == other == "integer":
            low, high = self._constant(SMALLEST_INTEGER), self._constant(LARGEST_INTEGER)
            self._computed.append(f"if not {low} <= {name} <= {high}: return otherwise(held)")
            return name, "integer"
        self._computed.append(f"if {name} - {name} != 0.0: return otherwise(held)")
        return name, "real"

    def _named(self, port: str, attribute: str) -> tuple[str, str]:
        declared = self._names.get(port, {}).get(attribute)
        kind = None if declared is None else declared.kind
        if port not in self._places or kind not in _CLASSES or attribute.lower() in CONTEXT:
            raise _OutsideError
        known = self._values.get((port, attribute))
        if known is None:
            if len(self._values) >= _MOST_NAMES:
                raise _OutsideError
            self._events[port] = None
            known = self._values[port, attribute] = f"v{len(self._values)}"
            data = f"d{self._places.index(port)}"
            self._guards.append(f"{known} = {data}.get({self._constant(attribute)})")
            wanted = _CLASSES[kind]
            self._guards.append(f"if {known}.__class__ is not {wanted}: return otherwise(held)")
        return known, kind

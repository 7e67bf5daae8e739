"""`having` as a function of one match whose events have their declared attributes.

In comes a condition over the events of places; out goes a function of what the places hold. It is
exact where every value that it names is there and of its declared type, and what is computed stays
a finite number (`core.predicates` has the same for single events). For any other match, and for
conditions that have no such function, the evaluation itself is asked, which knows all of CESQL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ensue.engine.core.instances.firing import scopes_of
from ensue.engine.core.predicates import (
    PYTHON_TYPES,
    ExpressionCompiler,
    OfData,
    OutsideError,
)
from ensue.events.event import CONTEXT
from ensue.events.types import ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.tree import Arithmetic, Call, Name, Negate
from ensue.lang.expressions.values import LARGEST_INTEGER, SMALLEST_INTEGER

HavingTest = Callable[[Sequence[Any]], bool]
"""Whether the condition holds of the events that the places hold."""

_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


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
    compiler = _MatchCompiler(places, names, aggregates or {})
    try:
        function, kind = compiler.compile(having)
    except OutsideError:
        return asked
    if kind is not bool:
        return asked
    named, results = tuple(compiler.named), tuple(compiler.results)

    def test(held: Sequence[Any]) -> bool:
        for place, attribute, wanted in named:
            event = held[place][1]
            if event.extensions or event.data.__class__ is not dict:
                return asked(held)
            if event.data.get(attribute).__class__ is not wanted:
                return asked(held)
        for place, wanted in results:
            if held[place].__class__ is not wanted:
                return asked(held)
        try:
            return bool(function(held))
        except ArithmeticError:
            return asked(held)

    return test


class _MatchCompiler(ExpressionCompiler):
    """Expressions over the events of places, and the results of aggregates behind them.

    `named` are the attributes that are read, with their places and types; `results` those of
    aggregates.
    """

    def __init__(
        self,
        places: Sequence[str],
        names: Mapping[str, Mapping[str, ValueType]],
        aggregates: Mapping[Expression, str],
    ) -> None:
        super().__init__({})
        self._places = list(places)
        self._names = names
        self._kinds = aggregates
        self._results = {each: len(places) + place for place, each in enumerate(aggregates)}
        self.named: dict[tuple[int, str, type], None] = {}
        self.results: dict[tuple[int, type], None] = {}

    def compile(self, x: Expression) -> tuple[OfData, type]:
        match x:
            case Name((port, attribute)):
                return self._named(port, attribute)
            case Call() if x in self._results:
                place, kind = self._results[x], _python_type(self._kinds[x])
                self.results[place, kind] = None
                return operator.itemgetter(place), kind
            case Arithmetic(first, rest):
                found = self._number(first)
                for sign, operand in rest:
                    found = _computed(sign, found, self._number(operand))
                return found
            case Negate(operand):
                return _computed("-", (lambda held: 0, int), self._number(operand))  # noqa: ARG005
        return super().compile(x)

    def _named(self, port: str, attribute: str) -> tuple[OfData, type]:
        declared = self._names.get(port, {}).get(attribute)
        if port not in self._places or declared is None or attribute.lower() in CONTEXT:
            raise OutsideError
        place, kind = self._places.index(port), _python_type(declared.kind)
        self.named[place, attribute, kind] = None
        return lambda held: held[place][1].data[attribute], kind

    def _number(self, x: Expression) -> tuple[OfData, type]:
        function, kind = self.compile(x)
        if kind not in (int, float):
            raise OutsideError
        return function, kind


def _python_type(kind: str) -> type:
    if kind not in PYTHON_TYPES:
        raise OutsideError
    return PYTHON_TYPES[kind]


def _computed(
    sign: str, left: tuple[OfData, type], right: tuple[OfData, type]
) -> tuple[OfData, type]:
    """What is computed of two numbers: a number of 64 bits or a finite real, or an error."""
    (x, x_kind), (y, y_kind) = left, right
    kind = int if x_kind is y_kind is int else float
    if sign not in _SIGNS or (sign == "/" and (x_kind, y_kind) != (float, float)):
        raise OutsideError
    compute = _SIGNS[sign]

    def function(held: Any) -> Any:
        value = compute(x(held), y(held))
        if not SMALLEST_INTEGER <= value <= LARGEST_INTEGER if kind is int else value - value != 0:
            raise OverflowError
        return value

    return function, kind

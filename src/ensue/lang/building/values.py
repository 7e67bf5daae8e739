"""Predicates and values as Python expressions: `b.attr("Value") > 3.5`.

Comparisons, arithmetic, `&` for AND, `|` for OR, `^` for XOR and `~` for NOT make expressions, with
Python's brackets. A chain of one operator is flat. `b.expression(text)` reads CESQL text.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from ensue.errors import UsageError
from ensue.lang.building.built import Built, identifier, named_parameter, plain_text
from ensue.lang.expressions import (
    Arithmetic,
    Call,
    Comparison,
    Exists,
    Expression,
    In,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
)
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.syntax import Parameter

Constant = bool | int | float | str | datetime

_KEYWORDS = frozenset({"and", "exists", "false", "in", "like", "not", "or", "true", "xor"})
_SUMS = frozenset({"+", "-"})


class Value(Built[Expression]):
    """A CESQL expression."""

    def _text(self) -> str:
        return print_expression(self.node)

    def __bool__(self) -> bool:
        raise UsageError(
            f"`{self}` is known only when events come: join conditions by `&`, `|` and `~`, "
            "not by `and`, `or` and `not`, and do not chain comparisons"
        )

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return self._compare("!=", other)

    __hash__ = Built.__hash__

    def __lt__(self, other: object) -> Value:
        return self._compare("<", other)

    def __le__(self, other: object) -> Value:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Value:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Value:
        return self._compare(">=", other)

    def _compare(self, operator: str, other: object) -> Value:
        return Value(Comparison(self.node, ((operator, value(other).node),)))

    def __add__(self, other: object) -> Value:
        return _calculate(self, "+", value(other))

    def __radd__(self, other: object) -> Value:
        return _calculate(value(other), "+", self)

    def __sub__(self, other: object) -> Value:
        return _calculate(self, "-", value(other))

    def __rsub__(self, other: object) -> Value:
        return _calculate(value(other), "-", self)

    def __mul__(self, other: object) -> Value:
        return _calculate(self, "*", value(other))

    def __rmul__(self, other: object) -> Value:
        return _calculate(value(other), "*", self)

    def __truediv__(self, other: object) -> Value:
        return _calculate(self, "/", value(other))

    def __rtruediv__(self, other: object) -> Value:
        return _calculate(value(other), "/", self)

    def __mod__(self, other: object) -> Value:
        return _calculate(self, "%", value(other))

    def __rmod__(self, other: object) -> Value:
        return _calculate(value(other), "%", self)

    def __neg__(self) -> Value:
        return Value(Negate(self.node))

    def __and__(self, other: object) -> Value:
        return self._join("AND", other)

    def __or__(self, other: object) -> Value:
        return self._join("OR", other)

    def __xor__(self, other: object) -> Value:
        return self._join("XOR", other)

    def __invert__(self) -> Value:
        return Value(Not(self.node))

    def _join(self, operator: str, other: object) -> Value:
        node, right = self.node, value(other).node
        # CESQL reads a chain from the right, which makes no difference for a single operator.
        if isinstance(node, Logic) and set(node.operators) == {operator}:
            return Value(Logic((*node.operands, right), (*node.operators, operator)))
        return Value(Logic((node, right), (operator,)))

    def like(self, pattern: str | Built[Parameter]) -> Value:
        return self._like(pattern, negated=False)

    def not_like(self, pattern: str | Built[Parameter]) -> Value:
        return self._like(pattern, negated=True)

    def _like(self, pattern: str | Built[Parameter], negated: bool) -> Value:
        if (name := named_parameter(pattern)) is not None:
            return Value(Like(self.node, "", negated, parameter=Name((name,))))
        return Value(Like(self.node, plain_text(pattern, "the pattern of LIKE"), negated))

    def is_in(self, *options: object) -> Value:
        return Value(In(self.node, _options(options)))

    def not_in(self, *options: object) -> Value:
        return Value(In(self.node, _options(options), negated=True))

    def matches(self, pattern: str | Built[Parameter]) -> Value:
        """`MATCHES`: a regular expression in the syntax of RE2, found anywhere in the text."""
        if (name := named_parameter(pattern)) is not None:
            return Value(Call("MATCHES", (self.node, Name((name,)))))
        given = plain_text(pattern, "the pattern of MATCHES")
        return Value(Call("MATCHES", (self.node, literal(given).node)))

    def between(self, low: object, high: object) -> Value:
        return Value(Call("BETWEEN", (self.node, value(low).node, value(high).node)))

    def is_null(self) -> Value:
        return Value(Call("IS_NULL", (self.node,)))

    def is_not_null(self) -> Value:
        return Value(Not(self.is_null().node))

    def exists(self) -> Value:
        if not isinstance(self.node, Name):
            raise UsageError(f"only a name can exist, and `{self}` is none")
        return Value(Exists(self.node))


def _options(options: tuple[object, ...]) -> tuple[Expression, ...]:
    if not options:
        raise UsageError("at least one value must be given to choose from")
    return tuple(value(each).node for each in options)


def _calculate(left: Value, operator: str, right: Value) -> Value:
    node = left.node
    if isinstance(node, Arithmetic) and (node.rest[0][0] in _SUMS) == (operator in _SUMS):
        return Value(Arithmetic(node.first, (*node.rest, (operator, right.node))))
    return Value(Arithmetic(node, ((operator, right.node),)))


def attr(name: str) -> Value:
    """An attribute of the event: a CloudEvents attribute or data, also nested (`a.b`)."""
    parts = plain_text(name, "an attribute").split(".")
    first = identifier(parts[0], "an attribute")
    if first.lower() in _KEYWORDS:
        raise UsageError(f"`{first}` is a word of CESQL and cannot begin a name")
    return Value(Name((first, *(identifier(each, "an attribute") for each in parts[1:]))))


def _aggregate(function: str, of: Value) -> Value:
    if not isinstance(of.node, Name) or len(of.node.parts) < 2:
        raise UsageError(
            f"`{function.lower()}` is asked of an attribute of a port, such as `a['x']`, "
            f"and not of `{of!r}`"
        )
    return Value(Call(function, (of.node,)))


def count(port: Any) -> Value:
    """`count(a)`: the number of events of a port in its stretch."""
    name = port if isinstance(port, str) else getattr(port, "name", None)
    return Value(Call("COUNT", (Name((identifier(name, "a port"),)),)))


def distinct(of: Value) -> Value:
    """`distinct(a.x)`: the number of different values."""
    return _aggregate("DISTINCT", of)


def total(of: Value) -> Value:
    """`sum(a.x)`."""
    return _aggregate("SUM", of)


def average(of: Value) -> Value:
    """`avg(a.x)`."""
    return _aggregate("AVG", of)


def smallest(of: Value) -> Value:
    """`min(a.x)`."""
    return _aggregate("MIN", of)


def largest(of: Value) -> Value:
    """`max(a.x)`."""
    return _aggregate("MAX", of)


def first(of: Value) -> Value:
    """`first(a.x)`."""
    return _aggregate("FIRST", of)


def last(of: Value) -> Value:
    """`last(a.x)`."""
    return _aggregate("LAST", of)


def call(function: str, *arguments: object) -> Value:
    """A CESQL function, such as `call("UPPER", attr("name"))`."""
    name = identifier(function, "a function")
    if name.lower() in _KEYWORDS:
        raise UsageError(f"`{name}` is a word of CESQL and no function")
    return Value(Call(name.upper(), tuple(value(each).node for each in arguments)))


def expression(text: str) -> Value:
    """A CESQL expression from its text. Raises `LibraryError` if it is none."""
    return Value(parse_expression(plain_text(text, "the expression")))


def literal(constant: Constant) -> Value:
    """A constant. A number below zero is written as a minus before a number."""
    match constant:
        case bool():
            return Value(Literal(constant))
        case int():
            if not -(2**63) <= constant < 2**63:
                raise UsageError(f"{constant} does not fit into 64 bits")
            return Value(Literal(constant) if constant >= 0 else Negate(Literal(-constant)))
        case float():
            if not math.isfinite(constant):
                raise UsageError(f"{constant} cannot be written in a library")
            below = math.copysign(1, constant) < 0
            return Value(Negate(Literal(-constant)) if below else Literal(constant))
        case str():
            return Value(Literal(plain_text(constant, "a text")))
        case datetime():
            if constant.tzinfo is None:
                raise UsageError(f"the time `{constant}` has no zone; give it one, such as UTC")
            return Value(Literal(constant))
    raise UsageError(f"`{constant!r}` is neither a value nor a constant that a library can hold")


def value(given: Any) -> Value:
    """A Python value as a value of the language."""
    return given if isinstance(given, Value) else literal(given)


def predicate(given: str | bool | Value) -> Value:
    """A condition: a value, or CESQL text."""
    return expression(given) if isinstance(given, str) else value(given)

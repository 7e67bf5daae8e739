"""Predicates as Python expressions, for events whose attributes have their declared types.

In comes a CESQL predicate and the declared attributes of one event type; out goes an expression
over variables, and the Python type that each variable must have for it to be exact. Under these
guards nothing in the expression can be missing, in error or in need of a cast, so that plain
Python has the same meaning. Whatever lies outside (casts, arithmetic, functions, timestamps, names
that no type declares) is not translated: then `holds` is asked, which knows all of CESQL.

Only trees that were checked come here, and constants are handed over as values, never as text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from ensue.events.types import ValueType
from ensue.lang.expressions import (
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
from ensue.lang.expressions.builtins.like import matches
from ensue.lang.expressions.tree import BoundTerm
from ensue.lang.expressions.values import LARGEST_INTEGER, SMALLEST_INTEGER

PYTHON_TYPES: Mapping[str, type] = {"integer": int, "real": float, "boolean": bool, "string": str}
"""How a value of each kind is held once its event conforms to its type."""

_COMPARISONS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_NUMBERS = (int, float)

DEEPEST = 100
"""How many brackets may stand inside each other in a translation: Python reads not many more."""


class OutsideError(Exception):
    """The expression, or a part of it, is not one that is translated."""


@dataclass
class Constants:
    """Values that generated code names: constants, functions, trees. Each gets a name here."""

    names: dict[str, Any] = field(default_factory=dict)

    def name(self, value: Any, hint: str = "c") -> str:
        name = f"{hint}{len(self.names)}"
        self.names[name] = value
        return name


@dataclass
class Translation:
    """`text` is exact where each variable of `guards` has exactly that type."""

    text: str
    guards: dict[str, type]
    reads: frozenset[str]


@dataclass(frozen=True, slots=True)
class Equality:
    """A predicate of the form `name = constant`: many of them over one name are one look-up."""

    name: str
    value: bool | int | str


@dataclass(frozen=True, slots=True)
class BoundTest:
    """A predicate of the form `name > constant`: many of them over one name are one bisection.

    `is_lower` for `>` and `>=`; `counts_itself` where the constant counts as below itself: `>=` and
    its opposite, `<`.
    """

    name: str
    value: int | float
    is_lower: bool
    counts_itself: bool


def translate(
    predicate: Expression, attributes: Mapping[str, ValueType], constants: Constants
) -> Translation | None:
    """The predicate as Python, or None where it has to be asked of `holds`."""
    translator = _Translator(attributes, constants)
    try:
        text, kind = translator.expression(predicate)
    except OutsideError:
        return None
    if kind is not bool or _depth(text) > DEEPEST:
        return None
    return Translation(text, translator.guards, frozenset(translator.reads))


def equality_of(predicate: Expression, attributes: Mapping[str, ValueType]) -> Equality | None:
    match predicate:
        case Comparison(Name((name,)), (("=", Literal(value)),)) if name in attributes:
            wanted = PYTHON_TYPES.get(attributes[name].kind)
            if wanted in (bool, int, str) and type(value) is wanted and _is_plain(value):
                assert isinstance(value, bool | int | str)
                return Equality(name, value) if name.isidentifier() else None
    return None


def required_equality(
    predicate: Expression, attributes: Mapping[str, ValueType]
) -> Equality | None:
    """An equality without which the predicate does not hold: a part that is joined by `AND`."""
    if not isinstance(predicate, Logic):
        return None
    # Read from the right: what comes after an `OR` stands in a bracket with what is before it.
    for operand, sign in zip(predicate.operands, (*predicate.operators, "AND"), strict=True):
        if sign != "AND":
            return None
        equality = equality_of(operand, attributes)
        if equality is not None:
            return equality
    return None


def bound_of(predicate: Expression, attributes: Mapping[str, ValueType]) -> BoundTest | None:
    match predicate:
        case Comparison(Name((name,)), ((sign, constant),)) if (
            name in attributes and sign in _BOUNDS and name.isidentifier()
        ):
            wanted = PYTHON_TYPES.get(attributes[name].kind)
            value = _number(constant)
            if wanted in _NUMBERS and type(value) is wanted and value is not None:
                return BoundTest(name, value, *_BOUNDS[sign])
    return None


_BOUNDS = {">": (True, False), ">=": (True, True), "<": (False, True), "<=": (False, False)}


def _number(constant: Expression) -> int | float | None:
    match constant:
        case Literal(int() | float() as value) if _is_plain(value):
            return value
        case Negate(Literal(int() | float() as value)) if _is_plain(value):
            return -value
    return None


def variable(name: str) -> str:
    """The variable that holds an attribute; names of the language are plain identifiers."""
    if not name.isidentifier():
        raise OutsideError
    return f"v_{name}"


class _Translator:
    def __init__(self, attributes: Mapping[str, ValueType], constants: Constants) -> None:
        self._attributes = attributes
        self._constants = constants
        self.guards: dict[str, type] = {}
        self.reads: set[str] = set()

    def expression(self, x: Expression) -> tuple[str, type]:
        match x:
            case Literal(value) if _is_plain(value):
                return self._constant(value), type(value)
            case Negate() if (number := _number(x)) is not None:
                return self._constant(number), type(number)
            case Name((name,)):
                return self._attribute(name)
            case Exists(Name((name,))) if name in self._attributes:
                self.reads.add(name)
                return f"({variable(name)} is not None)", bool
            case Not(operand):
                return f"(not {self._boolean(operand)})", bool
            case Comparison(first, ((sign, second),)):
                return self._comparison(self.expression(first), sign, self.expression(second))
            case Logic(operands, operators):
                return self._logic(operands, operators), bool
            case In(operand, options, negated):
                return self._in(operand, options, negated), bool
            case Like(operand, pattern, negated):
                text, kind = self.expression(operand)
                if kind is not str:
                    raise OutsideError
                call = f"{self._constants.name(matches)}({text}, {self._constant(pattern)})"
                return f"(not {call})" if negated else call, bool
            case BoundTerm(term, test):
                text, kind = self.expression(term.name)
                if kind is not str:
                    raise OutsideError
                return f"{self._constants.name(test.holds)}({text})", bool
            case _:
                raise OutsideError

    def _constant(self, value: Any) -> str:
        if isinstance(value, bool):
            return repr(value)
        return self._constants.name(value)

    def _attribute(self, name: str) -> tuple[str, type]:
        declared = self._attributes.get(name)
        kind = PYTHON_TYPES.get(declared.kind) if declared else None
        if kind is None:
            raise OutsideError
        held = variable(name)
        self.guards[held] = kind
        self.reads.add(name)
        return held, kind

    def _boolean(self, x: Expression) -> str:
        text, kind = self.expression(x)
        if kind is not bool:
            raise OutsideError
        return text

    def _comparison(
        self, left: tuple[str, type], sign: str, right: tuple[str, type]
    ) -> tuple[str, type]:
        (x, x_kind), (y, y_kind) = left, right
        numbers = x_kind in _NUMBERS and y_kind in _NUMBERS
        if not numbers and (x_kind is not y_kind or sign not in ("=", "!=")):
            raise OutsideError
        if numbers and x_kind is not y_kind:
            # An integer meets a real as a real; Python would compare them exactly.
            x, y = f"float({x})", f"float({y})"
        return f"({x} {_COMPARISONS[sign]} {y})", bool

    def _logic(self, operands: tuple[Expression, ...], operators: tuple[str, ...]) -> str:
        """`a AND b OR c` is `a AND (b OR c)`; a long `a OR b OR c` needs no brackets inside."""
        *others, text = map(self._boolean, operands)
        before = None
        for operand, sign in zip(reversed(others), reversed(operators), strict=True):
            word = {"AND": "and", "OR": "or", "XOR": "is not"}[sign]
            if before is not None and (sign != before or sign == "XOR"):
                text = f"({text})"
            text = f"{operand} {word} {text}"
            before = sign
        return f"({text})"

    def _in(self, operand: Expression, options: tuple[Expression, ...], negated: bool) -> str:
        text, kind = self.expression(operand)
        values = [option.value for option in options if isinstance(option, Literal)]
        if len(values) < len(options) or any(type(value) is not kind for value in values):
            raise OutsideError
        if not all(_is_plain(value) for value in values):
            raise OutsideError
        return f"({text} {'not in' if negated else 'in'} {self._constants.name(frozenset(values))})"


def _depth(text: str) -> int:
    """How many brackets stand inside each other; constants are names, so all brackets count."""
    return max(accumulate((each == "(") - (each == ")") for each in text))


def _is_plain(value: object) -> bool:
    """A constant without an error in it, of a kind that Python compares as CESQL does."""
    if isinstance(value, bool | str):
        return True
    if isinstance(value, int):
        return SMALLEST_INTEGER < value <= LARGEST_INTEGER
    return isinstance(value, float) and math.isfinite(value)

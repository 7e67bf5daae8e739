"""Checks that the value of an expression fits an attribute.

A constant is judged by its value, a name by its declared type, a computed value by its kind. A
value that only a run can judge is accepted, and is null where it does not fit then. A value that
can never fit is reported as `value-does-not-fit`, with what was given, what is allowed and what to
write instead.
"""

from __future__ import annotations

import sys
from datetime import datetime

from ensue.events.times import parse_time
from ensue.events.types import INTEGER_RANGES, REALS, ValueType
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.checking.kinds import (
    Kind,
    Resolve,
    ResolveAggregate,
    check_expression,
    with_article,
)
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.tree import Arithmetic, Expression, Literal, Name, Negate, Value

LARGEST_FLOAT = (2 - 2**-23) * 2.0**127
_LONGEST_SHOWN = 40


def check_value(
    expression: Expression,
    target: ValueType,
    resolve: Resolve,
    diagnostics: Diagnostics,
    aggregate: ResolveAggregate | None = None,
) -> Kind | None:
    """Check an expression, and that its value fits an attribute of the target type."""
    types: dict[Name, ValueType | None] = {}

    def resolve_and_remember(name: Name) -> ValueType | None:
        types[name] = resolve(name)
        return types[name]

    found_before = len(diagnostics.found)
    kind = check_expression(expression, resolve_and_remember, diagnostics, aggregate)
    if any(each.severity == "error" for each in diagnostics.found[found_before:]):
        return kind
    constant = _constant(expression)
    given: str | None = None
    if constant is not None:
        if not _constant_fits(constant, target):
            text = print_expression(expression)
            shown = f" `{text}`" if len(text) <= _LONGEST_SHOWN else ""
            given = f"the {kind}{shown}"
    elif isinstance(expression, Name):
        declared = types.get(expression)
        if declared is not None and not _type_fits(declared, target):
            given = f"`{expression.text}`, {_described(declared)},"
    elif kind is not None and not _kind_fits(kind, target):
        given = with_article(kind)
    if given is not None:
        diagnostics.error(
            "value-does-not-fit",
            f"{given} does not fit an attribute of type `{target}`, which takes {_takes(target)}",
            expression.span,
            _advice(expression, kind, target),
        )
    return kind


def _constant(expression: Expression) -> Value | None:
    match expression:
        case Literal(value):
            return value
        case Negate(Literal(int() | float() as number)) if not isinstance(number, bool):
            return -number
        case _:
            return None


def _constant_fits(value: Value, target: ValueType) -> bool:
    if target.kind == "boolean" or isinstance(value, bool):
        return target.kind == "boolean" and isinstance(value, bool)
    if target.name in INTEGER_RANGES:
        smallest, largest = INTEGER_RANGES[target.name]
        return isinstance(value, int) and smallest <= value <= largest
    if target.name in REALS:
        largest_real = LARGEST_FLOAT if target.name == "float" else sys.float_info.max
        return isinstance(value, int | float) and abs(value) <= largest_real
    if target.name == "timestamp":
        return isinstance(value, datetime) or (isinstance(value, str) and _is_time(value))
    if target.name == "char":
        return isinstance(value, str) and len(value) == 1
    return target.name == "string" and isinstance(value, str)


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except ValueError:
        return False
    return True


def _type_fits(given: ValueType, target: ValueType) -> bool:
    if given.element is not None and target.element is not None:
        return _type_fits(given.element, target.element)
    if given.name in INTEGER_RANGES and target.name in INTEGER_RANGES:
        (given_low, given_high), (low, high) = (
            INTEGER_RANGES[given.name],
            INTEGER_RANGES[target.name],
        )
        return low <= given_low and given_high <= high
    if target.name in REALS:
        return given.kind in ("integer", "real")
    return given.name == target.name or (given.name, target.name) == ("char", "string")


def _kind_fits(kind: Kind, target: ValueType) -> bool:
    if target.name in REALS:
        return kind in ("integer", "real", "number")
    return kind == target.kind or (kind, target.kind) == ("number", "integer")


def _described(given: ValueType) -> str:
    return f"an `{given}`" if str(given)[0] in "aeiou" else f"a `{given}`"


def _takes(target: ValueType) -> str:
    if target.name in INTEGER_RANGES:
        smallest, largest = INTEGER_RANGES[target.name]
        return f"integers from {smallest} to {largest}"
    if target.element is not None:
        return f"sequences of `{target.element}`"
    return {
        "float": "numbers up to about 3.4e38",
        "double": "numbers",
        "boolean": "`TRUE` and `FALSE`",
        "char": "strings of one character",
        "string": "strings",
    }.get(target.name, "timestamps, and RFC 3339 text")


def _is_text(expression: Expression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, str)


def _advice(expression: Expression, kind: Kind | None, target: ValueType) -> str | None:
    if kind == "sequence" or target.element is not None:
        return None
    if target.kind == "string" and isinstance(expression, Arithmetic):
        parts = [expression.first, *(operand for sign, operand in expression.rest if sign == "+")]
        if len(parts) == len(expression.rest) + 1 and any(_is_text(each) for each in parts):
            joined = ", ".join(print_expression(each) for each in parts)
            return f"texts are joined by `CONCAT({joined})`"
    cast = {"string": "STRING", "integer": "INT", "boolean": "BOOL"}.get(target.kind)
    if cast is None or (kind == "timestamp" and cast != "STRING"):
        return None
    if target.name == "char":
        return "`LEFT(..., 1)` gives one character"
    if _constant(expression) is not None and kind == target.kind:
        return None
    text = print_expression(expression)
    written = f"{cast}({text})" if len(text) <= _LONGEST_SHOWN else f"{cast}(...)"
    if kind == target.kind:
        return f"write `{written}` to have it checked in the run, and null where it does not fit"
    return f"write `{written}`"

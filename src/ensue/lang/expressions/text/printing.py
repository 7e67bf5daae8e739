"""The printer of expressions: text that is read as the same tree.

Brackets are printed only where the tree would differ without them; keywords are in upper case and
strings in single quotes. A literal without a text of its own (a negative number, which is a
`Negate`; a string with a line end; a time without a zone) is refused.
"""

from __future__ import annotations

import math
import re
from datetime import datetime

from ensue.errors import UsageError
from ensue.events.times import format_time, microseconds_of
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.text.term_printing import print_term
from ensue.lang.expressions.tree import (
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

# How tightly the rules of the grammar bind, loosest first.
_LOGIC, _COMPARISON, _ADDITIVE, _MULTIPLICATIVE, _MATCHED, _UNARY, _ATOM = range(7)


def print_expression(expression: Expression) -> str:
    """The text of an expression. Raises `UsageError` for a literal that cannot be written."""
    return _print(expression, _LOGIC)


def _print(expression: Expression, at_least: int) -> str:
    text = _text(expression)
    return text if _tightness(expression) >= at_least else f"({text})"


def _tightness(expression: Expression) -> int:
    match expression:
        case Logic():
            return _LOGIC
        case Comparison():
            return _COMPARISON
        case Arithmetic():
            return _ADDITIVE if _is_sum(expression) else _MULTIPLICATIVE
        case Like() | In():
            return _MATCHED
        case Call() | Not(Call()) if (written := _written(expression)) is not None:
            return _MATCHED if written == "MATCHES" else _COMPARISON
        case Not() | Negate() | Exists():
            return _UNARY
        case _:
            return _ATOM


def _text(expression: Expression) -> str:
    match expression:
        case Literal():
            return print_literal(expression)
        case Name():
            return expression.text
        case Call() | Not(Call()) if (written := _written(expression)) is not None:
            return _operator(expression, written)
        case Not(operand):
            return f"NOT {_print(operand, _UNARY)}"
        case Negate(operand):
            return f"-{_print(operand, _UNARY)}"
        case Exists(name):
            return f"EXISTS {name.text}"
        case Call(function, arguments):
            called = function.lower() if function in AGGREGATES else function
            return f"{called}({_list(arguments)})"
        case Like(operand, pattern, negated):
            sign = "NOT LIKE" if negated else "LIKE"
            named = expression.parameter
            shown = quote(pattern) if named is None else named.text
            return f"{_print(operand, _MATCHED)} {sign} {shown}"
        case In(operand, options, negated):
            sign = "NOT IN" if negated else "IN"
            return f"{_print(operand, _MATCHED)} {sign} ({_list(options)})"
        case Logic(operands, operators):
            first, *others = (_print(each, _COMPARISON) for each in operands)
            links = (f" {op} {each}" for op, each in zip(operators, others, strict=True))
            return first + "".join(links)
        case Comparison(first_operand, rest):
            return _chain(first_operand, rest, _ADDITIVE)
        case Arithmetic(first_operand, rest):
            return _chain(first_operand, rest, _MULTIPLICATIVE if _is_sum(expression) else _MATCHED)
        case _:
            return print_term(expression, print_expression, print_literal, quote)


_OPERANDS = {"BETWEEN": 3, "IS_NULL": 1, "MATCHES": 2}
"""The functions that are written as operators, with the number of their operands."""


def _written(expression: Expression) -> str | None:
    """The function of an expression that is written as an operator, negated or not."""
    call = expression.operand if isinstance(expression, Not) else expression
    if not isinstance(call, Call) or len(call.arguments) != _OPERANDS.get(call.function):
        return None
    if call.function == "MATCHES":
        match call.arguments:
            case (_, Literal(str()) | Name((_,))):
                return "MATCHES"
        return None
    return call.function


def _operator(expression: Expression, written: str) -> str:
    call = expression.operand if isinstance(expression, Not) else expression
    assert isinstance(call, Call)
    word = "NOT " if isinstance(expression, Not) else ""
    if written == "MATCHES":
        text, pattern = call.arguments
        return f"{_print(text, _MATCHED)} {word}MATCHES {_print(pattern, _ATOM)}"
    operands = [_print(each, _ADDITIVE) for each in call.arguments]
    if written == "IS_NULL":
        return f"{operands[0]} IS {word}NULL"
    return f"{operands[0]} {word}BETWEEN {operands[1]} AND {operands[2]}"


def _is_sum(expression: Arithmetic) -> bool:
    return expression.rest[0][0] in "+-"


def _chain(first: Expression, rest: tuple[tuple[str, Expression], ...], at_least: int) -> str:
    links = (f" {operator} {_print(operand, at_least)}" for operator, operand in rest)
    return _print(first, at_least) + "".join(links)


def _list(expressions: tuple[Expression, ...]) -> str:
    return ", ".join(_print(each, _LOGIC) for each in expressions)


def print_literal(literal: Literal) -> str:
    """The text of a constant."""
    value = literal.value
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return quote(value)
        case datetime():
            if value.tzinfo is None:
                raise UsageError(f"the time `{value}` has no zone and cannot be written")
            return format_time(microseconds_of(value))
        case int() | float():
            if math.isnan(value) or math.copysign(1, value) < 0:
                raise UsageError(f"`{value}` cannot be a literal; use `Negate` for what is below 0")
            # Too large to be a double, and read as such.
            return "1e999" if math.isinf(value) else repr(value)


def quote(text: str) -> str:
    """A string in single quotes. A backslash is doubled only where it would escape something."""
    if "\n" in text:
        raise UsageError("a string with a line end cannot be written in a library")
    return "'" + re.sub(r"\\(?=[\\']|\Z)|'", lambda found: "\\" + found.group(), text) + "'"

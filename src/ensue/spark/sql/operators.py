"""Operators and functions of CESQL in Spark SQL, with exactly the results of Python.

In come SQL values; out go SQL values, null where CESQL has an error. Operators of both pass errors
on, except `IN`, which is written out. Nothing can throw, with ANSI mode on or off. Functions that
follow Python's rules for text raise `NotInSqlError`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.expressions.builtins.patterns import group_number, pattern_problem
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.values import (
    SMALLEST_INTEGER,
    FaultError,
    to_boolean,
    to_number,
    to_string,
    to_timestamp,
)
from ensue.spark.sql.patterns import JavaPattern, java_pattern
from ensue.spark.sql.values import (
    NotInSqlError,
    Sql,
    as_boolean,
    as_integer,
    as_number,
    as_real,
    as_string,
    as_timestamp,
    error,
)

_LARGEST_REAL = 1.7976931348623157e308
_LARGEST_LENGTH = 2**31 - 1


def balanced(
    conditions: Sequence[Column], join: Callable[[Column, Column], Column], nothing: bool
) -> Column:
    """The conditions joined as a balanced tree, since a deep one overflows Spark's stack."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else sf.lit(nothing)
    middle = len(conditions) // 2
    left, right = conditions[:middle], conditions[middle:]
    return join(balanced(left, join, nothing), balanced(right, join, nothing))


def _finite(column: Column) -> Column:
    return sf.when(sf.abs(column) <= _LARGEST_REAL, column)


def negation(operand: Sql) -> Sql:
    if operand.kind == "integer":
        return Sql("integer", sf.try_subtract(sf.lit(0).cast("bigint"), operand.column))
    return Sql("real", -operand.column) if operand.kind == "real" else error()


def arithmetic(sign: str, left: Sql, right: Sql) -> Sql:
    if left.kind is None or right.kind is None:
        return error()
    if left.kind == right.kind == "integer":
        return Sql("integer", _INTEGERS[sign](left.column, right.column))
    return Sql("real", _finite(_REALS[sign](as_real(left), as_real(right))))


def _quotient(x: Column, y: Column) -> Column:
    # The smallest integer has no negative, so this one quotient is out of range.
    overflows = (x == SMALLEST_INTEGER) & (y == -1)
    divisor = sf.when((y != 0) & ~overflows, y)
    return sf.call_function("div", x, divisor)


def _nonzero(y: Column) -> Column:
    return sf.when(y != 0.0, y)


_INTEGERS: dict[str, Callable[[Column, Column], Column]] = {
    "+": sf.try_add,
    "-": sf.try_subtract,
    "*": sf.try_multiply,
    "/": _quotient,
    "%": lambda x, y: x % sf.when(y != 0, y),
}
_REALS: dict[str, Callable[[Column, Column], Column]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / _nonzero(y),
    "%": lambda x, y: x % _nonzero(y),
}


def comparison(sign: str, left: Sql, right: Sql) -> Column:
    if sign in ("=", "!="):
        kind = "timestamp" if left.kind == "timestamp" else _family(right.kind)
        equal = _equal_as(kind, left, right)
        return equal if sign == "=" else ~equal
    if "timestamp" in (left.kind, right.kind):
        return _ORDERINGS[sign](as_timestamp(left), as_timestamp(right))
    x, y = as_number(left), as_number(right)
    if x.kind is None or y.kind is None:
        return error().column
    if x.kind == y.kind:
        return _ORDERINGS[sign](x.column, y.column)
    return _ORDERINGS[sign](as_real(x), as_real(y))


_ORDERINGS: dict[str, Callable[[Column, Column], Column]] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


def _equal_as(kind: str | None, left: Sql, right: Sql) -> Column:
    if kind == "boolean":
        return as_boolean(left) == as_boolean(right)
    if kind == "string":
        return as_string(left) == as_string(right)
    if kind == "timestamp":
        return as_timestamp(left) == as_timestamp(right)
    if kind == "number":
        x, y = as_number(left), as_number(right)
        if x.kind is None or y.kind is None:
            return error().column
        return x.column == y.column if x.kind == y.kind else as_real(x) == as_real(y)
    return error().column


def membership(operand: Sql, options: Sequence[Sql]) -> Column:
    """Every option is compared: an error in any comparison makes the whole an error."""
    family = _family(operand.kind)
    texts = [option.constant for option in options]
    if family == "string" and all(isinstance(each, str) for each in texts):
        # A set of many texts, as concepts are, is one look-up in Spark.
        return as_string(operand).isin(texts)
    equal = [_equal_as(family, operand, option) for option in options]
    any_equal = balanced(equal, operator.or_, False)
    if all(option.constant is not MISSING for option in options):
        # The cast of a constant fails always or never, and all comparisons share the operand.
        casts = {"boolean": to_boolean, "string": to_string, "timestamp": to_timestamp}
        cast = casts.get(family or "", to_number)
        if any(_fails(cast, option.constant) for option in options):
            return error().column
        return any_equal
    known = balanced([each.isNotNull() for each in equal], operator.and_, True)
    return sf.when(known, any_equal)


def _fails(cast: Callable[[Any], Any], constant: Any) -> bool:
    try:
        cast(constant)
    except FaultError:
        return True
    return False


def _family(kind: str | None) -> str | None:
    return "number" if kind in ("integer", "real") else kind


def like_pattern(pattern: str) -> str:
    """The pattern for Spark, which wants a literal backslash doubled."""
    written, place = [], 0
    while place < len(pattern):
        if pattern[place] == "\\" and pattern[place + 1 : place + 2] in ("%", "_"):
            written.append(pattern[place : place + 2])
            place += 2
        else:
            written.append("\\\\" if pattern[place] == "\\" else pattern[place])
            place += 1
    return "".join(written)


# --- functions ----------------------------------------------------------------------------------


def function_call(name: str, arguments: Sequence[Sql]) -> Sql:
    function = FUNCTIONS.get(name)
    if function is None or not function.accepts(len(arguments)):
        return error()
    written = _FUNCTIONS.get(name)
    if written is None:
        raise NotInSqlError(f"`{name}` has no form in SQL that means the same")
    return written(arguments)


def _absolute(arguments: Sequence[Sql]) -> Sql:
    number = as_number(arguments[0])
    if number.kind == "integer":
        possible = sf.when(number.column != SMALLEST_INTEGER, number.column)
        return Sql("integer", sf.abs(possible))
    return Sql("real", sf.abs(number.column)) if number.kind == "real" else error()


def _truth(arguments: Sequence[Sql]) -> Sql:
    (operand,) = arguments
    if operand.kind in ("integer", "real"):
        return Sql("boolean", operand.column != 0)
    return Sql("boolean", as_boolean(operand))


def _truncated(arguments: Sequence[Sql]) -> Sql:
    (operand,) = arguments
    if operand.kind == "real":
        column = operand.column
        possible = sf.when((column >= -math.ldexp(1, 63)) & (column < math.ldexp(1, 63)), column)
        return Sql("integer", possible.cast("bigint"))
    return Sql("integer", as_integer(operand))


def _concatenated(arguments: Sequence[Sql]) -> Sql:
    return Sql("string", sf.concat(sf.lit(""), *(as_string(each) for each in arguments)))


def _joined(arguments: Sequence[Sql]) -> Sql:
    # Spark's `concat_ws` skips nulls; in CESQL one null makes the whole null.
    delimiter, *texts = (as_string(each) for each in arguments)
    parts = [part for text in texts for part in (delimiter, text)][1:]
    joined = sf.concat(sf.lit(""), *parts)
    return Sql("string", sf.when(delimiter.isNotNull(), joined))


def _left(arguments: Sequence[Sql]) -> Sql:
    text, count = as_string(arguments[0]), as_integer(arguments[1])
    return Sql("string", sf.when(count >= 0, sf.substr(text, sf.lit(1), _as_length(count))))


def _right(arguments: Sequence[Sql]) -> Sql:
    text, count = as_string(arguments[0]), as_integer(arguments[1])
    length = sf.char_length(text).cast("bigint")
    start = (length - sf.least(length, count) + 1).cast("int")
    return Sql("string", sf.when(count >= 0, sf.substr(text, start)))


def _as_length(count: Column) -> Column:
    return sf.least(count, sf.lit(_LARGEST_LENGTH).cast("bigint")).cast("int")


def _length(arguments: Sequence[Sql]) -> Sql:
    return Sql("integer", sf.char_length(as_string(arguments[0])).cast("bigint"))


def _as_double(arguments: Sequence[Sql]) -> Sql:
    """A text of an integer must fit 64 bits, as where Python reads it."""
    (operand,) = arguments
    if operand.kind != "string" or operand.constant is not MISSING:
        number = as_number(operand)
        return error() if number.kind is None else Sql("real", _finite(as_real(number)))
    text = operand.column
    whole = sf.when(text.rlike(r"\A[+-]?[0-9]+\z"), text.try_cast("bigint").cast("double"))
    is_real = text.rlike(r"\A[+-]?[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)\z")
    return Sql("real", sf.coalesce(whole, sf.when(is_real, _finite(text.try_cast("double")))))


def _pattern(argument: Sql) -> JavaPattern:
    pattern = argument.constant
    readable = isinstance(pattern, str) and pattern_problem(pattern) is None
    written = java_pattern(pattern) if readable else None
    if written is None:
        raise NotInSqlError("its pattern may mean something else in Java")
    return written


def _matching(arguments: Sequence[Sql]) -> Sql:
    text, pattern = arguments
    return Sql("boolean", as_string(text).rlike(_pattern(pattern).text))


def _extracted(arguments: Sequence[Sql]) -> Sql:
    text, pattern, *group = arguments
    written = _pattern(pattern)
    try:
        number = group_number(pattern.constant, group[0].constant if group else None)
    except (LookupError, TypeError):
        return error()
    if number not in written.certain:
        raise NotInSqlError("a group may have no part in a match, of which Java says nothing")
    of = as_string(text)
    found = sf.regexp_extract(of, written.text, number)
    return Sql("string", sf.when(of.rlike(written.text), found))


_FUNCTIONS: dict[str, Callable[[Sequence[Sql]], Sql]] = {
    "ABS": _absolute,
    "BOOL": _truth,
    "CONCAT": _concatenated,
    "CONCAT_WS": _joined,
    "DOUBLE": _as_double,
    "EXTRACT": _extracted,
    "INT": _truncated,
    "LEFT": _left,
    "LENGTH": _length,
    "MATCHES": _matching,
    "RIGHT": _right,
    "STRING": lambda arguments: Sql("string", as_string(arguments[0])),
}

"""Predicates as Spark SQL: exactly what `ensue.lang.expressions.evaluation` says, or not at all.

In come a CESQL expression and what each name is in SQL; out goes a `Column`. SQL's null stands for
an error of CESQL: every operator passes errors on, and so does every SQL operator used here; only
AND, OR and IN need more care. Nothing here can throw, in ANSI mode or out of it. What SQL cannot
say to the letter (the text of a real, Python's idea of upper case, text that holds a number) is
refused with `NotInSqlError`, and is then evaluated by Python in the worker.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from ensue.events.times import microseconds_of
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
from ensue.lang.expressions.evaluation import evaluate
from ensue.lang.expressions.functions import FUNCTIONS
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.values import (
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    FaultError,
    kind_of,
    to_boolean,
    to_number,
    to_string,
    to_timestamp,
)

_LARGEST_REAL = 1.7976931348623157e308
_LARGEST_LENGTH = 2**31 - 1
_CONSTANTS_WORTH_FOLDING = 64
_LARGEST_WEIGHT = 5000
_LONGEST_CHAIN = 200


class NotInSqlError(Exception):
    """SQL cannot say this exactly. The message says what."""


@dataclass(frozen=True)
class Sql:
    """A value in SQL: null where CESQL has an error.

    `kind` is `boolean`, `integer`, `real`, `string` or `timestamp`; None is for what no operator
    takes (a sequence, or what is always in error), so that all one can ask is whether it is there.
    `constant` is set where the value is known before anything runs.
    """

    kind: str | None
    column: Column
    constant: Any = MISSING


Resolve = Callable[[tuple[str, ...]], Sql | None]
"""What a name stands for; None if no event can have it. May raise `NotInSqlError`."""


def error() -> Sql:
    return Sql(None, sf.lit(None).cast("boolean"))


def holds(expression: Expression, resolve: Resolve) -> Column:
    """True where the predicate holds; false or null where it does not."""
    _check_size(expression)
    found = _Translation(resolve).sql(expression)
    return found.column if found.kind == "boolean" else sf.lit(False)


def value(expression: Expression, resolve: Resolve) -> Sql:
    """The expression's value, null where it meets an error."""
    _check_size(expression)
    return _Translation(resolve).sql(expression)


def _check_size(expression: Expression) -> None:
    chain = len(expression.operands) if isinstance(expression, Logic) else 0
    if chain > _LONGEST_CHAIN or weight(expression) > _LARGEST_WEIGHT:
        raise NotInSqlError("it is too large")


class _Translation:
    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve

    def sql(self, expression: Expression) -> Sql:
        match expression:
            case Literal():
                return _constant(expression)
            case Name(parts):
                return self._resolve(parts) or error()
            case Exists(name):
                found = self._resolve(name.parts)
                return Sql("boolean", sf.lit(False) if found is None else found.column.isNotNull())
        if _is_constant(expression):
            return _constant(expression)
        match expression:
            case Not(operand):
                return Sql("boolean", ~_boolean(self.sql(operand)))
            case Negate(operand):
                return _negated(_number(self.sql(operand)))
            case Like(operand, pattern, negated):
                matched = _string(self.sql(operand)).like(_like_pattern(pattern))
                return Sql("boolean", ~matched if negated else matched)
            case In(operand, options, negated):
                among = _is_among(self.sql(operand), [self.sql(each) for each in options])
                return Sql("boolean", ~among if negated else among)
            case Arithmetic(first, rest):
                result = self.sql(first)
                for sign, operand in rest:
                    result = _computed(sign, _number(result), _number(self.sql(operand)))
                return result
            case Comparison(first, rest):
                result = self.sql(first)
                for sign, operand in rest:
                    result = Sql("boolean", _compared(sign, result, self.sql(operand)))
                return result
            case Logic(operands, operators):
                return Sql("boolean", self._logic(operands, operators))
            case Call(function, arguments):
                return _called(function, [self.sql(each) for each in arguments])
        raise AssertionError(expression)

    def _logic(self, operands: Sequence[Expression], operators: Sequence[str]) -> Column:
        """From the right. An operand that is not read cannot be in error; one that is read can."""
        result = _boolean(self.sql(operands[-1]))
        for operand, sign in zip(reversed(operands[:-1]), reversed(operators), strict=True):
            left = _boolean(self.sql(operand))
            if sign == "AND":
                # SQL's own AND is false where the left is null and the right false.
                result = sf.when(left.isNotNull(), left & result)
            elif sign == "OR":
                result = left | (~left & result)
                # Where the left is null, `null OR (null AND false)` is null as well.
            else:
                result = left != result
        return result


def balanced(
    conditions: Sequence[Column], join: Callable[[Column, Column], Column], nothing: bool
) -> Column:
    """The conditions joined as a tree that is no deeper than it must be: Spark's stack is short."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else sf.lit(nothing)
    middle = len(conditions) // 2
    left, right = conditions[:middle], conditions[middle:]
    return join(balanced(left, join, nothing), balanced(right, join, nothing))


def weight(expression: Expression) -> int:
    """About how many nodes the expression has in SQL, where some parts are written twice."""
    match expression:
        case Literal() | Name() | Exists():
            return 1
        case Not(operand) | Negate(operand) | Like(operand, _, _):
            return 1 + 2 * weight(operand)
        case In(operand, options, _):
            return 1 + sum(weight(operand) + 2 * weight(each) for each in options)
        case Arithmetic(first, rest) | Comparison(first, rest):
            total = weight(first)
            for _, each in rest:
                total = 1 + 2 * total + 2 * weight(each)
            return total
        case Logic(operands, _):
            return sum(1 + 2 * weight(each) for each in operands)
        case Call(_, arguments):
            return 1 + 2 * sum(map(weight, arguments))


def conjuncts(expression: Expression) -> list[Expression]:
    """The parts of a chain of AND, all of which must hold for the whole to hold.

    A filter built from them part by part is one that Spark can push down to a file.
    """
    if isinstance(expression, Logic) and set(expression.operators) == {"AND"}:
        return [part for operand in expression.operands for part in conjuncts(operand)]
    return [expression]


# --- constants ----------------------------------------------------------------------------------


def _is_constant(expression: Expression) -> bool:
    match expression:
        case Literal():
            return True
        case Name() | Exists():
            return False
        case Not(operand) | Negate(operand) | Like(operand, _, _):
            return _is_constant(operand)
        case In(operand, options, _):
            return len(options) <= _CONSTANTS_WORTH_FOLDING and all(
                map(_is_constant, (operand, *options))
            )
        case Arithmetic(first, rest) | Comparison(first, rest):
            return _is_constant(first) and all(_is_constant(each) for _, each in rest)
        case Logic(operands, _):
            return all(map(_is_constant, operands))
        case Call(_, arguments):
            return all(map(_is_constant, arguments))


class _Nothing:
    def lookup(self, parts: tuple[str, ...]) -> Any:
        raise AssertionError(parts)


def _constant(expression: Expression) -> Sql:
    outcome = evaluate(expression, _Nothing())
    return error() if outcome.errors else literal(outcome.value)


def literal(constant: Any) -> Sql:
    """A value of Python in SQL."""
    kind = kind_of(constant)
    if isinstance(constant, datetime):
        # By its number: Spark's own literals take old dates through another calendar.
        return Sql(kind, sf.timestamp_micros(sf.lit(microseconds_of(constant))), constant)
    if kind == "integer":
        if constant > LARGEST_INTEGER:
            raise NotInSqlError(f"the integer {constant} is too large for Spark")
        return Sql(kind, sf.lit(constant).cast("bigint"), constant)
    if kind == "real":
        return Sql(kind, sf.lit(float(constant)).cast("double"), constant)
    return Sql(kind, sf.lit(constant), constant)


# --- casts --------------------------------------------------------------------------------------


def _cast(found: Sql, cast: Callable[[Any], Any]) -> Sql | None:
    """The cast of a constant; None for what is none."""
    if found.constant is MISSING:
        return None
    try:
        return literal(cast(found.constant))
    except FaultError:
        return error()


def _boolean(found: Sql) -> Column:
    if (known := _cast(found, to_boolean)) is not None:
        return known.column
    if found.kind == "boolean":
        return found.column
    if found.kind == "string":
        lower = sf.lower(found.column)
        return sf.when(lower == "true", sf.lit(True)).when(lower == "false", sf.lit(False))
    return error().column


def _number(found: Sql) -> Sql:
    """An integer or a real; of no kind where the value never is one."""
    if (known := _cast(found, to_number)) is not None:
        return known
    if found.kind in ("integer", "real"):
        return found
    if found.kind == "boolean":
        return Sql("integer", found.column.cast("bigint"))
    if found.kind == "string":
        raise NotInSqlError("text from an event is read as a number")
    return error()


def _integer(found: Sql) -> Column:
    if found.kind in ("integer", "boolean"):
        return found.column.cast("bigint")
    if found.kind == "string":
        is_integer = found.column.rlike(r"\A[+-]?[0-9]+\z")
        return sf.when(is_integer, found.column.try_cast("bigint"))
    return sf.lit(None).cast("bigint")


def _real(found: Sql) -> Column:
    return found.column.cast("double")


def _string(found: Sql) -> Column:
    if (known := _cast(found, to_string)) is not None:
        return known.column.cast("string")
    if found.kind == "string":
        return found.column
    if found.kind in ("integer", "boolean"):
        return found.column.cast("string")
    if found.kind is None:
        return sf.lit(None).cast("string")
    raise NotInSqlError(f"a {found.kind} is shown as text")


def _timestamp(found: Sql) -> Column:
    if (known := _cast(found, to_timestamp)) is not None and known.kind is not None:
        return known.column
    if found.kind == "timestamp":
        return found.column
    if found.kind == "string" and found.constant is MISSING:
        raise NotInSqlError("text from an event is read as a time")
    return sf.lit(None).cast("timestamp")


# --- operators ----------------------------------------------------------------------------------


def _finite(column: Column) -> Column:
    return sf.when(sf.abs(column) <= _LARGEST_REAL, column)


def _negated(operand: Sql) -> Sql:
    if operand.kind == "integer":
        return Sql("integer", sf.try_subtract(sf.lit(0).cast("bigint"), operand.column))
    return Sql("real", -operand.column) if operand.kind == "real" else error()


def _computed(sign: str, left: Sql, right: Sql) -> Sql:
    if left.kind is None or right.kind is None:
        return error()
    if left.kind == right.kind == "integer":
        return Sql("integer", _INTEGERS[sign](left.column, right.column))
    return Sql("real", _finite(_REALS[sign](_real(left), _real(right))))


def _quotient(x: Column, y: Column) -> Column:
    # The smallest integer has no opposite, so this one quotient is out of range.
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


def _compared(sign: str, left: Sql, right: Sql) -> Column:
    if sign in ("=", "!="):
        kind = "timestamp" if left.kind == "timestamp" else _family(right.kind)
        equal = _equal_as(kind, left, right)
        return equal if sign == "=" else ~equal
    if "timestamp" in (left.kind, right.kind):
        return _ORDERINGS[sign](_timestamp(left), _timestamp(right))
    x, y = _number(left), _number(right)
    if x.kind is None or y.kind is None:
        return error().column
    if x.kind == y.kind:
        return _ORDERINGS[sign](x.column, y.column)
    return _ORDERINGS[sign](_real(x), _real(y))


_ORDERINGS: dict[str, Callable[[Column, Column], Column]] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


def _equal_as(kind: str | None, left: Sql, right: Sql) -> Column:
    if kind == "boolean":
        return _boolean(left) == _boolean(right)
    if kind == "string":
        return _string(left) == _string(right)
    if kind == "timestamp":
        return _timestamp(left) == _timestamp(right)
    if kind == "number":
        x, y = _number(left), _number(right)
        if x.kind is None or y.kind is None:
            return error().column
        return x.column == y.column if x.kind == y.kind else _real(x) == _real(y)
    return error().column


def _is_among(operand: Sql, options: Sequence[Sql]) -> Column:
    """Every option is compared, so that no order hides a failing cast: one error is an error."""
    family = _family(operand.kind)
    equal = [_equal_as(family, operand, option) for option in options]
    any_equal = balanced(equal, operator.or_, False)
    if all(option.constant is not MISSING for option in options):
        # Constants are in error always or never, and the operand is null in all or in none.
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


def _like_pattern(pattern: str) -> str:
    """The pattern for Spark, where a backslash that is one must be doubled."""
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


def _called(name: str, arguments: Sequence[Sql]) -> Sql:
    function = FUNCTIONS.get(name)
    if function is None or not function.accepts(len(arguments)):
        return error()
    written = _FUNCTIONS.get(name)
    if written is None:
        raise NotInSqlError(f"`{name}` follows Python's rules for text")
    return written(arguments)


def _absolute(arguments: Sequence[Sql]) -> Sql:
    number = _number(arguments[0])
    if number.kind == "integer":
        possible = sf.when(number.column != SMALLEST_INTEGER, number.column)
        return Sql("integer", sf.abs(possible))
    return Sql("real", sf.abs(number.column)) if number.kind == "real" else error()


def _truth(arguments: Sequence[Sql]) -> Sql:
    (operand,) = arguments
    if operand.kind in ("integer", "real"):
        return Sql("boolean", operand.column != 0)
    return Sql("boolean", _boolean(operand))


def _truncated(arguments: Sequence[Sql]) -> Sql:
    (operand,) = arguments
    if operand.kind == "real":
        column = operand.column
        possible = sf.when((column >= -math.ldexp(1, 63)) & (column < math.ldexp(1, 63)), column)
        return Sql("integer", possible.cast("bigint"))
    return Sql("integer", _integer(operand))


def _concatenated(arguments: Sequence[Sql]) -> Sql:
    return Sql("string", sf.concat(sf.lit(""), *(_string(each) for each in arguments)))


def _joined(arguments: Sequence[Sql]) -> Sql:
    # Spark's own `concat_ws` leaves nulls out; here one null makes the whole one.
    delimiter, *texts = (_string(each) for each in arguments)
    parts = [part for text in texts for part in (delimiter, text)][1:]
    joined = sf.concat(sf.lit(""), *parts)
    return Sql("string", sf.when(delimiter.isNotNull(), joined))


def _left(arguments: Sequence[Sql]) -> Sql:
    text, count = _string(arguments[0]), _integer(arguments[1])
    return Sql("string", sf.when(count >= 0, sf.substr(text, sf.lit(1), _as_length(count))))


def _right(arguments: Sequence[Sql]) -> Sql:
    text, count = _string(arguments[0]), _integer(arguments[1])
    length = sf.char_length(text).cast("bigint")
    start = (length - sf.least(length, count) + 1).cast("int")
    return Sql("string", sf.when(count >= 0, sf.substr(text, start)))


def _as_length(count: Column) -> Column:
    return sf.least(count, sf.lit(_LARGEST_LENGTH).cast("bigint")).cast("int")


def _length(arguments: Sequence[Sql]) -> Sql:
    return Sql("integer", sf.char_length(_string(arguments[0])).cast("bigint"))


_FUNCTIONS: dict[str, Callable[[Sequence[Sql]], Sql]] = {
    "ABS": _absolute,
    "BOOL": _truth,
    "CONCAT": _concatenated,
    "CONCAT_WS": _joined,
    "INT": _truncated,
    "LEFT": _left,
    "LENGTH": _length,
    "RIGHT": _right,
    "STRING": lambda arguments: Sql("string", _string(arguments[0])),
}

"""CESQL over columns: the meaning of `ensue.lang.expressions.evaluation`, for many events at once.

In come an expression and columns; out goes an `Outcomes`: a typed array and a mask of errors. An
error taints everything that reads it, whatever its kind, so a mask is all that is needed; only AND
and OR leave an operand, and with it its errors, unread. What has no form over columns (texts read
as numbers, most functions, LIKE) is worked out once for each distinct value where it asks for one
name, and else event by event, by the evaluation itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import Column, column_of
from ensue.engine.batch.input.patterns import extracting, matching
from ensue.engine.core.numbering import Mask, Rows
from ensue.events.times import microseconds_of
from ensue.lang.expressions.evaluation import MISSING, evaluate
from ensue.lang.expressions.names import Parts, names_in
from ensue.lang.expressions.tree import (
    Arithmetic,
    Call,
    Comparison,
    Exists,
    Expression,
    In,
    Literal,
    Logic,
    Name,
    Not,
)
from ensue.lang.expressions.values import FaultError, to_timestamp

Lookup = Callable[[Parts], Column]

_SMALLEST = np.int64(-(2**63))
_EXACT = 2**53
"""A real holds every integer up to here, so that a quotient of one is rounded once."""
_MICROSECONDS = 1e6
"""In a second."""
_MOST_DISTINCT = 0.5
"""A name with more distinct values than this share of its rows is not worth a dictionary."""


class NotInColumnsError(Exception):
    """An expression that has no form over these columns."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The value of an expression in every row; it means nothing where there is an error."""

    kind: str
    values: Any
    errors: Mask | None = None

    def error_mask(self, count: int) -> Mask:
        if self.errors is None:
            return np.zeros(count, np.bool_)
        return np.broadcast_to(self.errors, count)


@dataclass(frozen=True, slots=True)
class ValueScope:
    """Names that have been looked up before."""

    values: Mapping[Parts, Any]

    def lookup(self, parts: Parts) -> Any:
        return self.values[parts]


def outcomes(expression: Expression, lookup: Lookup, count: int) -> Outcomes:
    """The value in each row. Raises `NotInColumnsError` where that has to be asked row by row."""
    found = _Evaluation(lookup, count).of(expression)
    # Constants stay single values until the end: numpy and Arrow spread them where they meet.
    errors = None if found.errors is None else found.error_mask(count)
    values = found.values
    if len(values) != count:
        if found.kind == "string":
            values = values.take(pa.array(np.zeros(count, np.int64)))
        else:
            values = np.broadcast_to(values, count)
    return Outcomes(found.kind, values, errors)


def values_by_row(expression: Expression, lookup: Lookup, rows: Rows) -> list[Any]:
    """The value in each of some rows, in Python; `MISSING` where there was an error."""
    asked = {parts: lookup(parts).take(rows).to_list() for parts in set(names_in(expression))}
    found = []
    for row in range(rows.size):
        scope = ValueScope({parts: values[row] for parts, values in asked.items()})
        outcome = evaluate(expression, scope)
        found.append(MISSING if outcome.errors else outcome.value)
    return found


class _Evaluation:
    def __init__(self, lookup: Lookup, count: int) -> None:
        self._lookup = lookup
        self._count = count

    def of(self, x: Expression) -> Outcomes:
        try:
            return self._in_columns(x)
        except NotInColumnsError:
            return self._by_distinct_value(x)

    def _in_columns(self, x: Expression) -> Outcomes:
        match x:
            case Literal():
                return self._constant(x)
            case Name(parts):
                column = self._lookup(parts)
                if column.kind == "object":
                    raise NotInColumnsError
                return Outcomes(column.kind, column.values, column.missing)
            case Exists(name):
                return Outcomes("boolean", ~self._lookup(name.parts).missing_mask())
            case Not(operand):
                inner = self._boolean(self.of(operand))
                return Outcomes("boolean", ~inner.values, inner.errors)
            case Logic():
                return self._logic(x)
            case Comparison(first, rest):
                result = self.of(first)
                for sign, operand in rest:
                    result = self._compare(sign, result, self.of(operand))
                return result
            case Arithmetic(first, rest):
                result = self.of(first)
                for sign, operand in rest:
                    result = self._compute(sign, result, self.of(operand))
                return result
            case In(operand, options, negated):
                return self._among(self.of(operand), [self.of(o) for o in options], negated)
            case Call("MATCHES", (text, Literal(str() as pattern))):
                return self._matching(self.of(text), pattern)
            case Call("EXTRACT", (text, Literal(str() as pattern), *group)):
                return self._extracted(self.of(text), pattern, group)
            case Call("CONCAT", arguments):
                return self._concatenate([self.of(each) for each in arguments])
            case _:
                raise NotInColumnsError

    def _concatenate(self, given: list[Outcomes]) -> Outcomes:
        texts = concatenated([(each.kind, each.values) for each in given], self._count)
        if texts is None:
            raise NotInColumnsError
        return Outcomes("string", texts, reduce(_either, [each.errors for each in given]))

    def _matching(self, text: Outcomes, pattern: str) -> Outcomes:
        found = None if text.kind != "string" else matching(text.values, pattern)
        if found is None:
            raise NotInColumnsError
        return Outcomes("boolean", found, text.errors)

    def _extracted(self, text: Outcomes, pattern: str, group: Sequence[Expression]) -> Outcomes:
        asked: Any = None
        if group:
            asked = group[0].value if isinstance(group[0], Literal) else None
            if not isinstance(asked, str) and type(asked) is not int:
                raise NotInColumnsError
        found = None if text.kind != "string" else extracting(text.values, pattern, asked)
        if found is None:
            raise NotInColumnsError
        parts, missing = found
        return Outcomes("string", parts, _either(text.errors, missing))

    def _by_distinct_value(self, x: Expression) -> Outcomes:
        """An expression over one name has one value for each value of the name."""
        names = set(names_in(x))
        if len(names) > 1:
            raise NotInColumnsError
        if not names:
            return self._constant(x)
        (parts,) = names
        column = self._lookup(parts)
        if column.kind == "object":
            raise NotInColumnsError
        if column.kind == "string":
            encoded = column.values.dictionary_encode()
            places = np.asarray(pc.fill_null(encoded.indices, 0)).astype(np.int64)
            distinct = encoded.dictionary.to_pylist() or [""]
        else:
            # By their bits: 0.0 and -0.0 are equal, but not as text.
            plain = column.values.view(np.int64) if column.kind == "real" else column.values
            found, places = np.unique(plain, return_inverse=True)
            distinct = Column(column.kind, found.view(column.values.dtype)).to_list() or [MISSING]
        if len(distinct) > 1000 and len(distinct) > self._count * _MOST_DISTINCT:
            raise NotInColumnsError
        if column.missing is not None:
            places = np.where(column.missing, len(distinct), places)
        values = [_value(x, {parts: value}) for value in [*distinct, MISSING]]
        return self._spread(column_of(values), places)

    def _spread(self, distinct: Column, places: Rows) -> Outcomes:
        if distinct.kind == "object":
            raise NotInColumnsError
        spread = distinct.take(places)
        return Outcomes(spread.kind, spread.values, spread.missing)

    def _constant(self, x: Expression) -> Outcomes:
        return self._spread(column_of([_value(x, {})]), np.zeros(1, np.int64))

    # --- logic ------------------------------------------------------------------------------------

    def _boolean(self, given: Outcomes) -> Outcomes:
        if given.kind == "boolean":
            return given
        if given.kind == "string":
            raise NotInColumnsError
        # No number and no instant is a boolean: every row is an error.
        return self._all_errors("boolean")

    def _logic(self, x: Logic) -> Outcomes:
        reading = np.ones(self._count, np.bool_)
        errors = np.zeros(self._count, np.bool_)
        value = np.zeros(self._count, np.bool_)
        flips = np.zeros(self._count, np.bool_)
        for operand, sign in zip(x.operands, (*x.operators, None), strict=True):
            given = self._boolean(self.of(operand))
            wrong = given.error_mask(self._count)
            held = given.values & ~wrong
            errors |= reading & wrong
            value = np.where(reading, held, value)
            if sign == "AND":
                reading = reading & held
            elif sign == "OR":
                reading = reading & ~held
            elif sign == "XOR":
                flips ^= reading & held
        return Outcomes("boolean", value != flips, errors)

    def _all_errors(self, kind: str) -> Outcomes:
        return Outcomes(kind, np.zeros(self._count, np.bool_), np.ones(self._count, np.bool_))

    # --- comparison -------------------------------------------------------------------------------

    def _compare(self, sign: str, x: Outcomes, y: Outcomes) -> Outcomes:
        errors = _either(x.errors, y.errors)
        if "timestamp" in (x.kind, y.kind):
            left, right = self._instants(x), self._instants(y)
            errors = _either(errors, _either(left.errors, right.errors))
            return Outcomes("boolean", _COMPARISONS[sign](left.values, right.values), errors)
        if sign in ("=", "!="):
            return self._equal(sign, x, y, errors)
        if "string" in (x.kind, y.kind):
            raise NotInColumnsError
        left_numbers, right_numbers = _as_numbers(x, y)
        return Outcomes("boolean", _COMPARISONS[sign](left_numbers, right_numbers), errors)

    def _equal(self, sign: str, x: Outcomes, y: Outcomes, errors: Mask | None) -> Outcomes:
        if x.kind == y.kind == "string":
            same = _same_texts(x.values, y.values)
            return Outcomes("boolean", same if sign == "=" else ~same, errors)
        if "string" in (x.kind, y.kind):
            raise NotInColumnsError
        if y.kind == "boolean" and x.kind != "boolean":
            return self._all_errors("boolean")
        left, right = _as_numbers(x, y)
        return Outcomes("boolean", _COMPARISONS[sign](left, right), errors)

    def _instants(self, x: Outcomes) -> Outcomes:
        if x.kind == "timestamp":
            return x
        if x.kind != "string":
            return self._all_errors("timestamp")
        distinct = x.values.dictionary_encode()
        known = [_instant(text) for text in distinct.dictionary.to_pylist()] or [None]
        places = np.asarray(pc.fill_null(distinct.indices, 0))
        wrong = np.array([each is None for each in known])[places]
        return Outcomes("timestamp", np.array([each or 0 for each in known])[places], wrong)

    def _among(self, x: Outcomes, options: list[Outcomes], negated: bool) -> Outcomes:
        """The left operand's kind decides what the options are cast to."""
        result = np.zeros(self._count, np.bool_)
        errors = x.errors
        for option in options:
            one = self._equal_by_left(x, option)
            errors = _either(errors, one.errors)
            result |= one.values
        return Outcomes("boolean", result != negated, errors)

    def _equal_by_left(self, x: Outcomes, option: Outcomes) -> Outcomes:
        if x.kind == option.kind == "string":
            same = _same_texts(x.values, option.values)
            return Outcomes("boolean", same, option.errors)
        if "string" in (x.kind, option.kind):
            raise NotInColumnsError
        if "timestamp" in (x.kind, option.kind):
            if x.kind != option.kind:
                return self._all_errors("boolean")
        elif x.kind == "boolean" and option.kind != "boolean":
            return self._all_errors("boolean")
        left, right = _as_numbers(x, option)
        return Outcomes("boolean", left == right, option.errors)

    # --- arithmetic -------------------------------------------------------------------------------

    def _compute(self, sign: str, x: Outcomes, y: Outcomes) -> Outcomes:
        if "string" in (x.kind, y.kind):
            raise NotInColumnsError
        errors = _either(x.errors, y.errors)
        if x.kind == y.kind == "timestamp" and sign == "-":
            between = x.values - y.values
            if between.size and np.abs(between).max() >= _EXACT:
                raise NotInColumnsError
            return Outcomes("real", between / _MICROSECONDS, errors)
        if "timestamp" in (x.kind, y.kind):
            if sign == "-":
                raise NotInColumnsError
            return self._all_errors("integer")
        left, right = _as_numbers(x, y)
        with np.errstate(all="ignore"):
            if left.dtype == np.float64:
                values, wrong = _compute_reals(sign, left, right)
                return Outcomes("real", values, _either(errors, wrong))
            values, past = _compute_integers(sign, left, right)
        return Outcomes("integer", values, _either(errors, past))


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _value(x: Expression, values: Mapping[Parts, Any]) -> Any:
    outcome = evaluate(x, ValueScope(values))
    return MISSING if outcome.errors else outcome.value


def _same_texts(x: pa.Array, y: pa.Array) -> Mask:
    left = x[0] if len(x) == 1 else x
    right = y[0] if len(y) == 1 and len(x) != 1 else y
    return np.asarray(pc.fill_null(pc.equal(left, right), False))


def _instant(text: str) -> int | None:
    try:
        return microseconds_of(to_timestamp(text))
    except FaultError:
        return None


def _either(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _as_numbers(x: Outcomes, y: Outcomes) -> tuple[Any, Any]:
    """Two operands as integers or, where one is real, as reals; a boolean is 0 or 1."""
    type_ = np.float64 if "real" in (x.kind, y.kind) else np.int64
    return x.values.astype(type_, copy=False), y.values.astype(type_, copy=False)


def _compute_reals(sign: str, x: Any, y: Any) -> tuple[Any, Mask]:
    compute = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}[sign]
    values = compute(x, y)
    return values, ~np.isfinite(values)


def _compute_integers(
    sign: str, x: npt.NDArray[np.int64], y: npt.NDArray[np.int64]
) -> tuple[Any, Mask | None]:
    """Integers of 64 bits; an overflow is an error."""
    if sign == "+":
        total = x + y
        return total, ((x ^ total) & (y ^ total)) < 0
    if sign == "-":
        total = x - y
        return total, ((x ^ y) & (x ^ total)) < 0
    if sign == "*":
        size = np.abs(x.astype(np.float64)) * np.abs(y.astype(np.float64))
        if size.size and size.max() >= 2.0**62:
            raise NotInColumnsError
        return x * y, None
    zero = y == 0
    # The one quotient of two 64-bit integers that is none itself.
    past = (x == _SMALLEST) & (y == -1)
    divisor = np.where(zero | past, 1, y)
    remainder = np.fmod(x, divisor)
    if sign == "%":
        return remainder, zero
    return (x - remainder) // divisor, zero | past


def concatenated(arguments: Sequence[tuple[str, Any]], count: int) -> pa.Array | None:
    """The arguments, each with its kind, as one text for each row."""
    texts: list[Any] = [_texts(kind, values) for kind, values in arguments]
    if any(each is None for each in texts) or all(len(each) != count for each in texts):
        return None
    # Constants are single values.
    spread = [each if len(each) == count else each[0] for each in texts]
    return pc.binary_join_element_wise(*spread, "")


def _texts(kind: str, values: Any) -> pa.Array | None:
    if kind == "string":
        return pc.fill_null(values, "")
    if kind == "integer":
        return pa.array(values).cast(pa.string())
    return None

"""Comparisons of values: `=`, `<` and the others, IN, BETWEEN, and bags.

In come two values of any kinds; out goes a boolean, or a `FaultError` where no cast makes them
comparable. The values are cast before they are compared; the cast depends on the kinds of both.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ensue.lang.expressions.terms import Quantifier
from ensue.lang.expressions.values import CASTS, FaultError, kind_of, to_number, to_timestamp


def _equal_as(kind: str | None, x: Any, y: Any) -> bool:
    """Whether two values are equal after a cast to a kind."""
    if kind is None:
        raise FaultError("cast")
    left, right = CASTS[kind](x), CASTS[kind](y)
    if isinstance(left, float) or isinstance(right, float):
        # An integer is compared with a real as a real; Python would compare them exactly.
        return float(left) == float(right)
    return bool(left == right)


def _is_equal(x: Any, y: Any) -> bool:
    """Equality in the kind of the right operand; a timestamp on either side makes timestamps."""
    kind = "timestamp" if kind_of(x) == "timestamp" else comparison_kind(y)
    return _equal_as(kind, x, y)


def is_among(x: Any, options: Sequence[Any]) -> bool:
    """`IN`, in the kind of the left operand; all options are cast, so that no error is hidden."""
    equal = [_equal_as(comparison_kind(x), x, option) for option in options]
    return True in equal


def comparison_kind(value: Any) -> str | None:
    """`number`, `string`, `boolean` or `timestamp`: the kind to which a comparison casts values."""
    kind = kind_of(value)
    return "number" if kind in ("integer", "real") else kind


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compute(left: Any, right: Any) -> bool:
        if "timestamp" in (kind_of(left), kind_of(right)):
            return compare(to_timestamp(left), to_timestamp(right))
        x, y = to_number(left), to_number(right)
        if isinstance(x, float) or isinstance(y, float):
            return compare(float(x), float(y))
        return compare(x, y)

    return compute


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": _is_equal,
    "!=": lambda x, y: not _is_equal(x, y),
    "<": _ordering(operator.lt),
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
}


def is_between(value: Any, low: Any, high: Any) -> bool:
    """`BETWEEN`: both comparisons are made, so that neither hides an error of the other."""
    above, below = COMPARISONS[">="](value, low), COMPARISONS["<="](value, high)
    return above and below


def stands_in(comparison: str, left: Any, right: Any) -> bool:
    """Whether a comparison holds; it does not for values that cannot be compared."""
    try:
        return COMPARISONS[comparison](left, right)
    except FaultError:
        return False


def has(bag: Any, quantifier: Quantifier, options: Sequence[Any]) -> bool:
    """`HAS`: a single value is a bag of one; values that cannot be compared are not equal."""
    if isinstance(bag, Mapping):
        raise FaultError("cast")
    values = list(bag) if isinstance(bag, Sequence) and not isinstance(bag, str | bytes) else [bag]

    def is_met(value: Any, option: Any) -> bool:
        try:
            return _equal_as(comparison_kind(value), value, option)
        except FaultError:
            return False

    return quantified(quantifier, values, options, is_met)


def quantified(
    quantifier: Quantifier,
    values: Sequence[Any],
    options: Sequence[Any],
    is_met: Callable[[Any, Any], bool],
) -> bool:
    """Whether the values of a bag meet the options, by the quantifier."""
    match quantifier:
        case "ANY":
            return any(is_met(value, option) for value in values for option in options)
        case "ALL":
            return all(any(is_met(value, option) for value in values) for option in options)
        case "ONLY":
            met = [any(is_met(value, option) for option in options) for value in values]
            return bool(met) and all(met)

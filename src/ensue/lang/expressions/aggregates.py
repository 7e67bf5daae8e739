"""Aggregates over the events of a port, in `having` and in the values of `push new`.

In come the values of one attribute over the port's stretch, in the order in which they were read,
`MISSING` for a null; out goes one value. Nulls are left out. Without values `COUNT` and `DISTINCT`
are 0, the others null. There are no casts: a value of a kind that an aggregate does not take is an
error, and so is a sum beyond 64 bits.

Sums are exact, so that engines may add in any order: the sum of integers is an integer, and if
there is a real, the exact sum is rounded once. `AVG` is the sum as a real, divided by the count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.values import (
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    FaultError,
    kind_of,
)

NUMBERS = frozenset({"integer", "real"})
ORDERED = NUMBERS | {"timestamp"}
SINGLE = ORDERED | {"boolean", "string"}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate. `takes` are the kinds of values that it accepts, None for any.

    `result` is the kind of its result; None for the kind of the values. An aggregate is `running`
    if its result follows from the previous result and the next value.
    """

    compute: Callable[[Sequence[Any]], Any]
    takes: frozenset[str] | None
    result: str | None
    running: bool = True


def _present(values: Sequence[Any], takes: frozenset[str] | None = None) -> list[Any]:
    """The values that are not null. Raises `FaultError` for a value of another kind."""
    found = [each for each in values if each is not MISSING]
    if takes is not None and any(kind_of(each) not in takes for each in found):
        raise FaultError("cast", 0)
    return found


def _some(values: Sequence[Any], takes: frozenset[str] | None = None) -> list[Any]:
    """As `_present`; the aggregate is null if there is no value."""
    found = _present(values, takes)
    if not found:
        raise FaultError("missingAttribute", False)
    return found


def _distinct(values: Sequence[Any]) -> int:
    """The number of different values; 1 equals 1.0, and differs from TRUE."""
    found = _present(values, SINGLE)
    return len({(isinstance(each, bool), each) for each in found})


def _sum(values: Sequence[Any]) -> int | float:
    found = _some(values, NUMBERS)
    if all(isinstance(each, int) for each in found):
        total = sum(found)
        if not SMALLEST_INTEGER <= total <= LARGEST_INTEGER:
            raise FaultError("math", 0)
        return int(total)
    return _real_sum(found)


def _real_sum(values: Sequence[int | float]) -> float:
    if not all(math.isfinite(each) for each in values):
        raise FaultError("math", 0.0)
    try:
        return float(sum(map(Fraction, values)))
    except OverflowError:
        raise FaultError("math", 0.0) from None


def _average(values: Sequence[Any]) -> float:
    found = _some(values, NUMBERS)
    return _real_sum(found) / len(found)


AGGREGATES: Mapping[str, Aggregate] = {
    "AVG": Aggregate(_average, NUMBERS, "real", running=False),
    "COUNT": Aggregate(len, None, "integer"),
    "DISTINCT": Aggregate(_distinct, SINGLE, "integer", running=False),
    "FIRST": Aggregate(lambda values: _some(values)[0], None, None),
    "LAST": Aggregate(lambda values: _some(values)[-1], None, None),
    "MAX": Aggregate(lambda values: max(_some(values, ORDERED)), ORDERED, None),
    "MIN": Aggregate(lambda values: min(_some(values, ORDERED)), ORDERED, None),
    "SUM": Aggregate(_sum, NUMBERS, None),
}
"""The aggregates by name, in upper case."""

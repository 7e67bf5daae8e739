"""Aggregates that go along with a stretch, which takes in events at its end and loses the first.

In come the events of one port, in order, and how many of them have left; out goes what the
aggregate is now, or the fault that it has. Each event costs amortised constant time: sums are kept
as whole numbers, reals in units of the smallest one, so that taking away undoes adding exactly;
minima and maxima are queues in which no value stands behind one that outlives and beats it; and
`distinct` counts each value. A stretch with a value that is of another kind than declared, or no
finite number, is computed as a whole, by the definition in `lang.expressions.aggregates`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ensue.engine.core.relating.form import Asked
from ensue.engine.core.relating.tallies import plain_name, value_in
from ensue.events.event import Event
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.values import (
    LARGEST_IN_DATA,
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    FaultError,
)

_CLASSES: Mapping[str, type] = {
    "integer": int,
    "real": float,
    "string": str,
    "boolean": bool,
    "timestamp": datetime,
}
_UNITS = 1074
"""The smallest real is two to the power of minus this."""
_ONE = 1 << _UNITS


class Running:
    """One aggregate over one stretch, with a value of each event, `MISSING` for a null."""

    __slots__ = ("_asked", "_class", "_name", "_odd", "_path", "_present", "_values")

    def __init__(self, asked: Asked, path: tuple[str, ...]) -> None:
        self._asked, self._path = asked, path
        self._class = _CLASSES.get(asked.kind)
        self._name = plain_name(path)
        self._values: deque[Any] = deque()
        self.clear()

    def clear(self) -> None:
        self._values.clear()
        self._odd = 0
        self._present = 0

    def push(self, event: Event) -> None:
        value = value_in(event, self._name, self._path)
        self._values.append(value)
        if value is MISSING:
            return
        self._present += 1
        if _is_odd(value, self._class):
            self._odd += 1
        else:
            self._add(value)

    def pop(self) -> None:
        """Take away the first event."""
        value = self._values.popleft()
        if value is MISSING:
            return
        self._present -= 1
        if _is_odd(value, self._class):
            self._odd -= 1
        else:
            self._take_away(value)

    def result(self) -> Any:
        """The value, or the `FaultError` that there is instead."""
        try:
            if self._odd:
                return AGGREGATES[self._asked.function].compute(list(self._values))
            if not self._present and self._asked.function != "DISTINCT":
                return FaultError("missingAttribute", False)
            return self._result()
        except FaultError as fault:
            return fault

    def _add(self, value: Any) -> None:
        """Take in a value of the declared kind."""

    def _take_away(self, value: Any) -> None:
        """Take away the first of these values."""

    def _result(self) -> Any:
        """What it is where all values are of the declared kind, and one is there."""
        raise NotImplementedError


class RunningCount(Running):
    """`count`: how many events there are."""

    __slots__ = ("_count",)

    def clear(self) -> None:
        self._count = 0

    def push(self, event: Event) -> None:  # noqa: ARG002
        self._count += 1

    def pop(self) -> None:
        self._count -= 1

    def result(self) -> Any:
        return self._count


class RunningSum(Running):
    """`sum` or `avg`, of integers or, in exact units, of reals."""

    __slots__ = ("_total",)

    def clear(self) -> None:
        super().clear()
        self._total = 0

    def _add(self, value: Any) -> None:
        self._total += value if self._class is int else _in_units(value)

    def _take_away(self, value: Any) -> None:
        self._total -= value if self._class is int else _in_units(value)

    def _result(self) -> Any:
        if self._class is int and self._asked.function == "SUM":
            if not SMALLEST_INTEGER <= self._total <= LARGEST_INTEGER:
                raise FaultError("math", 0)
            return self._total
        try:
            total = float(self._total) if self._class is int else self._total / _ONE
        except OverflowError:
            raise FaultError("math", 0.0) from None
        return total if self._asked.function == "SUM" else total / self._present


class RunningExtreme(Running):
    """`min` or `max`; of equal values the first, as they may be two zeros."""

    __slots__ = ("_best", "_is_max")

    def __init__(self, asked: Asked, path: tuple[str, ...]) -> None:
        self._best: deque[Any] = deque()
        self._is_max = asked.function == "MAX"
        super().__init__(asked, path)

    def clear(self) -> None:
        super().clear()
        self._best.clear()

    def _add(self, value: Any) -> None:
        best = self._best
        if self._is_max:
            while best and best[-1] < value:
                best.pop()
        else:
            while best and best[-1] > value:
                best.pop()
        best.append(value)

    def _take_away(self, value: Any) -> None:
        # A value that was beaten has left the queue before; equal ones are all in it.
        if self._best[0] == value:
            self._best.popleft()

    def _result(self) -> Any:
        return self._best[0]


class RunningDistinct(Running):
    """`distinct`: how many different values there are."""

    __slots__ = ("_counts",)

    def __init__(self, asked: Asked, path: tuple[str, ...]) -> None:
        self._counts: dict[Any, int] = {}
        super().__init__(asked, path)

    def clear(self) -> None:
        super().clear()
        self._counts.clear()

    def _add(self, value: Any) -> None:
        self._counts[value] = self._counts.get(value, 0) + 1

    def _take_away(self, value: Any) -> None:
        left = self._counts[value] - 1
        if left:
            self._counts[value] = left
        else:
            del self._counts[value]

    def _result(self) -> Any:
        return len(self._counts)


class RunningEnd(Running):
    """`first` or `last` of the values that are there."""

    __slots__ = ("_there",)

    def __init__(self, asked: Asked, path: tuple[str, ...]) -> None:
        self._there: deque[Any] = deque()
        super().__init__(asked, path)

    def clear(self) -> None:
        super().clear()
        self._there.clear()

    def _add(self, value: Any) -> None:
        self._there.append(value)

    def _take_away(self, value: Any) -> None:  # noqa: ARG002
        self._there.popleft()

    def _result(self) -> Any:
        return self._there[0 if self._asked.function == "FIRST" else -1]


_KINDS: Mapping[str, Callable[[Asked, tuple[str, ...]], Running]] = {
    "AVG": RunningSum,
    "COUNT": RunningCount,
    "DISTINCT": RunningDistinct,
    "FIRST": RunningEnd,
    "LAST": RunningEnd,
    "MAX": RunningExtreme,
    "MIN": RunningExtreme,
    "SUM": RunningSum,
}


def _is_odd(value: Any, kind: type | None) -> bool:
    """Whether a value is of another kind than declared, or out of what that kind holds."""
    if type(value) is not kind:
        return True
    if isinstance(value, float):
        return value - value != 0.0
    if isinstance(value, int):
        return not SMALLEST_INTEGER <= value <= LARGEST_IN_DATA
    return isinstance(value, datetime) and value.tzinfo is None


def running(asked: Asked, path: tuple[str, ...]) -> Running:
    """The aggregate over no events yet; `path` is the name of the attribute."""
    return _KINDS[asked.function](asked, path)


def _in_units(value: float) -> int:
    """A finite real as a whole number of the smallest ones."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_UNITS + 1 - denominator.bit_length())

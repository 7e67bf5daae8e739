"""The stretch of one port, and aggregates over a stretch that slides with a window.

A stretch gets events at its end, and in a window loses events at its start (`PortStretch`). Without
a window it loses none, and holds only the first event for each place and the last event
(`LastingStretch`, whose aggregates are `tallies`).

A sliding aggregate is told of each event that comes in or leaves; out goes its value, or the fault
that it has. Each event costs amortised constant time: sums are kept as whole numbers, reals in
units of the smallest one, so that a subtraction undoes an addition exactly; minima and maxima are
monotonic queues; and `distinct` counts each value. A stretch with a value that is of another kind
than declared, or no finite number, is computed as a whole, by the definition in
`lang.expressions.aggregates`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

from ensue.engine.core.relating.form import AskedAggregate
from ensue.engine.core.relating.links import Linked
from ensue.engine.core.relating.tallies import UNITS_OF_ONE, Tally, in_units, plain_name, value_in
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
_ODD: Mapping[type | None, Callable[[Any], bool]] = {
    int: lambda value: not SMALLEST_INTEGER <= value <= LARGEST_IN_DATA,
    float: lambda value: value - value != 0.0,
    datetime: lambda value: value.tzinfo is None,
}
"""Whether a value is out of what its kind holds, for the classes that have such values."""

NOT_BEGUN = 1 << 200
"""Where a group begins whose groups before it are not complete."""
LEFT_BEFORE_A_CUT = 32
"""So many events that have left a stretch are cut off together."""

_number = itemgetter(0)


class WantedAggregate:
    """The facts of one aggregate that all keys share.

    `is_odd` says of a value of the declared class whether it is out of what its kind holds.
    """

    __slots__ = ("asked", "is_odd", "kind", "name", "path")

    def __init__(self, asked: AskedAggregate, path: tuple[str, ...]) -> None:
        self.asked, self.path = asked, path
        self.kind = _CLASSES.get(asked.kind)
        self.is_odd = _ODD.get(self.kind)
        self.name = plain_name(path)


class SlidingAggregate:
    """One aggregate over one stretch, with a value of each event, `MISSING` for a null.

    The values stand as the events do in the list of the stretch; in the places of events that have
    left, and are not cut off yet, there is none.
    """

    __slots__ = ("_odd", "_present", "_values", "_wanted")

    def __init__(self, wanted: WantedAggregate) -> None:
        self._wanted = wanted
        self.clear()

    def clear(self) -> None:
        self._values: list[Any] = []
        self._odd = 0
        self._present = 0

    def push(self, event: Event) -> None:
        wanted = self._wanted
        value = value_in(event, wanted.name, wanted.path)
        self._values.append(value)
        if value is MISSING:
            return
        self._present += 1
        if _is_odd(value, wanted):
            self._odd += 1
        else:
            self._add(value)

    def pop(self, place: int) -> None:
        """Take away the first event, which has this place in the list of the stretch."""
        value = self._values[place]
        if value is MISSING:
            return
        self._values[place] = MISSING
        self._present -= 1
        if _is_odd(value, self._wanted):
            self._odd -= 1
        else:
            self._take_away(value)

    def cut(self, count: int) -> None:
        """The list of the stretch loses so many of its first events, which have left before."""
        del self._values[:count]

    def result(self) -> Any:
        """The value, or the `FaultError` that there is instead."""
        try:
            function = self._wanted.asked.function
            if self._odd:
                return AGGREGATES[function].compute(self._values)
            if not self._present and function != "DISTINCT":
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


class SlidingCount(SlidingAggregate):
    """`count`: how many events there are."""

    __slots__ = ("_count",)

    def clear(self) -> None:
        self._count = 0

    def push(self, event: Event) -> None:  # noqa: ARG002
        self._count += 1

    def pop(self, place: int) -> None:  # noqa: ARG002
        self._count -= 1

    def cut(self, count: int) -> None:
        pass

    def result(self) -> Any:
        return self._count


class SlidingSum(SlidingAggregate):
    """`sum` or `avg`, of integers or, in exact units, of reals."""

    __slots__ = ("_total",)

    def clear(self) -> None:
        super().clear()
        self._total = 0

    def _add(self, value: Any) -> None:
        self._total += value if self._wanted.kind is int else in_units(value)

    def _take_away(self, value: Any) -> None:
        self._total -= value if self._wanted.kind is int else in_units(value)

    def _result(self) -> Any:
        is_whole, function = self._wanted.kind is int, self._wanted.asked.function
        if is_whole and function == "SUM":
            if not SMALLEST_INTEGER <= self._total <= LARGEST_INTEGER:
                raise FaultError("math", 0)
            return self._total
        try:
            total = float(self._total) if is_whole else self._total / UNITS_OF_ONE
        except OverflowError:
            raise FaultError("math", 0.0) from None
        return total if function == "SUM" else total / self._present


class SlidingExtreme(SlidingAggregate):
    """`min` or `max`; of equal values the first, as they may be two zeros."""

    __slots__ = ("_best", "_is_max")

    def __init__(self, wanted: WantedAggregate) -> None:
        self._is_max = wanted.asked.function == "MAX"
        super().__init__(wanted)

    def clear(self) -> None:
        super().clear()
        self._best: deque[Any] = deque()

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


class SlidingDistinct(SlidingAggregate):
    """`distinct`: how many different values there are."""

    __slots__ = ("_counts",)

    def clear(self) -> None:
        super().clear()
        self._counts: dict[Any, int] = {}

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


class SlidingEnd(SlidingAggregate):
    """`first` or `last` of the values that are there."""

    __slots__ = ("_there",)

    def clear(self) -> None:
        super().clear()
        self._there: deque[Any] = deque()

    def _add(self, value: Any) -> None:
        self._there.append(value)

    def _take_away(self, value: Any) -> None:  # noqa: ARG002
        self._there.popleft()

    def _result(self) -> Any:
        return self._there[0 if self._wanted.asked.function == "FIRST" else -1]


_KINDS: Mapping[str, Callable[[WantedAggregate], SlidingAggregate]] = {
    "AVG": SlidingSum,
    "COUNT": SlidingCount,
    "DISTINCT": SlidingDistinct,
    "FIRST": SlidingEnd,
    "LAST": SlidingEnd,
    "MAX": SlidingExtreme,
    "MIN": SlidingExtreme,
    "SUM": SlidingSum,
}


def _is_odd(value: Any, wanted: WantedAggregate) -> bool:
    """Whether a value is of another kind than declared, or out of what that kind holds."""
    if value.__class__ is not wanted.kind:
        return True
    return wanted.is_odd is not None and wanted.is_odd(value)


def sliding_aggregate(wanted: WantedAggregate) -> SlidingAggregate:
    """The aggregate over no events yet."""
    return _KINDS[wanted.asked.function](wanted)


class PortStretch:
    """The events of one port in its stretch: `events` from the place `start` on."""

    __slots__ = ("events", "runs", "start")

    def __init__(self, runs: list[SlidingAggregate]) -> None:
        self.events: list[Linked] = []
        self.runs = runs
        self.start = 0

    def __len__(self) -> int:
        return len(self.events) - self.start

    def append(self, linked: Linked) -> None:
        self.events.append(linked)
        for each in self.runs:
            each.push(linked[1])

    def clear(self) -> None:
        if self.events:
            self.events, self.start = [], 0
            for each in self.runs:
                each.clear()

    def _drop_first(self) -> None:
        for each in self.runs:
            each.pop(self.start)
        self.start += 1
        count, start = len(self.events), self.start
        if start == count or (start >= LEFT_BEFORE_A_CUT and 2 * start >= count):
            del self.events[:start]
            for each in self.runs:
                each.cut(start)
            self.start = 0

    def drop_before_time(self, edge: int) -> None:
        while self.events and self.events[self.start][1].time < edge:
            self._drop_first()

    def drop_before(self, number: int) -> None:
        while self.events and self.events[self.start][0] < number:
            self._drop_first()

    def add_begin(self, begin: int) -> None:
        """A later place of the port begins at a number: it binds the first event from there on."""

    def first_from(self, number: int) -> int:
        """The number of the first event from a number on."""
        events, start = self.events, self.start
        if start < len(events) and events[start][0] >= number:
            return events[start][0]
        place = bisect_left(events, number, start, key=_number)
        return events[place][0] if place < len(events) else NOT_BEGUN


class LastingStretch(PortStretch):
    """The events of a port in a stretch that loses none: the first for each place, and the last.

    `begins` are the numbers at which later places of the port begin.
    """

    __slots__ = ("begins", "count", "tallies")

    def __init__(self, tallies: list[Tally]) -> None:
        super().__init__([])
        self.tallies = tallies
        self.count = 0
        self.begins: list[int] = []

    def __len__(self) -> int:
        return self.count

    def append(self, linked: Linked) -> None:
        self.count += 1
        for each in self.tallies:
            each.push(linked)
        events = self.events
        if len(events) < 2 or self._is_first(events[-2][0], events[-1][0]):
            events.append(linked)
        else:
            events[-1] = linked

    def add_begin(self, begin: int) -> None:
        if begin not in self.begins:
            self.begins.append(begin)

    def _is_first(self, before: int, number: int) -> bool:
        """Whether an event is the first of a place; `before` is the one held before it."""
        return any(before < begin <= number for begin in self.begins)

    def clear(self) -> None:
        if self.count:
            self.events, self.begins, self.count = [], [], 0
            for each in self.tallies:
                each.clear()

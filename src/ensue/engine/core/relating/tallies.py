"""Aggregates over a stretch that loses no event: what they are so far, without its events.

A rule without a window forgets all events of a stretch together or none. So in come the events of
one port, in order; out goes what the aggregate is now, or the fault that it has. A count is a
number, a sum an exact one, and the least, the greatest, the first and the last value are held with
the event that has it, so that they follow from that event in every engine. Counts and sums do not
follow from any event that is still held: they stand in a snapshot as `SavedTallies`.

What a value of another kind than declared does is that of the definition in
`lang.expressions.aggregates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ensue.engine.core.relating.form import AskedAggregate
from ensue.engine.core.relating.links import Linked
from ensue.events.event import CONTEXT, Event
from ensue.lang.expressions.aggregates import NUMBERS, ORDERED
from ensue.lang.expressions.derived_names import derived_name
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.lang.expressions.values import LARGEST_INTEGER, SMALLEST_INTEGER, FaultError, kind_of

SMALLEST_POWER = -1074
"""The smallest real is two to this power."""
_LARGEST_POWER = 1024
_ROOM_FOR_EVENTS = 63
"""How many bits more than its values a sum may have: it bounds the number of events."""
MOST_EVENTS = 2**62
"""No key has read so many events."""
UNITS_OF_ONE = 1 << -SMALLEST_POWER


class SavedSum(msgspec.Struct, array_like=True, frozen=True):
    """An exact sum: `whole` of its integers, and `fraction` times 2 to a `power` of its reals.

    `present` is how many values there were, `reals` whether one was a real; `fault` is `cast` if
    one was no number and `math` if one was not finite.
    """

    present: int
    whole: bytes
    fraction: bytes = b""
    power: int = 0
    reals: bool = False
    fault: str = ""

    @property
    def whole_number(self) -> int:
        return int.from_bytes(self.whole, "big", signed=True)

    @property
    def numerator(self) -> int:
        return int.from_bytes(self.fraction, "big", signed=True)

    @property
    def is_possible(self) -> bool:
        """Whether some events have that sum."""
        wholes = len(self.whole) <= 16
        power = SMALLEST_POWER <= self.power <= _LARGEST_POWER
        size = 8 * len(self.fraction) + self.power <= _LARGEST_POWER + _ROOM_FOR_EVENTS + 8
        fault = self.fault in ("", "cast", "math") and 0 <= self.present < MOST_EVENTS
        return wholes and power and size and fault


class SavedTallies(msgspec.Struct, array_like=True, frozen=True):
    """How many events ports have in their stretches, and the sums of a rule, by their numbers."""

    counts: dict[str, int]
    sums: dict[int, SavedSum]

    def fit(self, ports: Iterable[str], sums: Iterable[int]) -> bool:
        """Whether they are of a rule that counts these ports and has sums of these numbers."""
        return (
            self.counts.keys() == set(ports)
            and self.sums.keys() == set(sums)
            and all(0 <= each < MOST_EVENTS for each in self.counts.values())
            and all(each.is_possible for each in self.sums.values())
        )


def as_bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True) if number else b""


def reduced(numerator: int, power: int) -> tuple[bytes, int]:
    """A number times 2 to a power, with as few bytes as there can be."""
    if not numerator:
        return b"", 0
    zeros = (numerator & -numerator).bit_length() - 1
    return as_bytes(numerator >> zeros), power + zeros


def saved_sum(present: int, whole: int, numerator: int, power: int) -> SavedSum:
    """A sum of values that are all of their declared kind."""
    fraction, reduced_power = reduced(numerator, power)
    return SavedSum(present, as_bytes(whole), fraction, reduced_power)


def plain_name(path: tuple[str, ...]) -> str | None:
    """The name of an attribute that mostly stands in the data itself; None for any other name."""
    is_plain = len(path) == 1 and derived_name(path) is None and path[0].lower() not in CONTEXT
    return path[0] if is_plain else None


def value_in(event: Event, name: str | None, path: tuple[str, ...]) -> Any:
    """The value of an attribute, `MISSING` for a null; `name` is the plain name of its path."""
    if name is not None and not event.extensions and event.data.__class__ is dict:
        value = event.data.get(name)
        return MISSING if value is None else value
    return EventScope(event).lookup(path)


def in_units(value: float) -> int:
    """A finite real as a whole number of units, each the smallest real."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (1 - SMALLEST_POWER - denominator.bit_length())


class Tally:
    """One aggregate over one stretch."""

    __slots__ = ("_function", "_name", "_path")

    def __init__(self, asked: AskedAggregate, path: tuple[str, ...]) -> None:
        self._function, self._path = asked.function, path
        self._name = plain_name(path)
        self.clear()

    def clear(self) -> None:
        """Be over no events."""
        raise NotImplementedError

    def push(self, linked: Linked) -> None:
        value = value_in(linked[1], self._name, self._path)
        if value is not MISSING:
            self._take_in(value, linked)

    def result(self) -> Any:
        """The value, or the `FaultError` that there is instead."""
        try:
            return self._result()
        except FaultError as fault:
            return fault

    def held(self) -> Iterator[Linked]:
        """The events from which it follows."""
        return iter(())

    def saved(self) -> SavedSum | None:
        """What does not follow from events that are held."""
        return None

    def _take_in(self, value: Any, linked: Linked) -> None:
        raise NotImplementedError

    def _result(self) -> Any:
        raise NotImplementedError


class CountTally(Tally):
    __slots__ = ("count",)

    def clear(self) -> None:
        self.count = 0

    def push(self, linked: Linked) -> None:  # noqa: ARG002
        self.count += 1

    def _result(self) -> Any:
        return self.count


class SumTally(Tally):
    """Integers and reals apart, these in units of the smallest one."""

    __slots__ = ("_fault", "_has_reals", "_parts", "_present", "_whole")

    def clear(self) -> None:
        self._present = self._whole = self._parts = 0
        self._has_reals = False
        self._fault = ""

    def _take_in(self, value: Any, linked: Linked) -> None:  # noqa: ARG002
        self._present += 1
        if kind_of(value) not in NUMBERS:
            self._fault = "cast"
        elif isinstance(value, int):
            self._whole += value
        elif math.isfinite(value):
            self._has_reals = True
            self._parts += in_units(value)
        else:
            self._has_reals = True
            self._fault = self._fault or "math"

    def _result(self) -> Any:
        if not self._present:
            raise FaultError("missingAttribute", False)
        if self._fault:
            raise FaultError("cast", 0) if self._fault == "cast" else FaultError("math", 0.0)
        if not self._has_reals:
            if not SMALLEST_INTEGER <= self._whole <= LARGEST_INTEGER:
                raise FaultError("math", 0)
            return self._whole
        try:
            return ((self._whole << -SMALLEST_POWER) + self._parts) / UNITS_OF_ONE
        except OverflowError:
            raise FaultError("math", 0.0) from None

    def saved(self) -> SavedSum:
        fraction, power = reduced(self._parts, SMALLEST_POWER)
        whole = as_bytes(self._whole)
        return SavedSum(self._present, whole, fraction, power, self._has_reals, self._fault)

    def restore(self, saved: SavedSum) -> None:
        self._present, self._whole = saved.present, saved.whole_number
        self._parts = saved.numerator << (saved.power - SMALLEST_POWER)
        self._has_reals = saved.reals or bool(saved.fraction)
        self._fault = saved.fault


class ExtremeTally(Tally):
    """`min` or `max`; of equal values the first, as they may be two zeros.

    The first event whose value has no order with the others is held, too; and what was the best
    when the first came that is no number, since the first value of all stays if it is none.
    """

    __slots__ = ("_before", "_best", "_event", "_fault", "_odd")

    def clear(self) -> None:
        self._best: Any = None
        self._event: Linked | None = None
        self._before: Linked | None = None
        self._odd: Linked | None = None
        self._fault: FaultError | TypeError | None = None

    def _take_in(self, value: Any, linked: Linked) -> None:
        if kind_of(value) not in ORDERED:
            if not isinstance(self._fault, FaultError):
                self._odd, self._fault = linked, FaultError("cast", 0)
            return
        if self._event is not None:
            try:
                if not (value > self._best if self._function == "MAX" else value < self._best):
                    if value != value:
                        self._before = self._before or self._event
                    return
            except TypeError as error:
                if self._fault is None:
                    self._odd, self._fault = linked, error
                return
        self._best, self._event = value, linked

    def _result(self) -> Any:
        if self._fault is not None:
            raise self._fault
        if self._event is None:
            raise FaultError("missingAttribute", False)
        return self._best

    def held(self) -> Iterator[Linked]:
        return (each for each in (self._event, self._before, self._odd) if each is not None)


class EndTally(Tally):
    """`first` or `last` of the values that are there."""

    __slots__ = ("_event", "_value")

    def clear(self) -> None:
        self._value: Any = None
        self._event: Linked | None = None

    def _take_in(self, value: Any, linked: Linked) -> None:
        if self._event is None or self._function == "LAST":
            self._value, self._event = value, linked

    def _result(self) -> Any:
        if self._event is None:
            raise FaultError("missingAttribute", False)
        return self._value

    def held(self) -> Iterator[Linked]:
        return (each for each in (self._event,) if each is not None)


_KINDS: Mapping[str, Callable[[AskedAggregate, tuple[str, ...]], Tally]] = {
    "COUNT": CountTally,
    "FIRST": EndTally,
    "LAST": EndTally,
    "MAX": ExtremeTally,
    "MIN": ExtremeTally,
    "SUM": SumTally,
}


def tally(asked: AskedAggregate, path: tuple[str, ...]) -> Tally:
    """The aggregate over no events yet; `path` is the name of the attribute."""
    return _KINDS[asked.function](asked, path)

"""Filters as boxes of numbers: which of very many may contain another, or lie in it.

In come filters with their witnesses; each has a *box*, the range of numbers that every match has
for a name, and its *corners*, the least and the greatest number of its witnesses. Both stand in
arrays, a column a name, so that a question costs some compiled comparisons of columns and no visit
of a filter. What has no number (text, which CESQL may cast) fits every box; names beyond
`MOST_NAMES` narrow nothing. Answers are candidates: whether filters match is asked elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ensue.events.event import Event
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.lang.expressions.tree import Comparison, Expression, Literal, Name
from ensue.lang.expressions.values import EXACT_IN_DOUBLES
from ensue.subscriptions import Filter
from ensue.subscriptions.implying import conjuncts_of

Parts = tuple[str, ...]
Bounds = tuple[float, float]
Slots = NDArray[np.intp]

MOST_NAMES: Final = 16
_INFINITY: Final = math.inf
_ANYTHING: Final = (-_INFINITY, _INFINITY)
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(slots=True)
class _Column:
    """Bounds and corners of one name, by the slots of filters."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    least: NDArray[np.float64]
    greatest: NDArray[np.float64]

    @classmethod
    def of(cls, size: int) -> _Column:
        below, above = np.full(size, -_INFINITY), np.full(size, _INFINITY)
        # A corner that has no such name lies in no box that asks for it.
        return cls(below, above, below.copy(), above.copy())

    def put(self, slot: int, bounds: Bounds, corners: Bounds) -> None:
        self.low[slot], self.high[slot] = bounds
        self.least[slot], self.greatest[slot] = corners

    def grow(self, size: int) -> None:
        longer = _Column.of(size)
        for name in ("low", "high", "least", "greatest"):
            old = getattr(self, name)
            getattr(longer, name)[: len(old)] = old
            setattr(self, name, getattr(longer, name))


class Boxes:
    """Filters by slots, which are given again when their filters are gone."""

    def __init__(self) -> None:
        self._columns: dict[Parts, _Column] = {}
        self._slots: dict[Filter, int] = {}
        self._filters: list[Filter | None] = []
        self._free: list[int] = []
        self._size = 64
        self._is_taken = np.zeros(self._size, np.bool_)

    def add(self, added: Filter, witnesses: Sequence[Event]) -> None:
        slot = self._free.pop() if self._free else len(self._filters)
        if slot == len(self._filters):
            self._filters.append(None)
        if slot >= self._size:
            self._size *= 2
            self._is_taken = np.concatenate((self._is_taken, np.zeros_like(self._is_taken)))
            for column in self._columns.values():
                column.grow(self._size)
        self._slots[added] = slot
        self._is_taken[slot] = True
        self._filters[slot] = added
        bounds = bounds_of(added.expression)
        corners = _corners_of(witnesses, {*bounds, *self._columns})
        for name in bounds:
            if name not in self._columns and len(self._columns) < MOST_NAMES:
                self._add_column(name)
        for name, column in self._columns.items():
            column.put(slot, bounds.get(name, _ANYTHING), corners.get(name, _ANYTHING))

    def remove(self, removed: Filter) -> None:
        slot = self._slots.pop(removed)
        self._filters[slot] = None
        self._is_taken[slot] = False
        self._free.append(slot)

    def containing(self, witnesses: Sequence[Event]) -> list[Filter]:
        """Filters in whose boxes all of some publications may lie."""
        found = self._all()
        for name, column in self._columns.items():
            least, greatest = _corners_of(witnesses, {name}).get(name, _ANYTHING)
            found = found[(column.low[found] <= least) & (column.high[found] >= greatest)]
        return self._named(found)

    def inside(self, expression: Expression) -> list[Filter] | None:
        """Filters whose witnesses may have all the numbers asked for; None if none is asked for."""
        bounds = [each for each in bounds_of(expression).items() if each[0] in self._columns]
        if not bounds:
            return None
        found = self._all()
        for name, (low, high) in bounds:
            column = self._columns[name]
            found = found[(column.least[found] >= low) & (column.greatest[found] <= high)]
        return self._named(found)

    def _add_column(self, name: Parts) -> None:
        """A column for what is there: the names of filters that were added before count too."""
        column = self._columns[name] = _Column.of(self._size)
        # Filters from before ask nothing of this name. Whether their witnesses have it is unknown.
        column.least[: len(self._filters)] = _INFINITY
        column.greatest[: len(self._filters)] = -_INFINITY

    def _all(self) -> Slots:
        return np.flatnonzero(self._is_taken)

    def _named(self, slots: Slots) -> list[Filter]:
        found = (self._filters[each] for each in slots.tolist())
        return [each for each in found if each is not None]


def bounds_of(expression: Expression) -> dict[Parts, Bounds]:
    """The range of numbers that each name must lie in for a filter to match, both ends included."""
    found: dict[Parts, Bounds] = {}
    for each in conjuncts_of(expression):
        match each:
            case Comparison(Name(parts), ((sign, Literal(value)),)):
                bounds = _bounds(sign, value)
            case Comparison(Literal(value), ((sign, Name(parts)),)):
                # In `5 = x` the kind of `x` decides, which need not be a number.
                bounds = _bounds(_MIRRORED.get(sign, ""), value)
            case _:
                continue
        if bounds is not None:
            low, high = found.get(parts, _ANYTHING)
            found[parts] = max(low, bounds[0]), min(high, bounds[1])
    return found


def are_disjoint(one: Expression, other: Expression) -> bool:
    """Whether two filters ask for numbers of one name that no event has."""
    bounds, others = bounds_of(one), bounds_of(other)
    return any(
        low > others[name][1] or high < others[name][0]
        for name, (low, high) in bounds.items()
        if name in others
    )


def _bounds(sign: str, value: Any) -> Bounds | None:
    if type(value) not in (int, float) or not abs(value) < EXACT_IN_DOUBLES:
        return None
    match sign:
        case "<" | "<=":
            return -_INFINITY, value
        case ">" | ">=":
            return value, _INFINITY
        case "=":
            return value, value
        case _:
            return None


def _corners_of(witnesses: Sequence[Event], names: set[Parts]) -> Mapping[Parts, Bounds]:
    """The least and the greatest number of some publications, for names that all of them have."""
    scopes = [EventScope(each) for each in witnesses]
    found: dict[Parts, Bounds] = {}
    for name in names:
        values = [scope.lookup(name) for scope in scopes]
        if MISSING in values or None in values:
            continue
        numbers = [
            each for each in values if type(each) in (int, float) and abs(each) < EXACT_IN_DOUBLES
        ]
        # What may be cast to any number fits every box, and so does no witness at all.
        found[name] = min(numbers, default=_INFINITY), max(numbers, default=-_INFINITY)
    return found

"""An interval tree for the ranges on one name: it finds the intervals that contain a value.

Intervals are sorted by their lower ends, with the largest upper end of every subtree, so that a
search costs a logarithm and the results. New intervals stand behind, unsorted, until there are
many; removed entries are left out when intervals are sorted again. Ends are doubles, rounded
outwards, and belong to the interval: a search finds a superset, which is checked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensue.lang.matching.packed.kernels import fill_highest

FEWEST_UNSORTED = 256


class Intervals:
    def __init__(self) -> None:
        self._low = np.empty(16, np.float64)
        self._high = np.empty(16, np.float64)
        self._entries = np.empty(16, np.int32)
        self._highest = np.empty(16, np.float64)
        self._sorted = 0
        self._count = 0
        self._removed: set[int] = set()
        self._released: list[int] = []
        self._least, self._most = math.inf, -math.inf

    def __len__(self) -> int:
        return self._count - len(self._removed)

    def share(self, low: float, high: float) -> float:
        """An estimate of the share of values in an interval, by the ends of all intervals."""
        if self._least >= self._most:
            return 0.5
        span = self._most - self._least
        inside = min(high, self._most) - max(low, self._least)
        return min(0.85, max(1e-4, inside / span))

    def add(self, entry: int, low: float, high: float) -> None:
        for end in (low, high):
            if math.isfinite(end):
                self._least, self._most = min(self._least, end), max(self._most, end)
        if self._count == self._low.size:
            self._grow()
        place = self._count
        self._low[place], self._high[place], self._entries[place] = low, high, entry
        self._count += 1

    def remove(self, entry: int) -> None:
        self._removed.add(entry)

    def take_removed(self) -> list[int]:
        """The removed entries that no interval refers to any more."""
        if len(self._removed) > max(FEWEST_UNSORTED, self._count // 4) or not len(self):
            self._put_in_order()
        gone, self._released = self._released, []
        return gone

    def arrays(self) -> tuple[Any, ...]:
        """The arrays in which the loops search for intervals with a value.

        Removed entries may still be found, and never hold.
        """
        self.settle()
        return self._low, self._high, self._highest, self._entries, self._sorted, self._count

    def settle(self) -> None:
        """Sort the intervals if there are many new ones."""
        if self._count - self._sorted > max(FEWEST_UNSORTED, self._sorted // 16):
            self._put_in_order()

    def _put_in_order(self) -> None:
        entries = self._entries[: self._count]
        kept = np.arange(self._count)
        if self._removed:
            gone = np.fromiter(self._removed, np.int32, len(self._removed))
            kept = np.flatnonzero(~np.isin(entries, gone))
        order = kept[np.argsort(self._low[kept], kind="stable")]
        self._released += self._removed
        self._removed.clear()
        size = order.size
        for name in ("_low", "_high", "_entries"):
            array = getattr(self, name)
            array[:size] = array[order]
        self._count = self._sorted = size
        fill_highest(self._high[:size], self._highest)

    def _grow(self) -> None:
        for name in ("_low", "_high", "_entries", "_highest"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.empty_like(array)]))


def outwards(low: int | float, high: int | float) -> tuple[float, float]:
    """An interval of doubles that contains all numbers between two ends."""
    lower, upper = float(low), float(high)
    if isinstance(low, int):
        lower = math.nextafter(lower, -math.inf)
    if isinstance(high, int):
        upper = math.nextafter(upper, math.inf)
    return lower, upper

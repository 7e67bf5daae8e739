"""Integers to small numbers: a compiled hash table.

In come integers, many at a time; out goes a number for each, from 0 in the order in which values
first come. The numbers of texts, and of keys of any kind, are for `ensue.engine.batch.input.keys`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.core.jit import compiled, inlined

Rows = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Instants = npt.NDArray[np.int64]
"""Microseconds since 1970."""
Mask = npt.NDArray[np.bool_]

EVERYTHING: Rows = np.empty(0, np.int64)
"""Stands for all rows where a kernel is given rows."""

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@inlined
def mixed_with(mixed: Any, word: Any) -> Any:
    """A hash, mixed with one more word."""
    # The last characters are the high bits of a word: they go down before the product goes up.
    mixed ^= word
    mixed = (mixed ^ (mixed >> np.uint64(32))) * MULTIPLIER
    return mixed ^ (mixed >> _SHIFT)


@compiled
def number_integers(
    values: Any, rows: Any, out: Any, first: int, slots: Any, known: Any, count: int
) -> Any:
    """Give each distinct integer a number, in the order in which they come."""
    mask = np.uint64(slots.size - 1)
    everything = rows.size == 0
    for at in range(first, out.size):
        value = values[at if everything else rows[at]]
        mixed = np.uint64(value) * MULTIPLIER
        slot = (mixed ^ (mixed >> np.uint64(32))) & mask
        found = -1
        while slots[slot] != 0:
            if known[slots[slot] - 1] == value:
                found = slots[slot] - 1
                break
            slot = (slot + np.uint64(1)) & mask
        if found < 0:
            if 2 * (count + 1) > slots.size or count + 1 > known.size:
                return at, count
            known[count] = value
            slots[slot] = count + 1
            found = count
            count += 1
        out[at] = found
    return out.size, count


@compiled
def place_integers(slots: Any, known: Any, count: int) -> None:
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        mixed = np.uint64(known[number]) * MULTIPLIER
        slot = (mixed ^ (mixed >> np.uint64(32))) & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number + 1


class IntegerNumbers:
    """A hash table from integers to numbers."""

    def __init__(self) -> None:
        self.count = 0
        self._slots = np.zeros(1 << 10, np.int32)
        self._known = np.zeros(1 << 9, np.int64)

    def number(self, values: npt.NDArray[np.int64], rows: Rows = EVERYTHING) -> Numbers:
        out = np.empty(rows.size or len(values), np.int32)
        at = 0
        while out.size:
            at, self.count = number_integers(
                values, rows, out, at, self._slots, self._known, self.count
            )
            if at == out.size:
                break
            if 2 * (self.count + 1) > self._slots.size:
                self._slots = np.zeros(self._slots.size * 2, np.int32)
                place_integers(self._slots, self._known, self.count)
            self._known = taller(self._known, self._slots.size // 2)
        return out

    def values(self) -> npt.NDArray[np.int64]:
        return self._known[: self.count]


def taller(array: Any, size: int, fill: Any = 0) -> Any:
    """An array with at least so many rows; new rows hold `fill`."""
    shape = (max(size, len(array)), *array.shape[1:])
    # The system hands out zeros without touching memory until it is written.
    larger = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    larger[: len(array)] = array
    return larger


def distinct(numbers: Rows) -> Rows:
    """The numbers in their order, each once."""
    # `np.unique` puts integers into a hash table, which takes a hundred times as long for millions.
    held = np.sort(numbers)
    is_new = np.ones(len(held), np.bool_)
    np.not_equal(held[1:], held[:-1], out=is_new[1:])
    return held[is_new]

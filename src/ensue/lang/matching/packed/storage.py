"""The conjunctions of an index in arrays, for the compiled loops.

An entry is a conjunction at one place: a row of its atoms, the number of its predicate, and its
neighbours in its bucket. Buckets are doubly linked lists, so that entries are added and removed in
constant time. Numbers of entries and buckets, and places in `spill`, are reused. The entries of one
predicate are linked too (`sibling`), for its removal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.lang.matching.attribute import Table
from ensue.lang.matching.intervals import Intervals
from ensue.lang.matching.packed import kernels as k

_PLACES = tuple(k.FIRST_ATOM + k.ATOM * each for each in range(k.INLINE))


class Packed(NamedTuple):
    """An atom for the loops: a cell lies between two ends or, if `turned`, does not."""

    cell: int
    turned: bool
    low: float
    high: float


class Storage:
    def __init__(self) -> None:
        self.heads = np.empty(16, np.int32)
        self.rows = np.zeros((16, k.ROW), np.int64)
        self.spill = np.zeros((16, k.ATOM), np.float64)
        self.before = np.empty(16, np.int32)
        self.bucket = np.empty(16, np.int32)
        self.predicate = np.empty(16, np.int32)
        self.sibling = np.empty(16, np.int32)
        self.real_rows = self.rows.view(np.float64)
        self._homes: list[tuple[Table, Any] | None] = []
        self._ranges: dict[int, Intervals] = {}
        self._free_entries: list[int] = []
        self._free_buckets: list[int] = []
        self._free_stretches: dict[int, list[int]] = {}
        self.entries = 0
        self._atoms = 0

    def arrays(self) -> tuple[Any, ...]:
        """The arrays in which the loops check an entry."""
        return self.rows, self.real_rows, self.spill

    def add(self, predicate: int, sibling: int, atoms: Sequence[Packed], asks_more: bool) -> int:
        """A new entry without a place."""
        if self._free_entries:
            entry = self._free_entries.pop()
        else:
            entry = self.entries
            self.entries += 1
            if entry == len(self.rows):
                self._grow("rows", "before", "bucket", "predicate", "sibling")
                self.real_rows = self.rows.view(np.float64)
        self.predicate[entry] = predicate
        self.sibling[entry] = sibling
        self.bucket[entry] = self.before[entry] = -1
        further = len(atoms) - k.INLINE
        begin = self._stretch(further) if further > 0 else 0
        marks = k.ASKS_MORE if asks_more else 0
        row, reals = self.rows[entry], self.real_rows[entry]
        row[k.FOLLOWING], row[k.HEAD] = -1, len(atoms) | marks | begin << 16
        for place, atom in zip(_PLACES, atoms, strict=False):
            row[place] = atom.cell << 1 | atom.turned
            reals[place + 1], reals[place + 2] = atom.low, atom.high
        for at, atom in enumerate(atoms[k.INLINE :], begin):
            self.spill[at] = atom.cell << 1 | atom.turned, atom.low, atom.high
        return entry

    def atoms_of(self, entry: int) -> Iterator[Packed]:
        head = int(self.rows[entry, k.HEAD])
        count, begin = head & 255, head >> 16
        reals = self.real_rows[entry].tolist()
        for place in _PLACES[:count]:
            meta = int(self.rows[entry, place])
            yield Packed(meta >> 1, bool(meta & 1), reals[place + 1], reals[place + 2])
        for meta, low, high in self.spill[begin : begin + max(0, count - k.INLINE)].tolist():
            yield Packed(int(meta) >> 1, bool(int(meta) & 1), low, high)

    def _stretch(self, count: int) -> int:
        free = self._free_stretches.get(count)
        if free:
            return free.pop()
        begin = self._atoms
        self._atoms += count
        while self._atoms > len(self.spill):
            self._grow("spill")
        return begin

    def _grow(self, *names: str) -> None:
        for name in names:
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.empty_like(array)]))

    def wait_in(self, entry: int, table: Table, key: Any) -> None:
        """Put an entry at the front of the bucket under a key of a table."""
        bucket = table.get(key)
        if bucket is None:
            if self._free_buckets:
                bucket = self._free_buckets.pop()
                self._homes[bucket] = (table, key)
            else:
                bucket = len(self._homes)
                self._homes.append((table, key))
                if bucket == self.heads.size:
                    self._grow("heads")
            table[key] = bucket
            self.heads[bucket] = -1
        head = int(self.heads[bucket])
        self.rows[entry, k.FOLLOWING] = head
        if head >= 0:
            self.before[head] = entry
        self.heads[bucket] = entry
        self.bucket[entry] = bucket

    def wait_for_range(self, entry: int, ranges: Intervals, low: float, high: float) -> None:
        ranges.add(entry, low, high)
        self._ranges[entry] = ranges

    def remove(self, entry: int) -> None:
        """Remove an entry from its place; its number is reused."""
        ranges = self._ranges.get(entry)
        if ranges is None:
            self._unlink(entry)
            self._release(entry)
            return
        # The interval may still be found until intervals are sorted again.
        self.rows[entry, k.HEAD] |= k.REMOVED
        ranges.remove(entry)
        for each in ranges.take_removed():
            del self._ranges[each]
            self._release(each)

    def _unlink(self, entry: int) -> None:
        bucket = int(self.bucket[entry])
        after, before = int(self.rows[entry, k.FOLLOWING]), int(self.before[entry])
        if after >= 0:
            self.before[after] = before
        if before >= 0:
            self.rows[before, k.FOLLOWING] = after
            return
        self.heads[bucket] = after
        if after < 0:
            home = self._homes[bucket]
            assert home is not None
            table, key = home
            del table[key]
            self._homes[bucket] = None
            self._free_buckets.append(bucket)

    def _release(self, entry: int) -> None:
        self._free_entries.append(entry)
        head = int(self.rows[entry, k.HEAD])
        further = (head & 255) - k.INLINE
        if further > 0:
            self._free_stretches.setdefault(further, []).append(head >> 16)

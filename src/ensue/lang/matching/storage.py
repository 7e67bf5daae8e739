"""The conjunctions of an index in arrays, as the compiled loops read them.

An entry is a conjunction at one place: the number of its predicate, its atoms in a stretch of
arrays, and its neighbours in the bucket it waits in. Buckets are doubly linked, so that an entry
comes and goes at no cost. Numbers of entries, buckets and stretches are used again. The entries of
one predicate are linked too (`sibling`), for its removal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.lang.matching import kernels as k
from ensue.lang.matching.attribute import Table
from ensue.lang.matching.intervals import Intervals

NOTHING = k.ON_NOTHING << 4
"""The form of an atom that never holds: entries are marked by it until no interval names them."""


class Packed(NamedTuple):
    """An atom as the loops read it."""

    slot: int
    form: int
    constant: int
    real: float


class Storage:
    def __init__(self) -> None:
        self.heads = np.empty(16, np.int32)
        self.following = np.empty(16, np.int32)
        self.before = np.empty(16, np.int32)
        self.bucket = np.empty(16, np.int32)
        self.predicate = np.empty(16, np.int32)
        self.sibling = np.empty(16, np.int32)
        self.begins = np.empty(16, np.int32)
        self.counts = np.empty(16, np.int16)
        self.slots = np.empty(16, np.int32)
        self.forms = np.empty(16, np.uint8)
        self.constants = np.empty(16, np.int64)
        self.reals = np.empty(16, np.float64)
        self._homes: list[tuple[Table, Any] | None] = []
        self._ranges: dict[int, Intervals] = {}
        self._free_entries: list[int] = []
        self._free_buckets: list[int] = []
        self._free_stretches: dict[int, list[int]] = {}
        self.entries = 0
        self._atoms = 0

    def atoms(self) -> tuple[Any, ...]:
        """What the loops need to check an entry."""
        return self.begins, self.counts, self.slots, self.forms, self.constants, self.reals

    def add(self, predicate: int, sibling: int, atoms: Sequence[Packed]) -> int:
        """A new entry, which waits nowhere yet."""
        if self._free_entries:
            entry = self._free_entries.pop()
        else:
            entry = self.entries
            self.entries += 1
            if entry == self.following.size:
                self._grow(
                    *("following", "before", "bucket", "predicate", "sibling", "begins", "counts")
                )
        self.predicate[entry] = predicate
        self.sibling[entry] = sibling
        self.bucket[entry] = self.following[entry] = self.before[entry] = -1
        count = len(atoms)
        self.counts[entry] = count
        self.begins[entry] = begin = self._stretch(count)
        for at, atom in enumerate(atoms, begin):
            self.slots[at], self.forms[at], self.constants[at], self.reals[at] = atom
        return entry

    def _stretch(self, count: int) -> int:
        free = self._free_stretches.get(count)
        if free:
            return free.pop()
        begin = self._atoms
        self._atoms += count
        while self._atoms > self.slots.size:
            self._grow("slots", "forms", "constants", "reals")
        return begin

    def _grow(self, *names: str) -> None:
        for name in names:
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.empty_like(array)]))

    def wait_in(self, entry: int, table: Table, key: Any) -> None:
        """Put an entry at the front of the bucket that a table has under a key."""
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
        self.following[entry] = head
        if head >= 0:
            self.before[head] = entry
        self.heads[bucket] = entry
        self.bucket[entry] = bucket

    def wait_for_range(self, entry: int, ranges: Intervals, low: float, high: float) -> None:
        ranges.add(entry, low, high)
        self._ranges[entry] = ranges

    def remove(self, entry: int) -> None:
        """Take an entry away from where it waits; its number is used again."""
        ranges = self._ranges.get(entry)
        if ranges is None:
            self._unlink(entry)
            self._release(entry)
            return
        # The interval may come up until intervals are put in order again.
        self.forms[self.begins[entry]] = NOTHING
        ranges.remove(entry)
        for each in ranges.take_removed():
            del self._ranges[each]
            self._release(each)

    def _unlink(self, entry: int) -> None:
        bucket = int(self.bucket[entry])
        after, before = int(self.following[entry]), int(self.before[entry])
        if after >= 0:
            self.before[after] = before
        if before >= 0:
            self.following[before] = after
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
        count = int(self.counts[entry])
        if count:
            self._free_stretches.setdefault(count, []).append(int(self.begins[entry]))

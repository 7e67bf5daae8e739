"""What many rules read of events, by the lists that the events are in.

In come the lists that the rows of a batch are in (`row_lists`); out goes a number for each row.
Rows in the same lists are one *combination*, of which it is worked out once what each rule reads of
it: a *letter*, which has a bit for each of its ports. Rules of one word and one letter are one
entry.
Past `MOST_COMBINATIONS` all of them are forgotten, and worked out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch import slice_kernels
from ensue.engine.batch.row_lists import RowNumbers
from ensue.engine.core.numbering import Numbers, taller

MOST_COMBINATIONS = 1 << 10
FEWEST_COMBINATIONS = 16
MOST_ENTRIES = 1 << 20
"""Past so many, what is known of combinations is forgotten, and worked out again."""


class Combinations:
    """What rules read of events, by the lists that the events are in."""

    def __init__(
        self, lists: npt.NDArray[np.int64], list_count: int, most: int | None = None
    ) -> None:
        rules, ports = lists.shape
        order = np.argsort(lists.ravel(), kind="stable")
        counts = np.bincount(lists.ravel(), minlength=list_count)
        self._reader_from = np.r_[0, np.cumsum(counts)].astype(np.int64)
        self._readers = np.column_stack([order // ports, order % ports])
        self._letters = np.zeros(rules, np.uint8)
        self._words = -(-list_count // 64)
        self.forgotten = 0
        self._limit = MOST_COMBINATIONS if most is None else most
        self._count = 0
        self.entry_from = np.zeros(1, np.int64)
        self._most = self._room_for(rules)
        self.forget()

    def _room_for(self, entries: int) -> int:
        """How many combinations may be known, if each has so many entries."""
        return max(FEWEST_COMBINATIONS, min(self._limit, MOST_ENTRIES // max(1, entries)))

    @property
    def count(self) -> int:
        return self._count

    def forget(self) -> None:
        self.forgotten += 1
        if self._count:
            # Most have far fewer entries than there are rules.
            self._most = self._room_for(-(-int(self.entry_from[self._count]) // self._count))
        self._count = 0
        self._done = 0
        self._slots = np.zeros(1 << (2 * self._most).bit_length(), np.int32)
        self._known = np.zeros((self._most, self._words), np.uint64)
        self._hashes = np.zeros(self._most, np.uint64)
        self.entry_from = np.zeros(self._most + 1, np.int64)
        self.words = np.zeros(0, np.int32)
        self.letters = np.zeros(0, np.uint8)
        self.masks = np.zeros(0, np.uint64)
        self.list_from = np.zeros(self._most + 1, np.int64)
        self.lists = np.zeros(0, np.int32)

    def mark(self, lists: Sequence[RowNumbers], rows: int) -> Any:
        """For each row, the lists that it is in, as bits."""
        marks = np.zeros((rows, self._words), np.uint64)
        for number, each in enumerate(lists):
            slice_kernels.mark_rows(marks, each, number)
        return marks

    def number(self, marks: Any, first: int, out: Numbers) -> int:
        """Number the rows from `first` on, as far as there is room; returns how far that was."""
        if self._count == self._most:
            self.forget()
        end, self._count = slice_kernels.number_marks(
            marks, first, out, self._slots, self._known, self._hashes, self._count
        )
        while True:
            self._done = slice_kernels.work_out(
                self._known, self._done, self._count, self._reader_from, self._readers,
                self._letters, self.entry_from, self.words, self.letters, self.masks,
                self.list_from, self.lists,
            )  # fmt: skip
            if self._done == self._count:
                return int(end)
            self._make_room()

    def _make_room(self) -> None:
        room = int(self.entry_from[self._done]) + len(self._letters)
        self.words, self.letters, self.masks = (
            taller(each, 2 * room, 0) for each in (self.words, self.letters, self.masks)
        )
        room = int(self.list_from[self._done]) + 64 * self._words
        self.lists = taller(self.lists, 2 * room, 0)

    def letters_in_use(self) -> set[int]:
        return {int(each) for each in np.unique(self.letters[: self.entry_from[self._count]])}

    def count_rules(self, numbers: Numbers, counts: Any) -> None:
        """Count for each rule the rows that it reads."""
        for number, times in enumerate(np.bincount(numbers).tolist()):
            if times:
                here = slice(self.entry_from[number], self.entry_from[number + 1])
                slice_kernels.count_rules(self.words[here], self.masks[here], times, counts)

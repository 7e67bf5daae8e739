"""Which rules read an event, and what it is to each, by the lists that the event is in.

In come the lists that the rows of a batch are in (`row_lists`); out goes a number for each row.
Rows in the same lists are one *combination*, of which it is worked out once which rules read it,
and by which *letter*: a bit for each port of the rule that the event matches. Past a number of
combinations all of them are forgotten, and worked out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.row_lists import RowNumbers
from ensue.engine.batch.kernels import row_combinations
from ensue.engine.core.numbering import Numbers, taller
from ensue.engine.core.stepping.arrays import Visits

MOST_COMBINATIONS = 1 << 14
FEWEST_COMBINATIONS = 16
MOST_VISITS = 1 << 24
"""Past so many visits of all combinations, fewer combinations are kept."""


class Combinations:
    """`lists` are those of the ports of each rule; a number past all lists stands for no port."""

    def __init__(self, lists: npt.NDArray[np.int64], list_count: int) -> None:
        rules, ports = lists.shape
        order = np.argsort(lists.ravel(), kind="stable")
        counts = np.bincount(lists.ravel(), minlength=list_count)
        self._reader_from = np.r_[0, np.cumsum(counts)].astype(np.int64)
        self._readers = np.column_stack([order // ports, order % ports])
        self._letters = np.zeros(rules, np.uint8)
        self._words = -(-list_count // 64)
        self.most = MOST_COMBINATIONS
        self._count = 0
        self.visits = Visits(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))
        self._forget(rules)

    def _forget(self, visits: int) -> None:
        """Begin anew, with room for as many combinations as fit if each has so many visits."""
        self._room = max(FEWEST_COMBINATIONS, min(self.most, MOST_VISITS // max(1, visits)))
        self._count = self._listed = 0
        self._slots = np.zeros(1 << (2 * self._room).bit_length(), np.int32)
        self._known = np.zeros((self._room, self._words), np.uint64)
        self._hashes = np.zeros(self._room, np.uint64)
        begins = np.zeros(self._room + 1, np.int64)
        self.visits = Visits(begins, self.visits.rules, self.visits.letters)

    def mark(self, lists: Sequence[RowNumbers], rows: int) -> Any:
        """For each row, the lists that it is in, as bits."""
        marks = np.zeros((rows, self._words), np.uint64)
        for number, each in enumerate(lists):
            row_combinations.mark_rows(marks, each, number)
        return marks

    def number(self, marks: Any, first: int, out: Numbers) -> int:
        """Number the rows from `first` on, as far as there is room; returns how far that was."""
        if self._count == self._room:
            self._forget(-(-int(self.visits.begins[self._count]) // self._count))
        end, self._count = row_combinations.number_marks(
            marks, first, out, self._slots, self._known, self._hashes, self._count
        )
        while self._listed < self._count:
            self._listed = row_combinations.list_visits(
                self._known, self._listed, self._count, self._reader_from, self._readers,
                self._letters, self.visits,
            )  # fmt: skip
            if self._listed < self._count:
                begins, rules, letters = self.visits
                room = 2 * (int(begins[self._listed]) + len(self._letters))
                self.visits = Visits(begins, taller(rules, room), taller(letters, room))
        return int(end)

    def count_without_key(
        self, numbers: Numbers, keys: Numbers, first: int, end: int, counts: Any
    ) -> None:
        """Count for each rule the rows that it would read, if they had a key."""
        begins, rules, _ = self.visits
        row_combinations.count_without_key(numbers, keys, first, end, begins, rules, counts)

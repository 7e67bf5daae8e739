"""The arrays that scanners of text fill in: the records of a block, and the values in them."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt


class Records(NamedTuple):
    """For each record: its begin and end, its line, a flag and notes of the scanner."""

    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    flagged: npt.NDArray[np.uint8]
    notes: npt.NDArray[np.uint8]

    @classmethod
    def room(cls, size: int) -> Self:
        """Room for so many records."""
        begins, ends, lines = np.empty((3, size), np.int64)
        return cls(begins, ends, lines, *np.empty((2, size), np.uint8))

    def first(self, count: int) -> Self:
        """The first `count` records."""
        begins, ends, lines = self.begins[:count], self.ends[:count], self.lines[:count]
        return type(self)(begins, ends, lines, self.flagged[:count], self.notes[:count])


class ScannedValues(NamedTuple):
    """For each slot and record, the kind of the value, its begin and its end.

    In CSV the kind is 1 for a cell in which quotes are doubled.
    """

    kinds: npt.NDArray[Any]
    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @classmethod
    def room(cls, slots: int, size: int) -> Self:
        """Room for the values of so many records, all of them absent."""
        begins, ends = np.zeros((2, slots, size), np.int64)
        return cls(np.zeros((slots, size), np.uint8), begins, ends)

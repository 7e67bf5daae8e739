"""The events that a rule has read since it last cleared up, side by side in one array.

A row has all that loops ask of one event: when it came, which ports it matches, and for rules with
aggregates (`counting`) the next event of its key and its values. An event is addressed by the
number of its reading, less the number of the first reading in the store.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.column import Rows
from ensue.engine.core.numbering import taller

TIME, LETTER = 0, 1
_LARGE = 1 << 16
"""After a batch of so many events more of that size are expected, and have room at once."""
_ROOM_FOR_LARGE = 1_500_000


class Events:
    """A store of events, `width` numbers each; the first event has the number `base`."""

    def __init__(self, width: int, base: int) -> None:
        self.base = base
        self.rows: npt.NDArray[np.int64] = np.zeros((0, width), np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def clear(self, base: int) -> None:
        """Hold nothing, in the same memory; the next event has the number `base`."""
        self.base, self._size = base, 0

    def drop_before(self, first: int) -> None:
        """Drop the events before a number; the others move up, in the same memory."""
        cut = min(max(first - self.base, 0), self._size)
        self._size -= cut
        self.rows[: self._size] = self.rows[cut : cut + self._size]
        self.base += cut

    def add(self, letters: Any, times: Any) -> npt.NDArray[np.int64]:
        """Put events behind the others; returns their rows, to be filled in."""
        size = self._size + len(letters)
        if size > len(self.rows):
            room = max(size, 2 * self._size)
            self.rows = taller(self.rows, max(room, _ROOM_FOR_LARGE * (len(letters) >= _LARGE)))
        added = self.rows[self._size : size]
        added[:, TIME] = times
        added[:, LETTER] = letters.view(np.int64)
        self._size = size
        return added

    def letters(self, numbers: Rows) -> npt.NDArray[np.uint64]:
        return np.asarray(self.rows[numbers - self.base, LETTER], np.uint64)

    def times(self, numbers: Rows) -> npt.NDArray[np.int64]:
        return np.asarray(self.rows[numbers - self.base, TIME])

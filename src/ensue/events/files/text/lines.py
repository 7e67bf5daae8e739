"""The lines of a block of bytes that are not blank, by their places."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ensue.events.files.chunk import Rows

LINE_BREAK, _SPACE = 10, 32

_AT_ONCE = 1 << 18
"""How many bytes are compared at once: few enough to stay in the memory nearest to a processor."""


def places_of(sign: int, data: Any) -> Rows:
    """Where a byte stands in an array of bytes."""
    parts = [
        np.flatnonzero(data[begin : begin + _AT_ONCE] == sign) + begin
        for begin in range(0, len(data), _AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class Lines(NamedTuple):
    """For each line that is not blank: its begin, its end without the line feed, and its number.

    `total` is the number of all lines.
    """

    begins: Rows
    ends: Rows
    numbers: Rows
    total: int

    @classmethod
    def of(cls, block: bytes) -> Lines:
        data = np.frombuffer(block, np.uint8)
        ends = places_of(LINE_BREAK, data)
        if len(block) and block[-1] != LINE_BREAK:
            ends = np.append(ends, len(block))
        total = len(ends)
        begins = np.append(0, ends[:-1] + 1)[:total]
        numbers = np.arange(1, total + 1)
        is_blank = begins == ends
        # Only a line that begins with white space may be nothing else.
        for row in np.flatnonzero(~is_blank & (data[begins] <= _SPACE)):
            is_blank[row] = not block[begins[row] : ends[row]].strip()
        if is_blank.any():
            begins, ends, numbers = begins[~is_blank], ends[~is_blank], numbers[~is_blank]
        return cls(begins, ends, numbers, total)

    def texts(self, block: bytes) -> list[bytes]:
        """The lines themselves."""
        if len(self.begins) == self.total:
            return block.removesuffix(b"\n").split(b"\n") if block else []
        ends = self.ends.tolist()
        return [block[begin:end] for begin, end in zip(self.begins.tolist(), ends, strict=True)]

"""The lines of a block of bytes that are not blank, by their places."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensue.events.files.chunk import Rows

_BREAK, _SPACE = 10, 32


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
        breaks = np.flatnonzero(data == _BREAK)
        begins = np.concatenate([[0], breaks + 1])
        ends = np.append(breaks, len(block))
        if begins[-1] == len(block):
            begins, ends = begins[:-1], ends[:-1]
        total = len(begins)
        numbers = np.arange(1, total + 1)
        is_blank = begins == ends
        # Only a line that begins with white space may be nothing else.
        for row in np.flatnonzero(~is_blank & (data[np.minimum(begins, len(block) - 1)] <= _SPACE)):
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

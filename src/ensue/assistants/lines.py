"""What an assistant sends, as the server reads it: lines with a bound.

Each line is a message, and the library that reads them holds a line as a whole. Bytes pass through
here as they come; at a line beyond the bound the input ends, and with it the server.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, Final

LONGEST_LINE: Final = 16 * 1024 * 1024


class BoundedLines(io.RawIOBase):
    """Bytes of a file descriptor up to a line that is too long; `is_cut` tells of one."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._length = 0
        self.is_cut = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.is_cut:
            return 0
        data = os.read(self._descriptor, len(buffer))
        last = data.rfind(b"\n")
        self._length = self._length + len(data) if last < 0 else len(data) - last - 1
        if self._length > LONGEST_LINE:
            self.is_cut = True
            return 0
        buffer[: len(data)] = data
        return len(data)


def bound_standard_input() -> BoundedLines:
    """Bound the lines that any reader of the standard input in this process reads.

    The descriptor itself leads nowhere then, so that no other process takes a part of it.
    """
    bounded = BoundedLines(os.dup(sys.stdin.fileno()))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(bounded), encoding="utf-8")
    return bounded

"""Records of text files that are too long.

A line that never ends would fill the memory. Readers therefore cut a line to one byte more than
`record_bytes` (`bounds`) and skip its rest; by that length the readers of single records recognise
it, and refuse it (`refusal`). Rows of tables are bounded in `ensue.events.records.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.event import Rejected

_PASSED_OVER = 1 << 20


def problem(bounds: Bounds = BOUNDS) -> str:
    return (
        f"the record is longer than {bounds.record_bytes:,} bytes, the most that one may have; its"
        f" first {bounds.kept_bytes:,} are kept"
    )


def refusal(number: int, raw: bytes, bounds: Bounds = BOUNDS) -> Rejected | None:
    """The refusal of a record that is too long; None for any other."""
    most = bounds.record_bytes
    if len(raw) <= most or len(raw.rstrip(b"\r\n")) <= most:
        return None
    return refused(number, raw, bounds)


def refused(number: int, raw: bytes, bounds: Bounds = BOUNDS) -> Rejected:
    kept = raw[: bounds.kept_bytes].rstrip(b"\r\n")
    return Rejected(number, kept, (problem(bounds),))


def end_of_line_too_far(block: bytes, bounds: Bounds) -> int:
    """The end of the first line with which the first record of a block is too long; -1 if none."""
    most = bounds.record_bytes
    end = block.find(b"\n", most)
    while end >= 0 and len(block[most:end].rstrip(b"\r")) == 0:
        end = block.find(b"\n", end + 1)
    return end


def cut_lines(file: BinaryIO, bounds: Bounds = BOUNDS) -> Iterator[bytes]:
    """The lines of a file, with their endings; an overlong one is cut."""
    cut = bounds.record_bytes + 1
    while line := file.readline(cut):
        if len(line) == cut and not line.endswith(b"\n"):
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(_PASSED_OVER)
            line += b"\n" * (not line.endswith(b"\n"))
        yield line


class LineParts:
    """Complete lines from blocks of bytes. The rest of an overlong line is skipped."""

    def __init__(self, bounds: Bounds = BOUNDS) -> None:
        self._most = bounds.record_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def lines(self, block: bytes) -> list[bytes]:
        """The lines that end in these bytes, with their endings."""
        first, *others = block.split(b"\n")
        self._add(first)
        if not others:
            return []
        *whole, last = others
        found = [self._taken() + b"\n", *(line + b"\n" for line in whole)]
        self._add(last)
        return found

    def rest(self) -> list[bytes]:
        """The last line, if it has no ending."""
        partial = self._taken()
        return [partial] if partial else []

    def clear(self) -> None:
        self._taken()

    def _add(self, part: bytes) -> None:
        kept = part[: max(0, self._most + 1 - self._size)]
        if kept:
            self._parts.append(kept)
            self._size += len(kept)

    def _taken(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts, self._size = [], 0
        return taken

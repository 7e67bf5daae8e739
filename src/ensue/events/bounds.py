"""Bounds of the reading of text: how long a record may be, and how much is read at once.

All readers of text files and pipes take a `Bounds`; without one they have `BOUNDS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Bounds:
    """`record_bytes` is the longest record: a JSON line, or a row of CSV with all its lines.

    `kept_bytes` of a longer record are kept. `block_bytes` of a file are scanned at once (a longer
    record makes its block longer). `values` is the most values of a chunk, since no block has more
    bytes and so no more values, and `records` the most records of a chunk, since each may be
    refused and is then kept by itself. Parts of a block from `part_bytes` on are parsed side by
    side.
    """

    record_bytes: int = 1 << 26
    kept_bytes: int = 1 << 10
    block_bytes: int = 1 << 23
    values: int = 1 << 24
    records: int = 1 << 19
    part_bytes: int = 1 << 20

    def records_at_once(self, values: int) -> int:
        """The most records of a chunk, with so many values each."""
        return max(1, min(self.records, self.values // max(1, values)))


BOUNDS: Final = Bounds()

"""A part of a file of events: rows in columns, and a way to read any of them by itself.

The columns are those of `ensue.events.columns`, each plain and of one type; `id`, `source`, `type`
and `time` are always among them. A row is `doubtful` if the columns do not show it as it is: it may
be no event, or one that the columns have no room for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.events.event import Event, Rejected

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
Singly = Callable[[Rows], list[Event | Rejected]]


RAW, ROW = "\0raw", "\0row"
"""Columns of records that were put aside: the bytes of a text file, and what stands in for ids."""


@dataclass(frozen=True)
class Chunk:
    """`singly` reads rows by themselves, by their places in the chunk.

    `record` gives the records of rows in a form in which they can be put aside and read again:
    for a text file the bytes of each, for a table the rows themselves. `has_extensions` and
    `has_other_data` say that rows may have attributes that no column shows, and `is_clashing` that
    one of them is named like a column. `header` has the names of the columns of a CSV file,
    and `held_bytes` says how much memory the chunk takes.
    """

    rows: pa.RecordBatch
    doubtful: Mask
    singly: Singly
    record: Callable[[Rows], pa.RecordBatch]
    has_extensions: bool = False
    has_other_data: bool = False
    is_clashing: bool = False
    header: list[str] | None = None
    held_bytes: int = 0

    def __len__(self) -> int:
        return int(self.rows.num_rows)

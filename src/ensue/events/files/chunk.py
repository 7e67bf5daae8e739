"""A chunk of a file of events: rows in columns, and a function that reads single rows.

The columns are those of `ensue.events.columns`, each plain and of one type; `id`, `source`, `type`
and `time` are always among them. A row is `doubtful` if the columns may not represent it: it may be
no event, or an event that does not fit into the columns.
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


RAW, NUMBER = "\0raw", "\0number"
"""Columns of stored records: their bytes in a text file, and their numbers in their own files."""


def stored_lines(raws: list[bytes], numbers: Rows) -> pa.RecordBatch:
    """Records of a text file in the form in which they are stored."""
    columns = [pa.array(raws, pa.binary()), pa.array(numbers)]
    return pa.RecordBatch.from_arrays(columns, names=[RAW, NUMBER])


@dataclass(frozen=True)
class Chunk:
    """Rows in columns. `singly` reads single rows, by their places in the chunk.

    `record` returns the records of rows in a form in which they can be stored and read again: for a
    text file the bytes of each, for a table the rows themselves. `original` returns rows as
    refused records, for problems that are found later, and leaves the problems to the caller.
    `has_extensions` and `has_other_data` say that rows may have attributes without a column, and
    `is_clashing` that one of these has the name of a column. `header` has the names of the columns
    of a CSV file, and `held_bytes` is the memory of the chunk. `names` are those that values of any
    record have, also where no column is made of them.
    """

    rows: pa.RecordBatch
    doubtful: Mask
    singly: Singly
    record: Callable[[Rows], pa.RecordBatch]
    original: Callable[[Rows], list[Rejected]]
    has_extensions: bool = False
    has_other_data: bool = False
    is_clashing: bool = False
    header: list[str] | None = None
    held_bytes: int = 0
    names: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return int(self.rows.num_rows)

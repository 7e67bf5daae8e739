"""An external sort of records by their times.

In come batches of records with their times; out go batches in the order of the times; records with
equal times keep their order. Up to `SORT_BYTES` are sorted in memory; more records are written to
temporary files as sorted runs, which are merged.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

SORT_BYTES = 1 << 28
"""The bytes of records that are sorted in memory."""
RUN_ROWS = 1 << 14
"""The rows of a run that are in memory while runs are merged."""
BATCH_ROWS = 1 << 17

TIME = "\0time"
"""The additional column of sorted batches: the time in microseconds."""


class Sorter:
    """Sorts batches of one schema."""

    def __init__(self, limit: int = SORT_BYTES) -> None:
        self._limit = limit
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self._runs: list[BinaryIO] = []

    @property
    def is_outside_memory(self) -> bool:
        return bool(self._runs)

    def add(self, times: Any, rows: pa.RecordBatch) -> None:
        if not len(rows):
            return
        timed = rows.append_column(TIME, pa.array(times, pa.int64()))
        self._waiting.append(timed)
        self._bytes += timed.nbytes
        if self._bytes > self._limit:
            self._spill()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All records in order. Each batch has the column `TIME`."""
        if not self._runs:
            for table in self._sorted_waiting():
                yield from table.to_batches(max_chunksize=BATCH_ROWS)
            return
        self._spill()
        cursors = [Cursor(_read_run(run)) for run in self._runs]
        for slices in merged(cursors):
            whole = pa.Table.from_batches([rows for _, rows in slices]).combine_chunks()
            yield from _by_time(whole).to_batches()
        self._runs = []

    def _sorted_waiting(self) -> list[pa.Table]:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        return [_by_time(pa.Table.from_batches(waiting).combine_chunks())] if waiting else []

    def _spill(self) -> None:
        for table in self._sorted_waiting():
            run = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it has been read
            with pa.ipc.new_stream(run, table.schema) as writer:
                for batch in table.to_batches(max_chunksize=RUN_ROWS):
                    writer.write_batch(batch)
            self._runs.append(run)


def _by_time(table: pa.Table) -> pa.Table:
    times = table.column(TIME).to_numpy()
    if len(times) < 2 or (times[1:] >= times[:-1]).all():
        return table
    return table.take(pa.array(np.argsort(times, kind="stable")))


def _read_run(run: BinaryIO) -> Iterator[pa.RecordBatch]:
    run.seek(0)
    with run, pa.ipc.open_stream(run) as batches:
        yield from batches


class Cursor:
    """The position in a sorted stream of batches."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._head: list[pa.RecordBatch] = []
        self.is_ended = False
        self.load()

    def load(self) -> None:
        """Load one more batch."""
        following = next((each for each in self._batches if len(each)), None)
        if following is None:
            self.is_ended = True
        else:
            self._head.append(following)

    @property
    def is_empty(self) -> bool:
        return not self._head

    @property
    def last(self) -> int:
        """The time of the last loaded row."""
        times = self._head[-1].column(TIME)
        return int(times[len(times) - 1].as_py())

    def take(self, before: int | None) -> list[pa.RecordBatch]:
        """Take the loaded rows with times before `before`; all rows if it is None."""
        if before is None:
            taken, self._head = self._head, []
            return taken
        taken, kept = [], []
        for rows in self._head:
            end = int(np.searchsorted(rows.column(TIME).to_numpy(), before))
            taken.append(rows[:end])
            kept.append(rows[end:])
        self._head = [rows for rows in kept if len(rows)]
        return [rows for rows in taken if len(rows)]


def merged(cursors: Sequence[Cursor]) -> Iterator[list[tuple[int, pa.RecordBatch]]]:
    """Slices of sorted streams, each with the number of its stream, in rounds.

    All rows of one round come before those of the next. The caller sorts the rows of a round; with
    equal times, rows of an earlier stream go first.
    """
    while True:
        for cursor in cursors:
            if cursor.is_empty and not cursor.is_ended:
                cursor.load()
        open_ones = [each for each in cursors if not each.is_ended]
        if not open_ones:
            rest = [(n, rows) for n, each in enumerate(cursors) for rows in each.take(None)]
            if rest:
                yield rest
            return
        bound = min(each.last for each in open_ones)
        slices = [(n, rows) for n, each in enumerate(cursors) for rows in each.take(bound)]
        if slices:
            yield slices
            continue
        # All loaded rows have one time, and more rows of this time may follow.
        for cursor in open_ones:
            if cursor.is_empty or cursor.last == bound:
                cursor.load()

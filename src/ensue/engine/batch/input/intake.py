"""Events in columns on their way in: checked, put in the order of their times, and cut to size.

In comes a chunk of a file or a table of events; out come batches that are in order and fit their
types. A row that does not fit, or lies too far ahead of those before it, is kept in `rejected`, and
one from before the time that an earlier table has reached in `late`: neither stops anything. Rows
that columns do not show are read by themselves, and put back among the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ensue.engine.batch.input.batches import Batch, EventBatch, TableBatch
from ensue.engine.batch.input.column import Rows
from ensue.engine.batch.input.table_reading import TableReading
from ensue.engine.core.cells import Instants
from ensue.engine.counts import Counts
from ensue.engine.timing.jumps import UNBOUNDED, jump_problem
from ensue.errors import UsageError
from ensue.events.cloudevents import TEXT_ATTRIBUTES, encode
from ensue.events.columns import EXTENSION_PREFIX
from ensue.events.event import Event, Rejected
from ensue.events.files.chunk import Chunk
from ensue.events.files.tables import TableChunks
from ensue.events.mapping import Mapping as ColumnMapping
from ensue.events.nesting import value_at
from ensue.events.times import datetime_of
from ensue.events.types import TypeSystem

ROWS_AT_ONCE = 1 << 18
"""How many rows go through at a time: few enough for their columns to stay in the cache."""


class Checked(NamedTuple):
    """The rows of a chunk that are events, by their places in it, and the records that are none."""

    batch: Batch
    kept: Rows
    rejected: list[Rejected]


class Intake:
    """The input of one stream: rejected rows, late events, and how many rows were read.

    `clock`, where a method takes it, is the time that the stream has reached.
    """

    def __init__(self, types: TypeSystem, counts: Counts, max_jump: float = UNBOUNDED) -> None:
        self.rejected: list[Rejected] = []
        self.late: list[Event] = []
        self.rows_read = 0
        self._counts = counts
        self._max_jump = max_jump
        self._reached: int | None = None
        self.change(types)

    def change(self, types: TypeSystem) -> None:
        """Read events of other types from now on."""
        self._types = types
        self._readings: dict[tuple[str, ...], TableReading] = {}

    def check(self, chunk: Chunk) -> Checked:
        """Which rows of a chunk are events; in the order of the chunk."""
        reading = self._reading(chunk.rows.schema.names)
        rows, times, codes = chunk.rows, reading.times(chunk.rows), reading.codes(chunk.rows)
        every = np.arange(len(chunk))
        if chunk.is_clashing:
            return self._as_events(chunk, every)
        wrong = chunk.doubtful | reading.misfits(rows, codes)
        if not wrong.any():
            return Checked(TableBatch(rows, reading, times, codes, chunk, every), every, [])
        asked = np.flatnonzero(wrong)
        found = chunk.singly(asked)
        rejected = [each for each in found if isinstance(each, Rejected)]
        is_event = np.array([isinstance(each, Event) for each in found], np.bool_)
        if is_event.any():
            events = [each for each in found if isinstance(each, Event)]
            patched = _with_events(rows, asked[is_event], events)
            if patched is None:
                return self._as_events(chunk, every)
            rows, times, codes = patched, reading.times(patched), reading.codes(patched)
            wrong[asked[is_event]] = False
        kept = np.flatnonzero(~wrong)
        rows = rows.take(pa.array(kept)) if len(kept) < len(rows) else rows
        batch = TableBatch(rows, reading, times[kept], codes[kept], chunk, kept)
        return Checked(batch, kept, rejected)

    def _as_events(self, chunk: Chunk, every: Rows) -> Checked:
        """The rows of a chunk as single events, for values that no column can hold."""
        found = chunk.singly(every)
        kept = [at for at, each in enumerate(found) if isinstance(each, Event)]
        events = [each for each in found if isinstance(each, Event)]
        rejected = [each for each in found if isinstance(each, Rejected)]
        return Checked(EventBatch(events, self._types), np.array(kept, np.int64), rejected)

    def batches(
        self, given: Any, source: str, clock: int | None, mapping: ColumnMapping | None = None
    ) -> Iterator[Batch]:
        """The rows of a table (anything with `__arrow_c_stream__`) as batches."""
        table = _as_table(given)
        self._reached = clock
        chunks = TableChunks(table.schema, self._types, source, "the table", mapping)
        numbers = np.arange(self.rows_read + 1, self.rows_read + 1 + len(table))
        self.rows_read += len(table)
        checked = list(self._checked(chunks, table, numbers))
        for each in checked:
            self.rejected += each.rejected
        if not _in_order([each.batch for each in checked]):
            kept, times = [], []
            first = 0
            for each, size in zip(checked, _sizes(table), strict=True):
                kept.append(each.kept + first)
                times.append(each.batch.times)
                first += size
            order = np.concatenate(kept)[np.argsort(np.concatenate(times), kind="stable")]
            table, numbers = table.take(pa.array(order)).combine_chunks(), numbers[order]
            checked = list(self._checked(chunks, table, numbers))
        for each in checked:
            yield from self._in_time(each.batch, clock)

    def _checked(self, chunks: TableChunks, table: pa.Table, numbers: Rows) -> Iterator[Checked]:
        first = 0
        for rows in _cut(table):
            yield self.check(chunks.chunk(rows, numbers[first : first + len(rows)]))
            first += len(rows)

    def _in_time(self, batch: Batch, clock: int | None) -> Iterator[Batch]:
        """The rows that do not come too late, or lie too far ahead."""
        if clock is not None and len(batch) and batch.times[0] < clock:
            early = int(np.searchsorted(batch.times, clock))
            self.late += [batch.event(row) for row in range(early)]
            self._counts.events += early
            self._counts.late += early
            batch = batch.since(early)
        yield from self.in_reach(batch)

    def in_reach(self, batch: Batch) -> Iterator[Batch]:
        """The rows, in order, that do not lie too far ahead; the others are rejected."""
        self._counts.events += len(batch)
        near = self._near(batch.times)
        if near < len(batch):
            self._refuse_ahead([batch.event(row) for row in range(near, len(batch))])
            batch = batch.since(0, near)
        if len(batch):
            self._reached = int(batch.times[-1])
            yield batch

    def _near(self, times: Instants) -> int:
        """How many of these times, which are in order, the clock may jump to."""
        if self._max_jump == UNBOUNDED or not len(times):
            return len(times)
        before = times[0] if self._reached is None else self._reached
        far = np.diff(times, prepend=before) > self._max_jump
        return int(far.argmax()) if far.any() else len(times)

    def _refuse_ahead(self, events: Sequence[Event]) -> None:
        reached = 0 if self._reached is None else self._reached
        self._counts.events -= len(events)
        self.rejected += [
            Rejected(0, encode(each), (jump_problem(each.time, reached, self._max_jump),))
            for each in events
        ]

    def _reading(self, names: Sequence[str]) -> TableReading:
        known = self._readings.get(tuple(names))
        if known is None:
            known = self._readings[tuple(names)] = TableReading(names, self._types)
        return known


def _as_table(table: Any) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if not hasattr(table, "__arrow_c_stream__"):
        raise UsageError(
            f"a `{type(table).__name__}` gives no Arrow stream: hand over a pyarrow table, a"
            " data frame, or anything else with `__arrow_c_stream__`"
        )
    return pa.RecordBatchReader.from_stream(table).read_all()


def _cut(table: pa.Table) -> list[pa.RecordBatch]:
    if (
        table.num_rows
        and table.num_columns
        and (table.column(0).num_chunks > 1 + table.num_rows // ROWS_AT_ONCE)
    ):
        table = table.combine_chunks()
    batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=ROWS_AT_ONCE)
    return batches


def _sizes(table: pa.Table) -> list[int]:
    return [len(rows) for rows in _cut(table)]


def _in_order(batches: Sequence[Batch]) -> bool:
    """Whether rows come by their times, as in most tables."""
    before: Any = None
    for batch in batches:
        times = batch.times
        if not len(times):
            continue
        if (before is not None and times[0] < before) or (times[1:] < times[:-1]).any():
            return False
        before = times[-1]
    return True


def _with_events(rows: pa.RecordBatch, places: Rows, events: Sequence[Event]) -> Any:
    """Columns with the values of events in some rows; None if a column cannot hold them."""
    taken = np.arange(len(rows))
    taken[places] = len(rows) + np.arange(len(events))
    index = pa.array(taken)
    columns = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            values = pa.array([_value(event, name) for event in events], column.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return None
        columns.append(pa.concat_arrays([column, values]).take(index))
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _value(event: Event, name: str) -> Any:
    """The value of an event for a column."""
    match name:
        case "id":
            return event.id
        case "source":
            return event.source
        case "type":
            return event.type
        case "time":
            return datetime_of(event.time)
    if name in TEXT_ATTRIBUTES:
        return event.extensions.get(name)
    if name.startswith(EXTENSION_PREFIX) and name != EXTENSION_PREFIX:
        return event.extensions.get(name.removeprefix(EXTENSION_PREFIX))
    return value_at(event.data, name)[1] if isinstance(event.data, Mapping) else None

"""Events in columns on their way in: checked, put in the order of their times, and cut to size.

In comes a chunk of a file or a table of events; out come batches that are in order and fit their
types. A row that does not fit, or whose time lies too far from most others, is kept in `rejected`;
a row from before the time that an earlier table has reached is kept in `late`. Neither ends the
run. Rows whose values no column can hold are read one by one, and put back among the others.

Two kinds of batches come from no table: events that are in Python already (`EventBatch`), and
firings of timers (`AlarmBatch`), which are remembered as events are, so that outputs can bind them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.batches import Batch, TableBatch, TableReading
from ensue.engine.batch.input.column import Column, absent, column_of
from ensue.engine.core.numbering import Instants, Rows
from ensue.engine.counts import Counts
from ensue.engine.timing.agreeing import TimeRun, TimeRuns
from ensue.engine.timing.jumps import UNBOUNDED, far_problem
from ensue.errors import UsageError
from ensue.events.cloudevents import TEXT_ATTRIBUTES
from ensue.events.columns import EXTENSION_PREFIX
from ensue.events.event import Event, Rejected
from ensue.events.files.chunk import Chunk
from ensue.events.files.tables import TableChunks
from ensue.events.mapping import Mapping as ColumnMapping
from ensue.events.nesting import value_at
from ensue.events.times import datetime_of
from ensue.events.types import TypeSystem
from ensue.lang.expressions.evaluation import EventScope
from ensue.lang.expressions.names import Parts, is_time

_BYTES_OF_AN_EVENT = 600
"""What an event with two attributes was seen to hold, with its columns."""


class EventBatch(Batch):
    """Events that are in Python already, each of them conformed.

    Events of a chunk come with it, and with their places in it.
    """

    def __init__(
        self,
        events: Sequence[Event],
        types: TypeSystem,
        chunk: Chunk | None = None,
        places: Rows | None = None,
    ) -> None:
        super().__init__()
        self._events = events
        self._chunk = chunk
        self._places = np.arange(len(events)) if places is None else places
        self.held_bytes = _BYTES_OF_AN_EVENT * len(events)
        self.types = types
        self.times = np.fromiter((event.time for event in events), np.int64, len(events))

    @cached_property
    def type_codes(self) -> npt.NDArray[np.int32]:
        places = {name: place for place, name in enumerate(self.types.types)}
        found = (places.get(event.type, -1) for event in self._events)
        return np.fromiter(found, np.int32, len(self._events))

    @property
    def names(self) -> Collection[str]:
        return () if self._chunk is None else self._chunk.names

    def _column(self, parts: Parts) -> Column:
        return column_of([EventScope(event).lookup(parts) for event in self._events])

    def event(self, row: int) -> Event:
        return self._events[row]

    def original(self, rows: Rows) -> list[Rejected]:
        if self._chunk is None:
            return super().original(rows)
        return self._chunk.original(self._places[rows])

    def since(self, row: int, end: int | None = None) -> EventBatch:
        kept = self._events[row:end]
        return EventBatch(kept, self.types, self._chunk, self._places[row:end])


class AlarmBatch(Batch):
    """Firings of timers. Each has a time, and nothing else."""

    def __init__(self, times: Instants, types: TypeSystem) -> None:
        super().__init__()
        self.times = times
        self.types = types

    @cached_property
    def type_codes(self) -> npt.NDArray[np.int32]:
        return np.full(len(self), -1, np.int32)

    def _column(self, parts: Parts) -> Column:
        if is_time(parts):
            return Column("timestamp", self.times)
        return absent(len(self))

    def since(self, row: int, end: int | None = None) -> AlarmBatch:
        return AlarmBatch(self.times[row:end], self.types)

    def event(self, row: int) -> Event:
        """Stands in the place of an event; it is never sent on."""
        return Event("", "", "", int(self.times[row]))


ROWS_AT_ONCE = 1 << 18
"""How many rows go through at a time: few enough for their columns to stay in the cache."""


class CheckedRows(NamedTuple):
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
        self._span: TimeRun | None = None
        self.change(types)

    def change(self, types: TypeSystem) -> None:
        """Read events of other types from now on."""
        self._types = types
        self._readings: dict[tuple[str, ...], TableReading] = {}

    def check(self, chunk: Chunk) -> CheckedRows:
        """Which rows of a chunk are events; in the order of the chunk."""
        reading = self._reading(chunk.rows.schema.names)
        rows, times, codes = chunk.rows, reading.times(chunk.rows), reading.codes(chunk.rows)
        every = np.arange(len(chunk))
        if chunk.is_clashing:
            return self._as_events(chunk, every)
        wrong = chunk.doubtful | reading.misfits(rows, codes)
        if not wrong.any():
            return CheckedRows(TableBatch(rows, reading, times, codes, chunk, every), every, [])
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
        return CheckedRows(batch, kept, rejected)

    def _as_events(self, chunk: Chunk, every: Rows) -> CheckedRows:
        """The rows of a chunk as single events, for values that no column can hold."""
        found = chunk.singly(every)
        is_event = (at for at, each in enumerate(found) if isinstance(each, Event))
        kept = np.fromiter(is_event, np.int64)
        events = [each for each in found if isinstance(each, Event)]
        rejected = [each for each in found if isinstance(each, Rejected)]
        return CheckedRows(EventBatch(events, self._types, chunk, kept), kept, rejected)

    def batches(
        self, given: Any, source: str, clock: int | None, mapping: ColumnMapping | None = None
    ) -> Iterator[Batch]:
        """The rows of a table (anything with `__arrow_c_stream__`) as batches."""
        table = _as_table(given)
        self._reached = clock
        chunks = TableChunks(table.schema, self._types, source, "the table", mapping)
        numbers = np.arange(self.rows_read + 1, self.rows_read + 1 + len(table))
        self.rows_read += len(table)
        checked: Iterable[CheckedRows] = self._checked(chunks, table, numbers)
        if self._max_jump != UNBOUNDED or not _has_times_in_order(table, mapping):
            checked = self._in_order(list(checked), chunks, table, numbers)
            if clock is None and self._max_jump != UNBOUNDED:
                runs = TimeRuns(self._max_jump)
                for each in checked:
                    add_times(runs, each.batch.times, self._max_jump)
                self.keep_to(runs.largest())
        for each in checked:
            yield from self._in_time(each.batch, clock)
        self.keep_to(None)

    def _checked(
        self, chunks: TableChunks, table: pa.Table, numbers: Rows, near: Instants | None = None
    ) -> Iterator[CheckedRows]:
        first = 0
        for rows in _cut(table):
            part = slice(first, first + len(rows))
            times = None if near is None else near[part]
            found = self.check(chunks.chunk(rows, numbers[part], times))
            self.rejected += found.rejected
            yield found
            first += len(rows)

    def _in_order(
        self, checked: list[CheckedRows], chunks: TableChunks, table: pa.Table, numbers: Rows
    ) -> list[CheckedRows]:
        """All events of a table by their times; rows that are no events have no place there."""
        if _are_ascending([each.batch.times for each in checked]):
            return checked
        kept, times = [], []
        first = 0
        for each, size in zip(checked, _sizes(table), strict=True):
            kept.append(each.kept + first)
            times.append(each.batch.times)
            first += size
        every = np.concatenate(times)
        by_time = np.argsort(every, kind="stable")
        order = np.concatenate(kept)[by_time]
        sorted_table = table.take(pa.array(order)).combine_chunks()
        return list(self._checked(chunks, sorted_table, numbers[order], every[by_time]))

    def _in_time(self, batch: Batch, clock: int | None) -> Iterator[Batch]:
        """The rows that do not come too late, or lie too far ahead."""
        if clock is not None and len(batch) and batch.times[0] < clock:
            early = int(np.searchsorted(batch.times, clock))
            self.late += [batch.event(row) for row in range(early)]
            self._counts.events += early
            self._counts.late += early
            batch = batch.since(early)
        yield from self.in_reach(batch)

    def keep_to(self, span: TimeRun | None) -> None:
        """Read rows of a span of times from now on, and refuse rows before and after it."""
        self._span = span

    def in_reach(self, batch: Batch) -> Iterator[Batch]:
        """The rows, in order, that do not lie too far ahead or behind; the others are rejected."""
        self._counts.events += len(batch)
        first, last = self._near(batch.times)
        if last - first < len(batch):
            far = np.concatenate([np.arange(first), np.arange(last, len(batch))])
            self._refuse_far(batch, far)
            batch = batch.since(first, last)
        if len(batch):
            self._reached = int(batch.times[-1])
            yield batch

    def _near(self, times: Instants) -> tuple[int, int]:
        """The first row, and the end of the rows, that the clock may go to; times are in order."""
        if self._max_jump == UNBOUNDED or not len(times):
            return 0, len(times)
        if self._span is not None:
            ends = np.array([self._span.low, self._span.high + 1])
            first, last = np.searchsorted(times, ends).tolist()
            return first, last
        before = times[0] if self._reached is None else self._reached
        far = np.diff(times, prepend=before) > self._max_jump
        return 0, int(far.argmax()) if far.any() else len(times)

    def _refuse_far(self, batch: Batch, far: Rows) -> None:
        if self._span is not None:
            begins, ends = self._span.low, self._span.high
        else:
            ends = 0 if self._reached is None else self._reached
            begins = ends
        self._counts.events -= len(far)
        self.rejected += [
            each.because(far_problem(time, begins, ends, self._max_jump))
            for each, time in zip(batch.original(far), batch.times[far].tolist(), strict=True)
        ]

    def _reading(self, names: Sequence[str]) -> TableReading:
        known = self._readings.get(tuple(names))
        if known is None:
            known = self._readings[tuple(names)] = TableReading(names, self._types)
        return known


def add_times(runs: TimeRuns, times: Instants, allowed: float) -> None:
    """Add times, in any order, to runs of times."""
    if not len(times):
        return
    if times.max() - times.min() <= allowed:
        runs.add(int(times.min()), int(times.max()), len(times))
        return
    ordered = np.sort(times)
    for run in np.split(ordered, np.flatnonzero(np.diff(ordered) > allowed) + 1):
        runs.add(int(run[0]), int(run[-1]), len(run))


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


def _has_times_in_order(table: pa.Table, mapping: ColumnMapping | None) -> bool:
    """Whether a column of instants shows that rows come by their times, as in most tables."""
    if mapping is not None and not mapping.is_default:
        return False
    column = table.column("time")
    if not pa.types.is_timestamp(column.type) or column.null_count:
        return False
    return _are_ascending([each.cast(pa.int64()).to_numpy() for each in column.chunks])


def _are_ascending(parts: Iterable[Instants]) -> bool:
    before: Any = None
    for times in parts:
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

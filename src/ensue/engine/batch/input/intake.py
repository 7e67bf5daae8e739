"""Tables on their way in: checked, put in the order of their times, and cut to size.

In comes a table of events; out come batches that are in order and fit their types. A row that does
not fit, or lies too far ahead of those before it, is kept in `rejected`, and one from before the
time that an earlier table has reached in `late`: neither stops anything. A table whose columns are
not all plain goes through events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ensue.engine.batch.input.batches import Batch, EventBatch, TableBatch
from ensue.engine.batch.input.column import Rows
from ensue.engine.batch.input.table_reading import TableReading
from ensue.engine.core.cells import Instants
from ensue.engine.counts import Counts
from ensue.engine.jumps import UNBOUNDED, jump_problem
from ensue.errors import UsageError
from ensue.events.arrow import check_time_column
from ensue.events.cloudevents import encode
from ensue.events.event import Event, Rejected
from ensue.events.types import TypeSystem

ROWS_AT_ONCE = 1 << 18
"""How many rows go through at a time: few enough for their columns to stay in the cache."""


class Intake:
    """What comes in of one stream. `clock` is the time that it has reached before a table."""

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
        self._readings: dict[pa.Schema, TableReading] = {}

    def batches(self, given: Any, source: str, clock: int | None) -> Iterator[Batch]:
        """The rows of a table (anything with `__arrow_c_stream__`) as batches."""
        table = _as_table(given)
        self._reached = clock
        reading = self._reading(table.schema, source)
        is_plain = reading.is_plain(table.schema)
        numbers = np.arange(self.rows_read + 1, self.rows_read + 1 + len(table))
        self.rows_read += len(table)
        self._counts.events += len(table)
        if not is_plain:
            yield from self._through_events(reading, table, numbers, clock)
            return
        table, numbers = _in_order(table, numbers)
        if table.num_rows and table.column(0).num_chunks > 1 + table.num_rows // ROWS_AT_ONCE:
            table = table.combine_chunks()
        first = 0
        for rows in table.to_batches(max_chunksize=ROWS_AT_ONCE):
            yield from self._plain(reading, rows, numbers[first : first + len(rows)], clock)
            first += len(rows)

    def _plain(
        self, reading: TableReading, rows: pa.RecordBatch, numbers: Rows, clock: int | None
    ) -> Iterator[Batch]:
        times, wrong = reading.times(rows)
        codes = reading.codes(rows)
        wrong = wrong | reading.misfits(rows, codes)
        if wrong.any():
            asked = np.flatnonzero(wrong)
            found = reading.read(rows.take(pa.array(asked)), numbers[asked])
            refused = [each for each in found if isinstance(each, Rejected)]
            if len(refused) < len(found):
                # Some fit after all, in a form that columns do not show: text that is a time.
                yield from self._through_events(reading, pa.table(rows), numbers, clock)
                return
            self._refuse(refused)
            kept = np.flatnonzero(~wrong)
            rows, times, codes, numbers = (
                rows.take(pa.array(kept)),
                times[kept],
                codes[kept],
                numbers[kept],
            )
        if clock is not None and len(times) and times[0] < clock:
            early = int(np.searchsorted(times, clock))
            late = TableBatch(rows, reading, times, codes, numbers)
            self._come_late(late.events(np.arange(early)))
            rows, times, codes, numbers = (
                rows[early:],
                times[early:],
                codes[early:],
                numbers[early:],
            )
        near = self._near(times)
        if near < len(times):
            ahead = TableBatch(rows[near:], reading, times[near:], codes[near:], numbers[near:])
            self._refuse_ahead(ahead.events(np.arange(len(ahead))), numbers[near:].tolist())
            rows, times, codes, numbers = rows[:near], times[:near], codes[:near], numbers[:near]
        if len(times):
            self._reached = int(times[-1])
            yield TableBatch(rows, reading, times, codes, numbers)

    def _near(self, times: Instants) -> int:
        """How many of these times, which are in order, the clock may jump to."""
        if self._max_jump == UNBOUNDED or not len(times):
            return len(times)
        before = times[0] if self._reached is None else self._reached
        far = np.diff(times, prepend=before) > self._max_jump
        return int(far.argmax()) if far.any() else len(times)

    def _refuse_ahead(self, events: Sequence[Event], numbers: Sequence[int]) -> None:
        reached = 0 if self._reached is None else self._reached
        self._refuse(
            [
                Rejected(number, encode(each), (jump_problem(each.time, reached, self._max_jump),))
                for number, each in zip(numbers, events, strict=True)
            ]
        )

    def _through_events(
        self, reading: TableReading, table: pa.Table, numbers: Rows, clock: int | None
    ) -> Iterator[Batch]:
        found: list[tuple[Event, int]] = []
        first = 0
        for rows in table.to_batches():
            given = numbers[first : first + len(rows)]
            for each, number in zip(reading.read(rows, given), given.tolist(), strict=True):
                if isinstance(each, Event):
                    found.append((each, number))
                else:
                    self._refuse([each])
            first += len(rows)
        found.sort(key=lambda each: each[0].time)
        if clock is not None:
            self._come_late([event for event, _ in found if event.time < clock])
            found = [each for each in found if each[0].time >= clock]
        near = self._near(np.array([event.time for event, _ in found], np.int64))
        events = [event for event, _ in found[:near]]
        if events:
            self._reached = events[-1].time
        self._refuse_ahead([event for event, _ in found[near:]], [n for _, n in found[near:]])
        for start in range(0, len(events), ROWS_AT_ONCE):
            yield EventBatch(events[start : start + ROWS_AT_ONCE], self._types)

    def _refuse(self, records: Sequence[Rejected]) -> None:
        self.rejected += records
        self._counts.events -= len(records)

    def _come_late(self, events: Sequence[Event]) -> None:
        self.late += events
        self._counts.late += len(events)

    def _reading(self, schema: pa.Schema, source: str) -> TableReading:
        known = self._readings.get(schema)
        if known is None:
            known = TableReading(schema, self._types, source, "the table")
            check_time_column(schema.field("time").type, "the table")
            self._readings[schema] = known
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


def _in_order(table: pa.Table, numbers: Rows) -> tuple[pa.Table, Rows]:
    """The rows by their times, equal times as given. Most tables are in order already."""
    column = table.column("time")
    if column.null_count:
        return _sorted(table, numbers, column.fill_null(0))
    before: Any = None
    for chunk in column.chunks:
        values = chunk.cast(pa.int64()).to_numpy(zero_copy_only=False)
        if len(values) == 0:
            continue
        if (before is not None and values[0] < before) or (values[1:] < values[:-1]).any():
            return _sorted(table, numbers, column)
        before = values[-1]
    return table, numbers


def _sorted(table: pa.Table, numbers: Rows, column: Any) -> tuple[pa.Table, Rows]:
    order = np.argsort(column.cast(pa.int64()).to_numpy(), kind="stable")
    return table.take(pa.array(order)), numbers[order]

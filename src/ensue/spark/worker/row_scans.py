"""Passes over all rows beside the rules: rejected rows, and the times of events.

In come the rows of a partition; out go the rows that are no events, each with its problems, or
numbers that the driver needs before rules run: the latest time, and between which times the clock
may go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from ensue.engine.timing.agreeing import TimeRuns
from ensue.engine.timing.jumps import check_advance, far_problem
from ensue.events.arrow import BatchReader, row_texts
from ensue.events.event import Event, Rejected
from ensue.events.mapping import Mapping, PlainMapping
from ensue.events.types import TypeSystem
from ensue.spark.worker.event_rows import (
    ARRIVAL,
    BEGIN,
    DEFAULT_SOURCE,
    IN_FILE,
    REACH,
    ROW,
    read_rows,
    rejected_batch,
)
from ensue.spark.worker.tasks import Batches, GroupTask, decoded_plan


def rejected_rows(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The rows that are no events or do not fit, as JSON, each with all its problems."""
    task = GroupTask(*given)
    types = decoded_plan(task.library, task.selected).library.types
    for batch in batches:
        yield rejected_batch([each for _, each in _refused(task, types, batch)])


class FileRowsTask(NamedTuple):
    """Rows of files for a worker, as plain data: the job, and the mapping of the user."""

    group: tuple[Any, ...]
    mapping: PlainMapping


def rejected_in_files(given: tuple[Any, ...], batches: Batches) -> Batches:
    """As `rejected_rows`, with the arrival of each row, and the row as it is in its file.

    The problems are those of the row in its file, which has the names that the user knows.
    """
    asked = FileRowsTask(*given)
    task = GroupTask(*asked.group)
    types = decoded_plan(task.library, task.selected).library.types
    mapping = Mapping.from_plain(asked.mapping)
    for batch in batches:
        found = list(_refused(task, types, batch))
        places = pa.array([place for place, _ in found], pa.int64())
        rows = pa.RecordBatch.from_struct_array(batch.column(IN_FILE).take(places))
        reader = BatchReader(rows.schema, types, DEFAULT_SOURCE, "the files", mapping)
        again = reader.read(rows, range(1, len(rows) + 1))
        refused = [
            each if isinstance(each, Rejected) else Rejected(0, text, known.problems)
            for each, text, (_, known) in zip(again, reader.texts(rows), found, strict=True)
        ]
        told = rejected_batch(refused)
        arrivals = batch.column(ARRIVAL).take(places)
        yield pa.RecordBatch.from_arrays([*told.columns, arrivals], [*told.schema.names, ARRIVAL])


def _refused(
    task: GroupTask, types: TypeSystem, batch: pa.RecordBatch
) -> Iterator[tuple[int, Rejected]]:
    """The rows that are no events, do not fit, or lie too far off, by their places."""
    has_reach = REACH in batch.schema.names and batch.num_rows
    begin = (batch.column(BEGIN)[0].as_py() if has_reach else None) or 0
    reach = batch.column(REACH)[0].as_py() if has_reach else None
    records = read_rows(iter([batch]), types, task.times, with_arrival=False)
    for place, (_, each) in enumerate(records):
        if isinstance(each, Rejected):
            yield place, each
        elif reach is not None and not begin <= each.time <= reach:
            why = far_problem(each.time, begin, reach, task.max_jump)
            (text,) = _texts(task, batch.column(ROW)[place : place + 1])
            yield place, Rejected(0, text, (why,))


def _texts(task: GroupTask, rows: pa.StructArray) -> list[str]:
    _, timezone = task.times
    return row_texts(pa.RecordBatch.from_struct_array(rows), "the rows", timezone is not None)


def latest_time(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The latest time of the events of a partition."""
    task = GroupTask(*given)
    types = decoded_plan(task.library, task.selected).library.types
    times = [
        record.time
        for _, record in read_rows(batches, types, task.times, with_arrival=False)
        if isinstance(record, Event)
    ]
    if times:
        yield pa.RecordBatch.from_arrays([pa.array([max(times)], pa.int64())], ["latest"])


def time_runs(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The times of the events of a partition, as runs in which the clock may jump."""
    task = GroupTask(*given)
    types = decoded_plan(task.library, task.selected).library.types
    runs = TimeRuns(task.max_jump)
    for _, record in read_rows(batches, types, with_arrival=False):
        if isinstance(record, Event):
            runs.add(record.time, record.time, 1)
    if runs.merged:
        columns = [pa.array(each, pa.int64()) for each in zip(*runs.merged, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, names=["low", "high", "count"])


def find_reach(given: tuple[int, int | None], batches: Batches) -> Batches:
    """Between which times the clock goes, of all runs of times, which stand in one row."""
    allowed, until = given
    runs = TimeRuns(allowed)
    for batch in batches:
        for listed in batch.column("runs").to_pylist():
            for each in listed:
                runs.add(each["low"], each["high"], each["count"])
    found = runs.largest()
    begin, reach = (None, None) if found is None else (found.low, found.high)
    if reach is not None and until is not None:
        check_advance(until, reach, allowed)
    ends = {REACH: pa.array([reach], pa.int64()), BEGIN: pa.array([begin], pa.int64())}
    yield pa.RecordBatch.from_pydict(ends)

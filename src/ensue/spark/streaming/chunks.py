"""Chunks of events for buckets, packed before the shuffle, so that few rows are shuffled.

In come the rows of a micro-batch, partition by partition; out go rows with a group of rules, a
bucket of it, and an Arrow stream of the events for that bucket, in the order of arrival. At the end
every bucket gets the times of the partition as runs, also a bucket without events, so that all
buckets have the one clock of the stream. `bucket` decides which events are late or too far ahead,
since it has the state of the earlier micro-batches.

Rows come in one of two forms. With `columns`, SQL has computed which group wants a row, and its
bucket (`column_chunks`). With `events`, rows become events here, where SQL cannot read them
exactly. In both forms the events that each rule wants are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.timing.agreeing import TimeRuns
from ensue.engine.timing.jumps import UNBOUNDED
from ensue.events.event import Event, Rejected
from ensue.library import parse
from ensue.spark.plan import JobPlan, plan_of
from ensue.spark.streaming.groups import StreamGroup, stream_groups
from ensue.spark.streaming.measures import Measures, write_measures
from ensue.spark.worker.event_rows import (
    ARRIVAL,
    NO_TIMES,
    Times,
    read_rows,
    rejected_batch,
    write_event,
)
from ensue.spark.worker.routing import EventRouter

TIME = "ensue_time"
"""The time of an event in microseconds since 1970."""
REPORTS = "ensue_reports"
"""Whether this copy of an event reports it if it is late; copies for other groups do not."""
KEY = "ensue_key"
"""The hash of the key of an event, where its group has keys: by it the event finds its state."""
PAYLOAD = "payload"
REJECTED, MEASURES = "rejected", "measures"
STATELESS_GROUPS = (REJECTED, MEASURES)
"""Groups without rules or state: rejected rows, and measures of partitions."""
EXTRAS = (TIME, REPORTS, ARRIVAL, KEY)

CLOCK_PART = -1
"""The part of a row that has the times of a partition in place of events."""

CHUNK_BYTES = 32 * 2**20
"""How much of a partition is collected before it is packed into chunks."""
EVENTS_AT_ONCE = 1 << 16
TICK = -2
"""The `part` of a row without a chunk whose `latest` is a time of the wall clock."""
_Row = tuple[int, int, bool, int, bytes]
"""The hash of a key, a time, whether this copy reports, an arrival, and the event as bytes."""

CHUNK_DDL = "`group` string, bucket int, partition int, part int, latest bigint, chunk binary"
CHUNK_SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("bucket", pa.int32()),
        ("partition", pa.int32()),
        ("part", pa.int32()),
        ("latest", pa.int64()),
        ("chunk", pa.binary()),
    ]
)


class StreamTask(NamedTuple):
    """A library over a stream for a worker, as plain data.

    `form` is `columns` or `events`. In columns, `names` are the names of the shuffled columns, and
    `shuffled` has for each group the numbers of its columns, and its null attributes; `row_type` is
    an Arrow schema whose one field is a row of the DataFrame. `of_records`:
    what is rejected is told as a record of a topic. `idle` is after how many microseconds without
    events the clock goes on. `key` signs states. `rows_held` is how many rows Spark holds back
    before it sends them on; it is made to when buckets have put out `bytes_held`. A bucket has
    so many parts that one has about `part_bytes`.
    """

    library: str
    selected: tuple[str, ...]
    lateness: int
    buckets: int
    form: str
    names: tuple[str, ...] = ()
    shuffled: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...] = ()
    row_type: bytes = b""
    has_arrival: bool = False
    with_event: bool = False
    max_jump: float = UNBOUNDED
    of_records: bool = False
    times: Times = NO_TIMES
    idle: int | None = None
    key: bytes | None = None
    rows_held: int = 10_000
    bytes_held: int = 8 << 20
    part_bytes: int = 16 << 10


@lru_cache(maxsize=16)
def planned(library: str, selected: tuple[str, ...]) -> tuple[JobPlan, tuple[StreamGroup, ...]]:
    plan = plan_of(parse(library).checked, selected)
    return plan, stream_groups(plan)


@lru_cache(maxsize=16)
def _routers(library: str, selected: tuple[str, ...]) -> tuple[EventRouter, ...]:
    """A router for each group, kept with its compiled routines for later micro-batches."""
    plan, groups = planned(library, selected)
    return tuple(EventRouter(plan, each.group, keep_unkeyed=False) for each in groups)


def to_bytes(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def columns_of(table: pa.Table, nulls: Sequence[str]) -> pa.Table:
    """The columns of events only, with nulls for attributes that were not shuffled."""
    table = table.drop_columns([name for name in EXTRAS if name in table.schema.names])
    for name in nulls:
        if name not in table.schema.names:
            table = table.append_column(name, pa.nulls(len(table)))
    return table


class ChunkPacker:
    """Packs the rows of one partition into chunks."""

    def __init__(self, task: StreamTask) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        _, self.groups = planned(task.library, task.selected)
        self._partition = context.partitionId() if context is not None else 0
        self._buckets = task.buckets
        self._part = 0
        self._runs = TimeRuns(task.max_jump)
        self._max_jump = task.max_jump
        self.latest: int | None = None

    def observe_run(self, low: int, high: int, events: int) -> None:
        """Events have come with times from `low` to `high`, in steps of no more than a jump."""
        self._runs.add(low, high, events)
        self.latest = high if self.latest is None else max(self.latest, high)

    def observe_times(self, times: pa.Array) -> None:
        ends = pc.min_max(times).as_py()
        if ends["max"] is None:
            return
        if ends["max"] - ends["min"] <= self._max_jump:
            self.observe_run(ends["min"], ends["max"], len(times) - times.null_count)
            return
        found = np.sort(times.drop_null().to_numpy())
        for run in np.split(found, np.flatnonzero(np.diff(found) > self._max_jump) + 1):
            self.observe_run(int(run[0]), int(run[-1]), len(run))

    def pack(self, group: StreamGroup, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows of a table that a group wants, each for the bucket of its key."""
        if group.is_keyed:
            buckets = table.column(KEY).to_numpy() % self._buckets
        else:
            buckets = np.zeros(len(table), np.int64)
        order = np.argsort(buckets, kind="stable")
        table = table.take(pa.array(order)).combine_chunks()
        found, firsts = np.unique(buckets[order], return_index=True)
        ends = [*firsts[1:].tolist(), len(order)]
        packed = [
            self._row(group.name, bucket, to_bytes(table.slice(first, end - first)))
            for bucket, first, end in zip(found.tolist(), firsts.tolist(), ends, strict=True)
        ]
        self._part += 1
        yield _batch(packed)

    def clock_rows(self) -> Iterator[pa.RecordBatch]:
        """For every bucket the times of the partition, as runs without a jump that is too far."""
        if self.latest is not None:
            runs = np.array(self._runs.merged, np.int64).tobytes()
            self._part = CLOCK_PART
            yield _batch(
                [
                    self._row(group.name, bucket, runs)
                    for group in self.groups
                    for bucket in range(group.buckets(self._buckets))
                ]
            )

    def reject(self, rejected: Sequence[Rejected]) -> Iterator[pa.RecordBatch]:
        """Rejected rows, each with all its problems."""
        if rejected:
            table = pa.Table.from_batches([rejected_batch(rejected)])
            yield self._stateless(REJECTED, to_bytes(table))

    def measured(self, measures: Measures) -> Iterator[pa.RecordBatch]:
        measures.latest = self.latest
        if measures.rows:
            yield self._stateless(MEASURES, write_measures(measures).encode())

    def _stateless(self, group: str, chunk: bytes) -> pa.RecordBatch:
        bucket = self._partition % self._buckets
        self._part += 1
        # The time is unused, but a null in it would make pandas turn the column into floats.
        return _batch([(group, bucket, self._partition, self._part, self.latest or 0, chunk)])

    def _row(self, group: str, bucket: int, chunk: bytes | None) -> tuple[Any, ...]:
        # The time of a row is unused, and so is that of a partition that has come to none yet.
        return group, bucket, self._partition, self._part, self.latest or 0, chunk


def pack_ticks(
    given: tuple[Any, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """For every bucket the latest of the times of the wall clock in a partition."""
    task = StreamTask(*given)
    _, groups = planned(task.library, task.selected)
    times = [pc.max(batch.column(0)).as_py() for batch in batches if batch.num_rows]
    if times:
        yield _batch(
            [
                (group.name, bucket, 0, TICK, max(times), None)
                for group in groups
                for bucket in range(group.buckets(task.buckets))
            ]
        )


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = [
        pa.array([row[place] for row in rows], field.type)
        for place, field in enumerate(CHUNK_SCHEMA)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CHUNK_SCHEMA)


# --- rows that become events --------------------------------------------------------------------


def pack_events(
    given: tuple[Any, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of any columns; rows that are no events, or do not fit, come out as rejected."""
    task = StreamTask(*given)
    types = planned(task.library, task.selected)[0].library.types
    yield from pack_read(task, read_rows(batches, types, task.times, task.has_arrival))


def pack_read(
    task: StreamTask, records: Iterator[tuple[int, Event | Rejected]]
) -> Iterator[pa.RecordBatch]:
    """Events that fit their types and rejected records, each with its arrival."""
    packer = ChunkPacker(task)
    routers = _routers(task.library, task.selected)
    held: list[list[_Row]] = [[] for _ in routers]
    rejected: list[Rejected] = []
    read: dict[tuple[str, ...], list[int]] = {}
    destinations = list(zip(held, routers, strict=True))
    low: int | None = None
    high = waiting = in_run = rows_read = 0
    for arrival, event in records:
        rows_read += 1
        if isinstance(event, Rejected):
            rejected.append(event)
            continue
        time = event.time
        if low is None:
            low = high = time
        elif not low <= time <= high:
            if time - high > task.max_jump or low - time > task.max_jump:
                packer.observe_run(low, high, in_run)
                low = high = time
                in_run = 0
            elif time > high:
                high = time
            else:
                low = time
        in_run += 1
        payload = None
        for rows, router in destinations:
            found = router.buckets(event)
            if not found:
                continue
            counted = read.get(router.matched)
            if counted is None:
                read[router.matched] = [1, time]
            else:
                counted[0] += 1
                if time > counted[1]:
                    counted[1] = time
            reports = payload is None
            if payload is None:
                payload = write_event(event)
            for hashed in found:
                rows.append((hashed, time, reports, arrival, payload))
                reports = False
                waiting += 1
        if waiting >= EVENTS_AT_ONCE:
            yield from _packed_events(packer, task, held)
            for rows in held:
                rows.clear()
            waiting = 0
        if len(rejected) >= EVENTS_AT_ONCE:
            yield from packer.reject(rejected)
            rejected = []
    if low is not None:
        packer.observe_run(low, high, in_run)
    yield from packer.reject(rejected)
    yield from packer.measured(_measures_of(read, rows_read))
    yield from _packed_events(packer, task, held)
    yield from packer.clock_rows()


def _measures_of(read: Mapping[tuple[str, ...], Sequence[int]], rows: int) -> Measures:
    """The number of events for each rule, from counts by sets of rules that read an event."""
    measures = Measures(rows=rows)
    for names, (count, latest) in read.items():
        measures.count_read(names, latest, count)
    return measures


def _packed_events(
    packer: ChunkPacker, task: StreamTask, held: Sequence[Sequence[_Row]]
) -> Iterator[pa.RecordBatch]:
    for group, rows in zip(packer.groups, held, strict=True):
        if rows:
            keys, times, reports, arrivals, payloads = zip(*rows, strict=True)
            kept = {TIME: pa.array(times, pa.int64()), REPORTS: pa.array(reports)}
            if group.is_keyed:
                kept[KEY] = pa.array(keys, pa.int64())
            if task.has_arrival:
                kept[ARRIVAL] = pa.array(arrivals, pa.int64())
            kept[PAYLOAD] = pa.array(payloads, pa.binary())
            yield from packer.pack(group, pa.table(kept))

"""Events on their way to buckets: many rows as few chunks, before the shuffle.

In come the rows of a micro-batch, partition by partition; out go rows of another kind: a group, a
bucket of it, and a chunk of Arrow with the events for that bucket, in the order in which they came.
In the end every bucket is told the latest time in the partition, whether it got events or not, so
that all of them know the one clock of the stream. What is late is decided in `bucket`: here nobody
knows what came before.

Rows are read in one of two forms. With `columns`, SQL has told which group wants a row, and its
bucket. With `events`, rows become events here, for what SQL cannot say exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.event import Event, Rejected
from ensue.library import parse
from ensue.spark.plan import Plan, plan_of
from ensue.spark.streaming.groups import StreamGroup, stream_groups
from ensue.spark.streaming.measures import Measures, write_measures
from ensue.spark.worker.event_rows import ARRIVAL, ROW, read_rows, write_event
from ensue.spark.worker.remote_call import called
from ensue.spark.worker.routing import Wanting

TIME = "ensue_time"
"""The time of an event in microseconds since 1970."""
REPORTS = "ensue_reports"
"""Whether this copy of an event is the one that is put out if the event is late."""
PAYLOAD = "payload"
REFUSED, MEASURES = "refused", "measures"
BESIDE = (REFUSED, MEASURES)
"""Groups of no rules: what stands in their chunks is passed on, and keeps no state."""
EXTRAS = (TIME, REPORTS, ARRIVAL)

CHUNK_BYTES = 32 * 2**20
"""How much of a partition is gathered before it is cut into chunks."""
EVENTS_AT_ONCE = 1 << 16
_Row = tuple[int, int, bool, int, bytes]
"""A bucket, a time, whether this copy reports, an arrival, and the event in bytes."""

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


class Task(NamedTuple):
    """What every worker of a stream is told, as plain data.

    `form` is `columns` or `events`. In columns, `names` are those of the columns that travel, and
    `travelling` says for each group which of them it needs, and which attributes are null.
    """

    library: str
    selected: tuple[str, ...]
    lateness: int
    buckets: int
    form: str
    names: tuple[str, ...] = ()
    travelling: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...] = ()
    has_arrival: bool = False
    with_event: bool = False


def bound(function: Any, task: Task) -> Any:
    """The function for one task, in the form that Spark sends to workers."""
    return called(function, tuple(task))


@lru_cache(maxsize=16)
def planned(library: str, selected: tuple[str, ...]) -> tuple[Plan, tuple[StreamGroup, ...]]:
    plan = plan_of(parse(library).checked, selected)
    return plan, stream_groups(plan)


@lru_cache(maxsize=16)
def _wanting(library: str, selected: tuple[str, ...]) -> tuple[Wanting, ...]:
    """For each group who is asked, with all that was compiled for earlier micro-batches."""
    plan, groups = planned(library, selected)
    return tuple(Wanting(plan, each.group, keep_unkeyed=False) for each in groups)


def to_bytes(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


class _Packer:
    """Cuts tables of one partition into chunks."""

    def __init__(self, task: Task) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        _, self.groups = planned(task.library, task.selected)
        self._partition = context.partitionId() if context is not None else 0
        self._buckets = task.buckets
        self._part = 0
        self.latest: int | None = None

    def see(self, latest: int | None) -> None:
        if latest is not None:
            self.latest = latest if self.latest is None else max(self.latest, latest)

    def pack(
        self, group: StreamGroup, buckets: Any, rows: Any, table: pa.Table
    ) -> Iterator[pa.RecordBatch]:
        """Some rows of a table for a group; `buckets` says for each of them its bucket."""
        order = np.argsort(buckets, kind="stable")
        table = table.take(pa.array(rows[order])).combine_chunks()
        found, firsts = np.unique(buckets[order], return_index=True)
        ends = [*firsts[1:].tolist(), len(order)]
        packed = [
            self._row(group.name, bucket, to_bytes(table.slice(first, end - first)))
            for bucket, first, end in zip(found.tolist(), firsts.tolist(), ends, strict=True)
        ]
        self._part += 1
        yield _batch(packed)

    def clocks(self) -> Iterator[pa.RecordBatch]:
        """For every bucket the time that the partition has reached."""
        if self.latest is not None:
            yield _batch(
                [
                    self._row(group.name, bucket, None)
                    for group in self.groups
                    for bucket in range(group.buckets(self._buckets))
                ]
            )

    def refuse(self, refused: Sequence[Rejected]) -> Iterator[pa.RecordBatch]:
        """Rows that are no events, each with all that is wrong with it."""
        if refused:
            yield self._beside(REFUSED, to_bytes(pa.Table.from_batches([_told(refused)])))

    def measured(self, measures: Measures) -> Iterator[pa.RecordBatch]:
        measures.latest = self.latest
        if self.latest is not None:
            yield self._beside(MEASURES, write_measures(measures).encode())

    def _beside(self, group: str, chunk: bytes) -> pa.RecordBatch:
        bucket = self._partition % self._buckets
        self._part += 1
        # Nobody asks for its time, but pandas would turn a column with nulls into one of floats.
        return _batch([(group, bucket, self._partition, self._part, self.latest or 0, chunk)])

    def _row(self, group: str, bucket: int, chunk: bytes | None) -> tuple[Any, ...]:
        return group, bucket, self._partition, self._part, self.latest, chunk


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = [
        pa.array(list(column), field.type)
        for column, field in zip(zip(*rows, strict=True), CHUNK_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CHUNK_SCHEMA)


# --- rows of columns ----------------------------------------------------------------------------


def pack_columns(
    given: tuple[Any, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of a time, a bucket for each group (or null), what travels, and last what is no event.

    That last column is a list, which is empty or null in the rows that are events.
    """
    task = Task(*given)
    packer = _Packer(task)
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        yield from packer.refuse(_refused(task, batch.column(batch.num_columns - 1)))
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
            packer.see(pc.max(batch.column(0)).as_py())
        if size > CHUNK_BYTES:
            yield from _packed(packer, task, pa.Table.from_batches(held))
            held, size = [], 0
    if held:
        yield from _packed(packer, task, pa.Table.from_batches(held))
    yield from packer.clocks()


def _refused(task: Task, column: pa.Array) -> list[Rejected]:
    """What is wrong with rows that SQL has taken for no events."""
    if column.null_count == len(column):
        return []
    return _rejected(task, pa.RecordBatch.from_arrays([column.flatten()], [ROW]))


def _rejected(task: Task, rows: pa.RecordBatch) -> list[Rejected]:
    types = planned(task.library, task.selected)[0].library.types
    found = [each for _, each in read_rows(iter([rows]), types, with_arrival=False)]
    return [each for each in found if isinstance(each, Rejected)]


def _told(refused: Sequence[Rejected]) -> pa.RecordBatch:
    texts = [each.raw if isinstance(each.raw, str) else each.raw.decode() for each in refused]
    problems = pa.array([list(each.problems) for each in refused], pa.list_(pa.string()))
    return pa.RecordBatch.from_pydict({"row": pa.array(texts, pa.string()), "problems": problems})


def refused_rows(
    given: tuple[Any, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Of rows of any columns those that are no events, with all that is wrong with them."""
    task = Task(*given)
    for batch in batches:
        yield _told(_rejected(task, batch))


def _packed(packer: _Packer, task: Task, table: pa.Table) -> Iterator[pa.RecordBatch]:
    first_bucket = 2 if task.has_arrival else 1
    first_column = first_bucket + len(packer.groups)
    claimed = np.zeros(len(table), np.bool_)
    for number, group in enumerate(packer.groups):
        buckets = table.column(first_bucket + number).fill_null(-1).to_numpy()
        rows = np.flatnonzero(buckets >= 0)
        if not len(rows):
            continue
        columns, _ = task.travelling[number]
        kept = {TIME: table.column(0), REPORTS: pa.array(~claimed)}
        if task.has_arrival:
            kept[ARRIVAL] = table.column(1)
        kept |= {task.names[each]: table.column(first_column + each) for each in columns}
        claimed = claimed.copy()
        claimed[rows] = True
        yield from packer.pack(group, buckets[rows], rows, pa.Table.from_pydict(kept))


# --- rows that become events --------------------------------------------------------------------


def pack_events(
    given: tuple[Any, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of any columns. Those that are no events, or do not fit, are put out as refused."""
    task = Task(*given)
    types = planned(task.library, task.selected)[0].library.types
    yield from pack_read(task, read_rows(batches, types, with_arrival=task.has_arrival))


def pack_read(
    task: Task, records: Iterator[tuple[int, Event | Rejected]]
) -> Iterator[pa.RecordBatch]:
    """Events that fit their types and records that are none, each with its arrival.

    Wherever they were read from, what is refused keeps its text and its problems.
    """
    packer = _Packer(task)
    wanting = _wanting(task.library, task.selected)
    held: list[list[_Row]] = [[] for _ in wanting]
    refused: list[Rejected] = []
    read: dict[tuple[str, ...], list[int]] = {}
    asked = [
        (rows, wants, group.buckets(task.buckets))
        for rows, wants, group in zip(held, wanting, packer.groups, strict=True)
    ]
    latest: int | None = None
    waiting = 0
    for arrival, event in records:
        if isinstance(event, Rejected):
            refused.append(event)
            continue
        time = event.time
        if latest is None or time > latest:
            latest = time
        payload = None
        for rows, wants, count in asked:
            found = wants.buckets(event)
            if not found:
                continue
            counted = read.get(wants.matched)
            if counted is None:
                read[wants.matched] = [1, time]
            else:
                counted[0] += 1
                if time > counted[1]:
                    counted[1] = time
            reports = payload is None
            if payload is None:
                payload = write_event(event)
            for bucket in found:
                rows.append((bucket % count, time, reports, arrival, payload))
                reports = False
                waiting += 1
        if waiting >= EVENTS_AT_ONCE:
            packer.see(latest)
            yield from _packed_events(packer, task, held)
            for rows in held:
                rows.clear()
            waiting = 0
        if len(refused) >= EVENTS_AT_ONCE:
            packer.see(latest)
            yield from packer.refuse(refused)
            refused = []
    packer.see(latest)
    yield from packer.refuse(refused)
    yield from packer.measured(_measures(read))
    yield from _packed_events(packer, task, held)
    yield from packer.clocks()


def _measures(read: Mapping[tuple[str, ...], Sequence[int]]) -> Measures:
    """How many events came for each rule, from what came for rules that want the same events."""
    measures = Measures()
    for names, (count, latest) in read.items():
        measures.count_read(names, latest, count)
    return measures


def _packed_events(
    packer: _Packer, task: Task, held: Sequence[Sequence[_Row]]
) -> Iterator[pa.RecordBatch]:
    for group, rows in zip(packer.groups, held, strict=True):
        if rows:
            buckets, times, reports, arrivals, payloads = zip(*rows, strict=True)
            kept = {TIME: pa.array(times, pa.int64()), REPORTS: pa.array(reports)}
            if task.has_arrival:
                kept[ARRIVAL] = pa.array(arrivals, pa.int64())
            kept[PAYLOAD] = pa.array(payloads, pa.binary())
            yield from packer.pack(group, np.array(buckets), np.arange(len(rows)), pa.table(kept))

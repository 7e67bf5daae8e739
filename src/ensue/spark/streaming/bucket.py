"""One bucket of keys over one micro-batch: chunks and the last state in, outputs and a state out.

New events are merged with the waiting ones, by time and then by arrival. The order is settled up to
the latest time of the whole stream, which every bucket receives, less the lateness. Settled events
are read, timers up to that time run, and later events go on waiting. An event from before the time
that an earlier micro-batch had settled is late: it is put out as late and not read. An event to
which the clock may not jump from the events before it, in the order of their times, is rejected,
unless so many agree that the clock begins anew there (`agreeing`). So without such events the
outputs do not depend on the cut into micro-batches. Rejected rows pass through without touching a
state. Outputs go to Spark as they are made: memory does not grow with a gap in the times.

Where an idle time is set, ticks of the wall clock come with the events, from a source whose offsets
Spark logs like all others: a micro-batch that is repeated has the same ticks. Once no event has
come for the idle time, the latest time follows the ticks at that distance.

The module is long because it is the whole life of a bucket in one micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.running.snapshots import damaged_if_impossible
from ensue.engine.timing.agreeing import ClockSpan, Dissent, TimeRuns, clock_spans
from ensue.engine.timing.jumps import jump_problem
from ensue.errors import SnapshotError
from ensue.events.cloudevents import encode
from ensue.events.times import format_time
from ensue.spark.outputs import OutputColumns, output_columns
from ensue.spark.streaming.checkpoint.signing import signed, unsigned
from ensue.spark.streaming.chunks import (
    CLOCK_PART,
    KEY,
    MEASURES,
    REPORTS,
    STATELESS_GROUPS,
    TICK,
    TIME,
    StreamTask,
    from_bytes,
    planned,
    to_bytes,
)
from ensue.spark.streaming.engines import BucketEngine, GroupContext, begin_era, engines_of
from ensue.spark.streaming.measures import Measures, read_measures, write_measures
from ensue.spark.streaming.parts import ByNumber, Parts, SavedParts, SignedMap, Value
from ensue.spark.worker.event_rows import ARRIVAL

KIND = "ensue_kind"
"""The column with the kind of a row: `output`, `late` or `rejected`."""
LEFT_OUT = "ensue_left_out"
"""The column with a late event or a rejected row, as JSON."""
PROBLEMS = "ensue_problems"
"""The column with the reasons why an event or row was left out."""
OUTPUT_KIND, LATE_KIND, REJECTED_KIND = "output", "late", "rejected"

RESULT_DDL = "chunk binary, measures string"
_TEXTS = pa.list_(pa.string())

STATE_VERSION = 2
SLICES = 64
"""Events wait in slices of the lateness, so that few are read again before they are settled."""


class Slice(msgspec.Struct, frozen=True):
    """Events that wait, with times from `low` on, `width` microseconds long.

    `tables` has the numbers of their tables in `form`, in the order of arrival.
    """

    low: int
    width: int
    form: str
    tables: list[int]


class BucketState(msgspec.Struct, frozen=True):
    """What a bucket keeps between micro-batches beside its parts and slices.

    `latest` is the latest time of the stream, and `settled` the time up to which events were read.
    `waiting` has the slices of events that are not yet settled. With the version, the rules and the
    number of buckets in it, a checkpoint cannot be mistaken for another one. `heard` is the wall
    clock of the last micro-batch that had events, where there are ticks. `read` is the number of
    events that the stream has read, and `dissent` has the events that disagree with its clock.
    """

    version: int
    buckets: int
    latest: int
    settled: int
    parts: SavedParts
    waiting: list[Slice]
    tables: int = 0
    heard: int | None = None
    read: int = 0
    dissent: Dissent = msgspec.field(default_factory=Dissent)


def read_state(data: bytes, buckets: int) -> BucketState:
    """Raises `SnapshotError` for bytes that are no state of this stream."""
    try:
        state = msgspec.msgpack.decode(data, type=BucketState)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"the checkpoint holds no state of a stream of ours: {error}") from None
    if state.version != STATE_VERSION:
        raise SnapshotError(
            f"the checkpoint holds version {state.version} of the state of a stream, and this"
            f" version of ensue reads version {STATE_VERSION}: start from a new checkpoint, or use"
            " the version that wrote it"
        )
    if state.buckets != buckets:
        raise SnapshotError(
            f"the checkpoint was written with `buckets={state.buckets}`, and the stream is started"
            f" with {buckets}: a key would be looked for where it is not; start it with"
            f" `buckets={state.buckets}`, or from a new checkpoint"
        )
    return state


class BucketStates(NamedTuple):
    """The states of one bucket in Spark's state store: what it knows, its parts and its slices."""

    head: Value
    parts: ByNumber
    slices: ByNumber


def result_schema(columns: OutputColumns) -> pa.Schema:
    schema = columns.schema.append(pa.field(KIND, pa.string()))
    schema = schema.append(pa.field(LEFT_OUT, pa.string()))
    return schema.append(pa.field(PROBLEMS, _TEXTS))


def result_ddl(columns: OutputColumns) -> str:
    return f"{columns.ddl}, `{KIND}` string, `{LEFT_OUT}` string, `{PROBLEMS}` array<string>"


def run_bucket(
    given: tuple[Any, ...], key: tuple[Any, ...], frames: Iterator[Any], states: Sequence[Any]
) -> Iterator[Any]:
    """Called by Spark for each bucket of a micro-batch; `frames` has its chunks."""
    import pandas as pd  # type: ignore[import-untyped]

    task = StreamTask(*given)
    rows = [row for frame in frames for row in frame.itertuples(index=False)]
    rows.sort(key=lambda row: (row.partition, row.part))
    if key[0] in STATELESS_GROUPS:
        yield pd.DataFrame([_stateless_result(task, key, rows)])
        return
    place = f"bucket {key[1]} of `{key[0]}`"
    store = BucketStates(*states)
    before = None
    if store.head.exists():
        held = bytes(store.head.get()[0])
        before = read_state(unsigned(held, task.key, place), task.buckets)
    tick = max((int(row.latest) for row in rows if row.part == TICK), default=None)
    rows = [row for row in rows if row.part != TICK]
    runs = TimeRuns(task.max_jump)
    for row in rows:
        if row.part == CLOCK_PART:
            for low, high, events in np.frombuffer(row.chunk, np.int64).reshape(-1, 3).tolist():
                runs.add(low, high, events)
    moved: int | None = None
    heard = None if before is None else before.heard
    if rows:
        heard = heard if tick is None else tick
    else:
        # Nothing but ticks.
        moved, heard = _silence(task, before, tick)
        if before is None or moved is None:
            return
    chunks = [from_bytes(row.chunk) for row in rows if row.part != CLOCK_PART]
    # A state that was changed on purpose may show only when events are read.
    with nullcontext() if before is None else damaged_if_impossible():
        bucket = Bucket(task, key[0], store, place, before, Measures(_place_of(key)))
        after = yield from _sent(task, bucket.advance(chunks, runs, moved))
    saved = msgspec.msgpack.encode(msgspec.structs.replace(after, heard=heard))
    store.head.update((signed(saved, task.key, place),))
    yield pd.DataFrame({"chunk": [None], "measures": [write_measures(bucket.measures)]})


def _sent(
    task: StreamTask, made: Generator[pa.Table, None, BucketState]
) -> Generator[Any, None, BucketState]:
    """Tables as rows for Spark, as they are made.

    Spark collects rows up to a number before it sends them on, whatever their size. So rows without
    anything in them follow on rows that hold much.
    """
    import pandas as pd

    held = 0
    while True:
        try:
            table = next(made)
        except StopIteration as end:
            after: BucketState = end.value
            return after
        chunks: list[bytes | None] = [to_bytes(table)]
        held += len(chunks[0] or b"")
        if held > task.bytes_held:
            chunks += [None] * task.rows_held
            held = 0
        yield pd.DataFrame({"chunk": chunks, "measures": [None] * len(chunks)}, dtype=object)


def _silence(
    task: StreamTask, before: BucketState | None, tick: int | None
) -> tuple[int | None, int | None]:
    """Where the clock stands after a tick without events, and when events were heard last.

    The time is None if nothing changes: no event has ever come, or silence has not lasted.
    """
    if before is None or tick is None or task.idle is None:
        return None, None
    if before.heard is None:
        # The first tick after events: silence is counted from here.
        return before.latest, tick
    time = tick - task.idle
    return (time, before.heard) if time >= max(before.heard, before.latest + 1) else (None, None)


def _place_of(key: tuple[Any, ...]) -> str:
    return f"{key[0]}/{key[1]}"


def _stateless_result(
    task: StreamTask, key: tuple[Any, ...], rows: Sequence[Any]
) -> dict[str, Any]:
    """Rejected rows, or the measures of partitions, which keep no state."""
    measures = Measures(_place_of(key))
    if key[0] == MEASURES:
        for row in rows:
            measures.add(read_measures([row.chunk]))
        return {"chunk": None, "measures": write_measures(measures)}
    rejected = pa.concat_tables([from_bytes(row.chunk) for row in rows])
    measures.rejected = len(rejected)
    plan, _ = planned(task.library, task.selected)
    columns = output_columns(plan, with_event=task.with_event)
    known: dict[str, Any] = {
        KIND: [REJECTED_KIND] * len(rejected),
        LEFT_OUT: rejected.column("row"),
        PROBLEMS: rejected.column("problems"),
    }
    made = _table(result_schema(columns), known, len(rejected))
    return {"chunk": to_bytes(made), "measures": write_measures(measures)}


class Bucket:
    """One bucket in one micro-batch."""

    def __init__(
        self,
        task: StreamTask,
        group_name: str,
        store: BucketStates,
        place: str,
        before: BucketState | None,
        measures: Measures,
    ) -> None:
        self.measures = measures
        self._task = task
        self._before = before
        self._context = context = _context_of(task, group_name)
        self._store = SignedMap(store.parts, task.key, f"{place}, part")
        self._waiting = SignedMap(store.slices, task.key, f"{place}, slice")
        if before is None:
            saved = Parts.new(context.text, [rule.name for rule in context.group.rules])
        else:
            saved = before.parts
            begin_era(context, saved)
        self._parts = Parts(self._store, saved, task.part_bytes, context.group.is_keyed)
        self._settled = None if before is None else before.settled

    def advance(
        self, chunks: Sequence[pa.Table], runs: TimeRuns, moved: int | None
    ) -> Generator[pa.Table, None, BucketState]:
        """The outputs and late events of one micro-batch, in parts, and what is known after it.

        `runs` has the times of all events of the micro-batch; `moved` is where silence has moved
        the clock.
        """
        task, before, context, measures = self._task, self._before, self._context, self.measures
        came = pa.concat_tables(chunks).combine_chunks() if chunks else None
        read, latest = (0, None) if before is None else (before.read, before.latest)
        dissent = Dissent() if before is None else before.dissent
        found, taken = clock_spans(runs, latest, task.max_jump, read, dissent)
        assert found, "a bucket is called for events, or has a state"
        if moved is not None:
            found[-1] = found[-1]._replace(high=max(found[-1].high, moved))
        if came is not None:
            far = ~_between(came, found)
            if far.any():
                yield _ahead_rows(context, came.filter(pa.array(far)), found, measures)
                came = came.filter(pa.array(~far))
        if before is not None and came is not None:
            settled = before.latest - task.lateness
            late = pc.less(came.column(TIME), settled)
            if pc.any(late).as_py():
                yield _late_rows(context, came.filter(late), settled, measures)
                came = came.filter(pc.invert(late))
        settled = found[-1].high - task.lateness
        # Behind a clock that begins anew nothing waits.
        reached = settled if len(found) == 1 else found[-2].high
        kept, waited = self._settle(max(settled, reached))
        events = _in_order(task, [*waited, *([came] if came is not None else [])])
        for span in found[:-1]:
            ready, events = _split_at(events, span.high)
            yield from self._run(ready, span.high)
            self._parts.clear()
            self._parts.saved.clock = None
            self._settled = None
        ready, waiting = _split_at(events, settled)
        yield from self._run(ready, settled)
        kept, tables = self._wait(kept, waiting)
        for rule, size in self._parts.saved.rule_bytes.items():
            if size:
                measures.rule(rule).state_bytes += size
        saved = self._parts.close()
        measures.buckets += 1
        measures.parts += saved.count
        measures.parts_read += self._store.read
        measures.parts_written += self._store.written
        return BucketState(
            STATE_VERSION,
            task.buckets,
            found[-1].high,
            max(settled, reached),
            saved,
            kept,
            tables,
            read=read + taken,
            dissent=dissent,
        )

    def _settle(self, until: int) -> tuple[list[Slice], list[pa.Table]]:
        """The slices that go on waiting, and the events of others that are settled now.

        A slice that is settled in part stays as it is, and is read again.
        """
        kept, found = [], []
        for each in self._before.waiting if self._before is not None else ():
            if each.low > until:
                kept.append(each)
                continue
            for number in each.tables:
                table = self._context.in_form(from_bytes(self._waiting.get(number)), each.form)
                times = table.column(TIME)
                ready = pc.less_equal(times, until)
                if self._settled is not None:
                    ready = pc.and_(ready, pc.greater(times, self._settled))
                found.append(table.filter(ready))
            if each.low + each.width - 1 > until:
                kept.append(each)
            else:
                for number in each.tables:
                    self._waiting.drop(number)
        return kept, found

    def _wait(self, kept: list[Slice], waiting: pa.Table | None) -> tuple[list[Slice], int]:
        """New events that are not settled, as tables beside those that wait already."""
        number = 0 if self._before is None else self._before.tables
        if waiting is None:
            return kept, number
        width, form = max(1, -(-self._task.lateness // SLICES)), self._task.form
        times = waiting.column(TIME).to_numpy()
        lows = times // width * width
        firsts = np.flatnonzero(np.diff(lows, prepend=lows[0] - 1))
        known = {(each.low, each.width, each.form): each for each in kept}
        for first, end in zip(firsts.tolist(), [*firsts[1:].tolist(), len(lows)], strict=True):
            place = (int(lows[first]), width, form)
            if place not in known:
                known[place] = Slice(*place, [])
            known[place].tables.append(number)
            self._waiting.put(number, to_bytes(waiting.slice(first, end - first), "zstd"))
            number += 1
        return list(known.values()), number

    def _run(self, ready: pa.Table | None, settled: int) -> Iterator[pa.Table]:
        """Read events and let time pass under the keys for which either changes anything."""
        hashes = None
        if ready is not None and KEY in ready.schema.names:
            hashes = ready.column(KEY).to_numpy()
        needed = self._parts.needed(hashes, ready is not None, settled)
        if not needed:
            return
        context, saved = self._context, self._parts.saved
        running = engines_of(context, self._parts.load(needed), saved, self._settled)
        made = _read(running.values(), ready, settled)
        yield from _counted(context, made, self.measures)
        states = [engine.save(saved) for engine in running.values()]
        together = {name: state for own in states for name, state in own.items()}
        if hashes is None and ready is not None:
            hashes = np.zeros(1, np.int64)
        self._parts.save(together, hashes, settled, context)


def _read(
    running: Iterable[BucketEngine], ready: pa.Table | None, settled: int
) -> Iterator[pa.Table]:
    for engine in running:
        if ready is not None:
            yield from engine.read(ready)
        yield from engine.advance(settled)


def _between(came: pa.Table, found: Sequence[ClockSpan]) -> Any:
    """Which events lie in a span that is read."""
    times = came.column(TIME).to_numpy()
    lows, highs = [each.low for each in found], [each.high for each in found]
    place = np.searchsorted(highs, times)
    return (place < len(found)) & (times >= np.array([*lows, np.inf])[place])


def _counted(
    context: GroupContext, parts: Iterator[pa.Table], measures: Measures
) -> Iterator[pa.Table]:
    """Outputs as rows of the result, which are counted."""
    schema = result_schema(context.columns)
    for part in parts:
        if part.num_rows:
            made = pa.concat_tables([schema.empty_table(), _as_outputs(part)])
            measures.count_outputs(made)
            yield made


_context_of = lru_cache(maxsize=64)(GroupContext.of)


def _in_order(task: StreamTask, tables: Sequence[pa.Table]) -> pa.Table | None:
    """Waiting and new events, by time and then by arrival."""
    if not any(map(len, tables)):
        return None
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    times = table.column(TIME).to_numpy()
    if task.has_arrival:
        order = np.lexsort((table.column(ARRIVAL).to_numpy(), times))
    else:
        # Waiting events arrived first, and a stable sort keeps them first.
        order = np.argsort(times, kind="stable")
    return table.take(pa.array(order))


def _split_at(table: pa.Table | None, settled: int) -> tuple[pa.Table | None, pa.Table | None]:
    """The settled rows, and the waiting ones."""
    if table is None:
        return None, None
    count = int(np.searchsorted(table.column(TIME).to_numpy(), settled, side="right"))
    ready, waiting = table.slice(0, count), table.slice(count)
    return ready if ready.num_rows else None, waiting if waiting.num_rows else None


def _as_outputs(made: pa.Table) -> pa.Table:
    kinds = pa.array([OUTPUT_KIND] * len(made), pa.string())
    made = made.append_column(pa.field(KIND, pa.string()), kinds)
    made = made.append_column(pa.field(LEFT_OUT, pa.string()), pa.nulls(len(made), pa.string()))
    return made.append_column(pa.field(PROBLEMS, _TEXTS), pa.nulls(len(made), _TEXTS))


def _late_rows(context: GroupContext, late: pa.Table, settled: int, measures: Measures) -> pa.Table:
    """Late events, each reported once, also if several groups want it."""
    types = context.plan.library.types
    measures.count_late(context.events(late), context.group.rules, types)
    events = list(context.events(late.filter(late.column(REPORTS))))
    measures.late += len(events)
    why = f"it came late: the order of events was settled up to {format_time(settled)} before it"
    known: dict[str, Any] = {
        "id": [event.id for event in events],
        "source": [event.source for event in events],
        "type": [event.type for event in events],
        KIND: [LATE_KIND] * len(events),
        "time": pa.array([event.time for event in events], pa.int64()),
        LEFT_OUT: [encode(event).decode() for event in events],
        PROBLEMS: [[why]] * len(events),
    }
    return _table(result_schema(context.columns), known, len(events))


def _ahead_rows(
    context: GroupContext, ahead: pa.Table, found: Sequence[ClockSpan], measures: Measures
) -> pa.Table:
    """Events to which the clock may not jump, each reported once."""
    events = list(context.events(ahead.filter(ahead.column(REPORTS))))
    measures.rejected += len(events)
    task = context.task
    reached = [max(each.high for each in found if each.high < event.time) for event in events]
    problems = [
        [jump_problem(event.time, latest, task.max_jump)]
        for event, latest in zip(events, reached, strict=True)
    ]
    shown = [encode(event) for event in events]
    if task.of_records:
        told = zip(shown, problems, strict=True)
        shown = [msgspec.json.encode({"value": value, "problems": why}) for value, why in told]
    known: dict[str, Any] = {
        KIND: [REJECTED_KIND] * len(events),
        LEFT_OUT: [each.decode() for each in shown],
        PROBLEMS: problems,
    }
    return _table(result_schema(context.columns), known, len(events))


def _table(schema: pa.Schema, known: Mapping[str, Any], count: int) -> pa.Table:
    """A table of a schema, with nulls for columns that are not in `known`."""
    arrays = []
    for field in schema:
        values = known.get(field.name)
        if values is None:
            arrays.append(pa.nulls(count, field.type))
        elif isinstance(values, list):
            arrays.append(pa.array(values, field.type))
        else:
            arrays.append(values.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def chunk_opener() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that turns the chunks of buckets into rows.

    Spark pickles an inner function by value, so that workers which only open chunks need not import
    the engines.
    """

    def unpack(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            for chunk in batch.column(0).drop_null():
                rows = pyarrow.ipc.open_stream(chunk.as_py()).read_all()
                yield from rows.combine_chunks().to_batches()

    return unpack

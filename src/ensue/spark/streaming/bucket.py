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

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

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
from ensue.spark.streaming.engines import BucketEngine, GroupContext, Saved, engines_of
from ensue.spark.streaming.measures import Measures, read_measures, state_sizes, write_measures
from ensue.spark.worker.event_rows import ARRIVAL

KIND = "ensue_kind"
"""The column with the kind of a row: `output`, `late` or `rejected`."""
LEFT_OUT = "ensue_left_out"
"""The column with a late event or a rejected row, as JSON."""
PROBLEMS = "ensue_problems"
"""The column with the reasons why an event or row was left out."""
OUTPUT_KIND, LATE_KIND, REJECTED_KIND = "output", "late", "rejected"

RESULT_DDL = "chunk binary, measures string"
STATE_DDL = "saved binary"
_TEXTS = pa.list_(pa.string())

STATE_VERSION = 1


class BucketState(msgspec.Struct, frozen=True):
    """The state of a bucket between micro-batches, in Spark's state store.

    `latest` is the latest time of the stream. `waiting` holds the events that are not yet settled,
    as an Arrow stream in `form`. `engines` has, by the name of an engine, the text of its rules and
    its snapshot, which holds only keys with a partial match. With the version, the rules and the
    number of buckets in it, a checkpoint cannot be mistaken for another one. `heard` is the wall
    clock of the last micro-batch that had events, where there are ticks. `read` is the number of
    events that the stream has read, and `dissent` has the events that disagree with its clock.
    """

    version: int
    buckets: int
    form: str
    latest: int
    waiting: bytes | None
    engines: dict[str, tuple[str, bytes]]
    heard: int | None = None
    read: int = 0
    dissent: Dissent = msgspec.field(default_factory=Dissent)


def write_state(state: BucketState) -> bytes:
    return msgspec.msgpack.encode(state)


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


def result_schema(columns: OutputColumns) -> pa.Schema:
    schema = columns.schema.append(pa.field(KIND, pa.string()))
    schema = schema.append(pa.field(LEFT_OUT, pa.string()))
    return schema.append(pa.field(PROBLEMS, _TEXTS))


def result_ddl(columns: OutputColumns) -> str:
    return f"{columns.ddl}, `{KIND}` string, `{LEFT_OUT}` string, `{PROBLEMS}` array<string>"


def run_bucket(
    given: tuple[Any, ...], key: tuple[Any, ...], frames: Iterator[Any], state: Any
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
    before = None
    if state.exists:
        before = read_state(unsigned(state.get[0], task.key, place), task.buckets)
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
    measures = Measures(_place_of(key))
    made = advance_bucket(task, key[0], chunks, runs, before, measures, moved)
    # A state that was changed on purpose may show only when events are read.
    with nullcontext() if before is None else damaged_if_impossible():
        after = yield from _sent(task, made)
    saved = write_state(msgspec.structs.replace(after, heard=heard))
    state.update((signed(saved, task.key, place),))
    yield pd.DataFrame({"chunk": [None], "measures": [write_measures(measures)]})


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


def advance_bucket(
    task: StreamTask,
    group_name: str,
    chunks: Sequence[pa.Table],
    runs: TimeRuns,
    before: BucketState | None,
    measures: Measures,
    moved: int | None = None,
) -> Generator[pa.Table, None, BucketState]:
    """The outputs and late events of one micro-batch, in parts, and the state after it.

    `runs` has the times of all events of the micro-batch; `moved` is where silence has moved the
    clock.
    """
    context = _context_of(task, group_name)
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
    engines = before.engines if before is not None else {}
    events = _in_order(context, before, came)
    for span in found[:-1]:
        # The clock begins anew behind it, so that nothing in it has to wait, or is kept.
        ready, events = _split_at(events, span.high)
        _, parts = _run(context, engines, ready, span.high, context.group.has_timers)
        yield from _counted(context, parts, measures)
        engines = {}
    settled = found[-1].high - task.lateness
    ready, waiting = _split_at(events, settled)
    passes = context.group.has_timers or _window_passes(context, before, settled)
    running, parts = _run(context, engines, ready, settled, passes)
    yield from _counted(context, parts, measures)
    if running is not None:
        engines = {name: engine.save() for name, engine in running.items()}
    for name, (_, snapshot) in engines.items():
        part = context.parts.get(name)
        rules = [] if part is None else [each.name for each in part.correlations]
        for rule, size in state_sizes(name, rules, snapshot).items():
            measures.rule(rule).state_bytes += size
    return BucketState(
        STATE_VERSION,
        task.buckets,
        task.form,
        found[-1].high,
        None if waiting is None else to_bytes(waiting, "zstd"),
        engines,
        read=read + taken,
        dissent=dissent,
    )


def _between(came: pa.Table, found: Sequence[ClockSpan]) -> Any:
    """Which events lie in a span that is read."""
    times = came.column(TIME).to_numpy()
    lows, highs = [each.low for each in found], [each.high for each in found]
    place = np.searchsorted(highs, times)
    return (place < len(found)) & (times >= np.array([*lows, np.inf])[place])


def _run(
    context: GroupContext,
    saved: Mapping[str, Saved],
    ready: pa.Table | None,
    settled: int,
    passes: bool,
) -> tuple[dict[str, BucketEngine] | None, Iterator[pa.Table]]:
    """The engines that read events and let time pass, and what they put out; None if none has to.

    `passes`: time alone may change something. The engines are up to date once all of what they put
    out was taken.
    """
    texts = context.texts
    changed = any(saved.get(name, (text,))[0] != text for name, text in texts.items())
    gone = saved.keys() - texts.keys()
    if ready is None and not (saved and (changed or gone or passes)):
        return None, iter(())
    running = engines_of(context, saved)

    def outputs() -> Iterator[pa.Table]:
        for engine in running.values():
            if ready is not None:
                yield from engine.read(ready)
            yield from engine.advance(settled)

    return running, outputs()


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


def _window_passes(context: GroupContext, before: BucketState | None, settled: int) -> bool:
    """Whether keys may have come to hold nothing, though no event of the bucket has come.

    That is looked for once in the length of the longest window.
    """
    longest = context.longest_wait
    if before is None or longest is None:
        return False
    return (before.latest - context.task.lateness) // longest < settled // longest


_context_of = lru_cache(maxsize=64)(GroupContext.of)


def _in_order(
    context: GroupContext, before: BucketState | None, came: pa.Table | None
) -> pa.Table | None:
    """Waiting and new events, by time and then by arrival."""
    parts = []
    if before is not None and before.waiting is not None:
        parts.append(context.in_form(from_bytes(before.waiting), before.form))
    if came is not None and came.num_rows:
        parts.append(came)
    if not parts:
        return None
    table = pa.concat_tables(parts, promote_options="permissive").combine_chunks()
    times = table.column(TIME).to_numpy()
    if context.task.has_arrival:
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

"""One bucket of keys over one micro-batch: chunks and the state of before in, outputs out.

The events that came are put among those that wait, by time and then by arrival. The latest time of
the whole stream, which every bucket is told, less the lateness is the time up to which the order is
settled: what is not after it is read, all timers up to it run, and the rest goes on waiting. What
came from before the time that an earlier micro-batch had settled is late: it is put out as such and
not read. So what follows does not depend on how the stream was cut, as long as nothing is late.

Rules run in columns (`BatchEngine`) where they have such a form and the events come in columns, and
else event by event (`step`), whose snapshots hold no history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch import BatchEngine, path_of
from ensue.engine.run import Run
from ensue.events.arrow import read_batches
from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary
from ensue.lang.printer import print_library
from ensue.library import parse
from ensue.spark.mapping import ARRIVAL, DEFAULT_SOURCE, read_event
from ensue.spark.outputs import OutputColumns, output_columns, selected_rows
from ensue.spark.plan import Plan
from ensue.spark.streaming.groups import StreamGroup
from ensue.spark.streaming.packing import (
    EXTRAS,
    PAYLOAD,
    REPORTS,
    TIME,
    Task,
    from_bytes,
    planned,
    to_bytes,
)
from ensue.spark.streaming.state import VERSION, BucketState, read_state, write_state

KIND = "ensue_kind"
"""The column that says what a row is: `output` or `late`."""
LATE = "ensue_late"
"""The column that has an event that came too late, as CloudEvents JSON."""
OUTPUT_KIND, LATE_KIND = "output", "late"

MADE_DDL = "chunk binary"
STATE_DDL = "saved binary"


def made_schema(columns: OutputColumns) -> pa.Schema:
    schema = columns.schema.append(pa.field(KIND, pa.string()))
    return schema.append(pa.field(LATE, pa.string()))


def made_ddl(columns: OutputColumns) -> str:
    return f"{columns.ddl}, `{KIND}` string, `{LATE}` string"


# --- engines ------------------------------------------------------------------------------------


class Engine(Protocol):
    """Reads events that are in order, lets time pass, and saves itself."""

    name: str

    def read(self, table: pa.Table) -> pa.Table: ...

    def advance(self, time: int) -> pa.Table: ...

    def snapshot(self) -> bytes: ...


class Setting(NamedTuple):
    """What engines of a group need to know."""

    task: Task
    plan: Plan
    part: CheckedLibrary
    nulls: tuple[str, ...]
    columns: OutputColumns


class ColumnEngine:
    name = "batch"

    def __init__(self, setting: Setting, snapshot: bytes | None) -> None:
        self._setting = setting
        self._engine = BatchEngine(setting.part)
        if snapshot is not None:
            self._engine.restore(snapshot)

    def read(self, table: pa.Table) -> pa.Table:
        made = self._engine.push_batch(_with_nulls(table, self._setting.nulls), DEFAULT_SOURCE)
        if self._engine.rejected or self._engine.late:
            problems = [p for each in self._engine.rejected[:3] for p in each.problems]
            raise RuntimeError(
                "rows that SQL took for events were refused in the worker; please report this: "
                + "; ".join(problems)
            )
        chosen = selected_rows(made, self._setting.plan.selected)
        return self._setting.columns.table(chosen)

    def advance(self, time: int) -> pa.Table:
        # Only rules without timers run here, and for them time alone changes nothing.
        return self._setting.columns.schema.empty_table()

    def snapshot(self) -> bytes:
        return self._engine.snapshot()


class EventEngine:
    name = "step"

    def __init__(self, setting: Setting, snapshot: bytes | None) -> None:
        self._setting = setting
        part = setting.part
        self._run = Run(part, "step") if snapshot is None else Run.resume(part, snapshot)

    def read(self, table: pa.Table) -> pa.Table:
        push = self._run.push
        return self._table(
            [output for event in _events(self._setting, table) for output in push(event)]
        )

    def advance(self, time: int) -> pa.Table:
        return self._table(self._run.advance(time))

    def snapshot(self) -> bytes:
        return self._run.snapshot()

    def _table(self, outputs: Sequence[Event]) -> pa.Table:
        selected = frozenset(self._setting.plan.selected)
        chosen = [(b"", each) for each in outputs if each.extensions["correlation"] in selected]
        return pa.Table.from_batches([self._setting.columns.batch(chosen)])


def _engine(setting: Setting, snapshot: bytes | None) -> Engine:
    if _runs_in_columns(setting):
        return ColumnEngine(setting, snapshot)
    return EventEngine(setting, snapshot)


def _runs_in_columns(setting: Setting) -> bool:
    if setting.task.form != "columns" or setting.columns.structs or setting.columns.with_event:
        return False
    return all(path_of(each)[0].name != "events" for each in setting.part.correlations)


def _with_nulls(table: pa.Table, nulls: Sequence[str]) -> pa.Table:
    table = table.drop_columns([name for name in EXTRAS if name in table.schema.names])
    for name in nulls:
        table = table.append_column(name, pa.nulls(len(table)))
    return table


def _events(setting: Setting, table: pa.Table) -> Iterator[Event]:
    types = setting.part.types
    if setting.task.form == "events":
        for payload in table.column(PAYLOAD).to_pylist():
            yield read_event(payload, types)
        return
    whole = _with_nulls(table, setting.nulls)
    for record in read_batches(
        whole.to_batches(), whole.schema, types, DEFAULT_SOURCE, where="the rows"
    ):
        if not isinstance(record, Event):
            raise RuntimeError(
                "a row that SQL took for an event was refused in the worker; please report this: "
                + "; ".join(record.problems)
            )
        yield record


# --- one micro-batch ----------------------------------------------------------------------------


def run_bucket(
    given: tuple[Any, ...], key: tuple[Any, ...], frames: Iterator[Any], state: Any
) -> Iterator[Any]:
    """What Spark calls for each bucket of a micro-batch; `frames` has its chunks."""
    import pandas as pd

    task = Task(*given)
    rows = [row for frame in frames for row in frame.itertuples(index=False)]
    rows.sort(key=lambda row: (row.partition, row.part))
    chunks = [from_bytes(row.chunk) for row in rows if row.chunk is not None]
    # A column with nulls in it reaches Python as reals, so times travel beside it as integers.
    latest = max(int(row.latest) for row in rows if row.chunk is None)
    before = read_state(state.get[0], task.buckets, task.form) if state.exists else None
    made, after = advance_bucket(task, key[0], chunks, latest, before)
    state.update((write_state(after),))
    if made.num_rows:
        yield pd.DataFrame({"chunk": [to_bytes(made)]})


def advance_bucket(
    task: Task,
    group_name: str,
    chunks: Sequence[pa.Table],
    latest: int,
    before: BucketState | None,
) -> tuple[pa.Table, BucketState]:
    """The outputs and late events of one micro-batch, and the state after it."""
    setting = _setting(task, group_name)
    if before is not None:
        latest = max(latest, before.latest)
    came = pa.concat_tables(chunks).combine_chunks() if chunks else None
    made: list[pa.Table] = []
    if came is not None and before is not None:
        late = pc.less(came.column(TIME), before.latest - task.lateness)
        if pc.any(late).as_py():
            made.append(_late_rows(setting, came.filter(late)))
            came = came.filter(pc.invert(late))
    settled = latest - task.lateness
    ready, waiting = _cut(_in_order(task, before, came), settled)
    text = print_library(setting.part.tree)
    snapshot = before.snapshot if before is not None else None
    name = before.engine if before is not None else ""
    if ready is not None or _has_timers(setting):
        if before is not None and before.snapshot is not None and before.library != text:
            snapshot = _changed(setting, before)
        engine = _engine(setting, snapshot)
        if ready is not None:
            made.append(_as_outputs(engine.read(ready)))
        made.append(_as_outputs(engine.advance(settled)))
        snapshot, name = engine.snapshot(), engine.name
    elif before is not None:
        text = before.library
    after = BucketState(
        VERSION,
        task.buckets,
        text,
        task.form,
        name,
        latest,
        None if waiting is None else to_bytes(waiting, "zstd"),
        snapshot,
    )
    schema = made_schema(setting.columns)
    return pa.concat_tables(made) if made else schema.empty_table(), after


def _setting(task: Task, group_name: str) -> Setting:
    plan, groups = planned(task.library, task.selected)
    group = next(each for each in groups if each.name == group_name)
    nulls = task.travelling[group.group.number][1] if task.form == "columns" else ()
    columns = output_columns(plan, with_event=task.with_event)
    return Setting(task, plan, plan.part(group.group), nulls, columns)


def _has_timers(setting: Setting) -> bool:
    return any(rule.has_timers for group in setting.plan.groups for rule in group.rules)


def _in_order(task: Task, before: BucketState | None, came: pa.Table | None) -> pa.Table | None:
    """What waited and what came, by time and then by arrival."""
    parts = []
    if before is not None and before.waiting is not None:
        parts.append(from_bytes(before.waiting))
    if came is not None and came.num_rows:
        parts.append(came)
    if not parts:
        return None
    table = pa.concat_tables(parts, promote_options="default").combine_chunks()
    times = table.column(TIME).to_numpy()
    if task.has_arrival:
        order = np.lexsort((table.column(ARRIVAL).to_numpy(), times))
    else:
        # What waited came before all that has come now, and a stable order keeps it there.
        order = np.argsort(times, kind="stable")
    return table.take(pa.array(order))


def _cut(table: pa.Table | None, settled: int) -> tuple[pa.Table | None, pa.Table | None]:
    if table is None:
        return None, None
    count = int(np.searchsorted(table.column(TIME).to_numpy(), settled, side="right"))
    ready, waiting = table.slice(0, count), table.slice(count)
    return ready if ready.num_rows else None, waiting if waiting.num_rows else None


def _as_outputs(made: pa.Table) -> pa.Table:
    made = made.append_column(
        pa.field(KIND, pa.string()), pa.array([OUTPUT_KIND] * len(made), pa.string())
    )
    return made.append_column(pa.field(LATE, pa.string()), pa.nulls(len(made), pa.string()))


def _late_rows(setting: Setting, late: pa.Table) -> pa.Table:
    """Late events, each once, whatever the number of groups that it came to."""
    reported = late.filter(late.column(REPORTS))
    events = list(_events(setting, reported))
    schema = made_schema(setting.columns)
    known: dict[str, Any] = {
        "id": [event.id for event in events],
        "source": [event.source for event in events],
        "type": [event.type for event in events],
        KIND: [LATE_KIND] * len(events),
        LATE: [encode(event).decode() for event in events],
    }
    arrays = []
    for field in schema:
        if field.name == "time":
            times = pa.array([event.time for event in events], pa.int64())
            arrays.append(times.cast(field.type))
        elif field.name in known:
            arrays.append(pa.array(known[field.name], pa.string()))
        else:
            arrays.append(pa.nulls(len(events), field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _changed(setting: Setting, before: BucketState) -> bytes | None:
    """The snapshot for other rules: one that reads the same keeps its state."""
    assert before.snapshot is not None
    old = parse(before.library).checked
    if before.engine == "batch":
        if not _runs_in_columns(setting):
            return None
        engine = BatchEngine(old)
        engine.restore(before.snapshot)
        engine.change(setting.part)
        return engine.snapshot()
    if _runs_in_columns(setting):
        return None
    run = Run.resume(old, before.snapshot)
    run.change(setting.part)
    return run.snapshot()


# --- what leaves ----------------------------------------------------------------------------------


def unpack(given: tuple[Any, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of chunks that buckets have made."""
    for batch in batches:
        for chunk in batch.column(0):
            yield from from_bytes(chunk.as_py()).combine_chunks().to_batches()


def group_names(plan_groups: Sequence[StreamGroup]) -> tuple[str, ...]:
    return tuple(group.name for group in plan_groups)

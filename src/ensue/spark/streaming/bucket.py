"""One bucket of keys over one micro-batch: chunks and the state of before in, outputs out.

The events that came are put among those that wait, by time and then by arrival. The latest time of
the whole stream, which every bucket is told, less the lateness is the time up to which the order is
settled: what is not after it is read, all timers up to it run, and the rest goes on waiting. What
came from before the time that an earlier micro-batch had settled is late: it is put out as such and
not read. So what follows does not depend on how the stream was cut, as long as nothing is late.
Rows that are no events pass through here on their way out, and touch no state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.cloudevents import encode
from ensue.events.times import format_time
from ensue.spark.outputs import OutputColumns, output_columns
from ensue.spark.streaming.chunks import (
    BESIDE,
    MEASURES,
    REPORTS,
    TIME,
    Task,
    from_bytes,
    planned,
    to_bytes,
)
from ensue.spark.streaming.engines import Setting, engines_of
from ensue.spark.streaming.measures import Measures, read_measures, state_sizes, write_measures
from ensue.spark.streaming.state import VERSION, BucketState, read_state, write_state
from ensue.spark.worker.event_rows import ARRIVAL

KIND = "ensue_kind"
"""The column that says what a row is: `output`, `late` or `rejected`."""
LEFT_OUT = "ensue_left_out"
"""The column that has what was not read: a late event, or a row that is no event, as JSON."""
PROBLEMS = "ensue_problems"
"""The column that says why it was not read."""
OUTPUT_KIND, LATE_KIND, REJECTED_KIND = "output", "late", "rejected"

MADE_DDL = "chunk binary, measures string"
STATE_DDL = "saved binary"
_TEXTS = pa.list_(pa.string())


def made_schema(columns: OutputColumns) -> pa.Schema:
    schema = columns.schema.append(pa.field(KIND, pa.string()))
    schema = schema.append(pa.field(LEFT_OUT, pa.string()))
    return schema.append(pa.field(PROBLEMS, _TEXTS))


def made_ddl(columns: OutputColumns) -> str:
    return f"{columns.ddl}, `{KIND}` string, `{LEFT_OUT}` string, `{PROBLEMS}` array<string>"


def run_bucket(
    given: tuple[Any, ...], key: tuple[Any, ...], frames: Iterator[Any], state: Any
) -> Iterator[Any]:
    """What Spark calls for each bucket of a micro-batch; `frames` has its chunks."""
    import pandas as pd  # type: ignore[import-untyped]

    task = Task(*given)
    rows = [row for frame in frames for row in frame.itertuples(index=False)]
    rows.sort(key=lambda row: (row.partition, row.part))
    if key[0] in BESIDE:
        yield pd.DataFrame([_passed_on(task, key[0], rows)])
        return
    latest = max(row.latest for row in rows)
    chunks = [from_bytes(row.chunk) for row in rows if row.chunk is not None]
    before = read_state(state.get[0], task.buckets) if state.exists else None
    measures = Measures()
    made, after = advance_bucket(task, key[0], chunks, int(latest), before, measures)
    state.update((write_state(after),))
    chunk = to_bytes(made) if made.num_rows else None
    yield pd.DataFrame({"chunk": [chunk], "measures": [write_measures(measures)]})


def _passed_on(task: Task, group: str, rows: Sequence[Any]) -> dict[str, Any]:
    """What stands beside events: rows that are none, and what partitions have measured."""
    measures = Measures()
    if group == MEASURES:
        for row in rows:
            measures.add(read_measures([row.chunk]))
        return {"chunk": None, "measures": write_measures(measures)}
    refused = pa.concat_tables([from_bytes(row.chunk) for row in rows])
    measures.rejected = len(refused)
    plan, _ = planned(task.library, task.selected)
    columns = output_columns(plan, with_event=task.with_event)
    known: dict[str, Any] = {
        KIND: [REJECTED_KIND] * len(refused),
        LEFT_OUT: refused.column("row"),
        PROBLEMS: refused.column("problems"),
    }
    made = _table(made_schema(columns), known, len(refused))
    return {"chunk": to_bytes(made), "measures": write_measures(measures)}


def advance_bucket(
    task: Task,
    group_name: str,
    chunks: Sequence[pa.Table],
    latest: int,
    before: BucketState | None,
    measures: Measures,
) -> tuple[pa.Table, BucketState]:
    """The outputs and late events of one micro-batch, and the state after it."""
    setting = _setting(task, group_name)
    made: list[pa.Table] = []
    came = pa.concat_tables(chunks).combine_chunks() if chunks else None
    if before is not None:
        latest = max(latest, before.latest)
        if came is not None:
            late = pc.less(came.column(TIME), before.latest - task.lateness)
            if pc.any(late).as_py():
                settled = before.latest - task.lateness
                made.append(_late_rows(setting, came.filter(late), settled, measures))
                came = came.filter(pc.invert(late))
    settled = latest - task.lateness
    ready, waiting = _cut(_in_order(setting, before, came), settled)
    engines = before.engines if before is not None else {}
    changed = any(engines.get(name, (text,))[0] != text for name, text in setting.texts.items())
    gone = engines.keys() - setting.texts.keys()
    if ready is not None or (engines and (changed or gone or setting.group.has_timers)):
        running = engines_of(setting, engines)
        for engine in running.values():
            if ready is not None:
                made.append(_as_outputs(engine.read(ready)))
            made.append(_as_outputs(engine.advance(settled)))
        engines = {name: engine.save() for name, engine in running.items()}
    after = BucketState(
        VERSION,
        task.buckets,
        task.form,
        latest,
        None if waiting is None else to_bytes(waiting, "zstd"),
        engines,
    )
    for name, (_, snapshot) in engines.items():
        part = setting.parts.get(name)
        rules = [] if part is None else [each.name for each in part.correlations]
        for rule, size in state_sizes(name, rules, snapshot).items():
            measures.rule(rule).state_bytes += size
    found = pa.concat_tables([made_schema(setting.columns).empty_table(), *made])
    measures.count_outputs(found)
    return found, after


_setting = lru_cache(maxsize=64)(Setting.of)


def _in_order(
    setting: Setting, before: BucketState | None, came: pa.Table | None
) -> pa.Table | None:
    """What waited and what came, by time and then by arrival."""
    parts = []
    if before is not None and before.waiting is not None:
        parts.append(setting.in_form(from_bytes(before.waiting), before.form))
    if came is not None and came.num_rows:
        parts.append(came)
    if not parts:
        return None
    table = pa.concat_tables(parts, promote_options="permissive").combine_chunks()
    times = table.column(TIME).to_numpy()
    if setting.task.has_arrival:
        order = np.lexsort((table.column(ARRIVAL).to_numpy(), times))
    else:
        # What waited came before all that has come now, and a stable order keeps it there.
        order = np.argsort(times, kind="stable")
    return table.take(pa.array(order))


def _cut(table: pa.Table | None, settled: int) -> tuple[pa.Table | None, pa.Table | None]:
    """What is settled, and what waits."""
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


def _late_rows(setting: Setting, late: pa.Table, settled: int, measures: Measures) -> pa.Table:
    """Late events, each once, whatever the number of groups that it came to."""
    types = setting.plan.library.types
    measures.count_late(setting.events(late), setting.group.rules, types)
    events = list(setting.events(late.filter(late.column(REPORTS))))
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
    return _table(made_schema(setting.columns), known, len(events))


def _table(schema: pa.Schema, known: Mapping[str, Any], count: int) -> pa.Table:
    """A table of that schema, with nulls where nothing is known."""
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


def unpacking() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What opens the chunks that buckets have made into rows.

    Spark sends an inner function as it is, not by its name, so that workers which only open chunks
    need not load the engines.
    """

    def unpack(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            for chunk in batch.column(0).drop_null():
                rows = pyarrow.ipc.open_stream(chunk.as_py()).read_all()
                yield from rows.combine_chunks().to_batches()

    return unpack

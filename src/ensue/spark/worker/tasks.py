"""What runs on Spark's workers: functions from the batches of a partition to batches.

Each takes a `Task`, which is nothing but text and numbers, so that what travels to another machine
is data and never our objects; the library is parsed there, once for each process. `run_columns`
reads rows as they stand in the DataFrame and runs the batch engine over them, or event by event
where the exact place of each output is asked for; `run_events` reads what `map_rows` and
`map_outputs` made on the map side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from ensue.engine.batch import BatchEngine
from ensue.engine.counts import Counts
from ensue.errors import JobError
from ensue.events.arrow import read_batches
from ensue.events.event import Event, Rejected
from ensue.library import Library
from ensue.spark.outputs import OutputColumns, output_columns, selected_rows
from ensue.spark.plan import Group, Plan, plan_of
from ensue.spark.worker import positions
from ensue.spark.worker.event_rows import (
    ARRIVAL,
    DEFAULT_SOURCE,
    event_rows,
    positioned,
    read_event,
    read_rows,
    write_event,
)
from ensue.spark.worker.external_sort import GATHERED_BYTES, in_order
from ensue.spark.worker.ordered_group import ALL_KEYS, OrderedGroup, Positioned
from ensue.spark.worker.packed_types import arrivals_of, types_of
from ensue.spark.worker.remote_call import called
from ensue.spark.worker.routing import Wanting

CLOCK = "ensue_clock"
"""The column that says, in every row, where the clock of the whole stream stands at its end."""
COUNTED = "ensue_counted"
"""The correlation of a row that is no output: its `id` says how many events had no key."""
OUTPUTS_AT_ONCE = 8192
ROWS_AT_ONCE = 1 << 18
"""How many rows the batch engine reads at a time, so that what it makes of them can leave."""

Batches = Iterator[pa.RecordBatch]


class Task(NamedTuple):
    """What a worker is told.

    `library` is its tables: machines are planned once, where the job is made, and travel as data.
    `mode` is `rows` (the result), `feed` (outputs for a later stage) or `count` (rows, and how many
    events had no key). `names` are those of the columns, as the rule for columns knows them, and
    `packed` the types that stand as numbers in the column of arrivals, if they do (`numbered`).
    """

    library: bytes
    selected: tuple[str, ...]
    group: int
    mode: str = "rows"
    with_order: bool = False
    with_event: bool = False
    names: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    gathered_bytes: int = GATHERED_BYTES
    packed: tuple[str, ...] = ()


class Prepared(NamedTuple):
    plan: Plan
    group: Group
    columns: OutputColumns


def bound(function: Any, task: Task) -> Any:
    """The function for one task, in the form that Spark sends to workers."""
    return called(function, tuple(task))


@lru_cache(maxsize=16)
def _plan(library: bytes, selected: tuple[str, ...]) -> Plan:
    return plan_of(Library.from_tables(library).checked, selected)


def _prepared(task: Task) -> Prepared:
    plan = _plan(task.library, task.selected)
    columns = output_columns(plan, with_order=task.with_order, with_event=task.with_event)
    return Prepared(plan, plan.groups[task.group], columns)


# --- rows of columns ----------------------------------------------------------------------------


def run_columns(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The rules of a group over rows of columns that all fit their types."""
    task = Task(*given)
    prepared = _prepared(task)
    renamed = (pa.RecordBatch.from_arrays(b.columns, names=list(task.names)) for b in batches)
    keys = ["time", ARRIVAL] if ARRIVAL in task.names else ["time"]
    tables = in_order(renamed, keys, task.gathered_bytes)
    is_plain = not (task.with_order or task.with_event or prepared.columns.structs)
    if task.mode != "feed" and is_plain:
        yield from _in_columns(prepared, task, tables)
    else:
        yield from _rows(prepared, task, _by_event(prepared, task, tables))


def _in_columns(prepared: Prepared, task: Task, tables: Iterator[pa.Table]) -> Batches:
    plan, group, columns = prepared
    engine = BatchEngine(plan.part(group))
    clock: int | None = None
    everything = {rule.name for rule in group.rules} <= set(plan.selected)

    def rows(made: pa.Table) -> Batches:
        if made.num_rows:
            kept = made if everything else selected_rows(made, plan.selected)
            yield from columns.table(kept).combine_chunks().to_batches()

    for table in tables:
        clock, table = _without_extras(table, task, clock)
        yield from rows(engine.push_batch(table, DEFAULT_SOURCE))
        if engine.rejected or engine.late:
            raise _disagreement(engine.rejected)
    if clock is not None:
        yield from rows(engine.finish(clock))


def _without_extras(table: pa.Table, task: Task, clock: int | None) -> tuple[int | None, pa.Table]:
    """The table with the columns of events only, and those that did not travel as nulls."""
    if CLOCK in task.names:
        clock = table.column(CLOCK)[0].as_py()
        table = table.drop_columns([CLOCK])
    if ARRIVAL in task.names:
        if task.packed:
            types = types_of(table.column(ARRIVAL), task.packed)
            table = table.append_column("type", types)
        table = table.drop_columns([ARRIVAL])
    for name in task.nulls:
        table = table.append_column(name, pa.nulls(table.num_rows))
    return clock, table


def _by_event(
    prepared: Prepared, task: Task, tables: Iterator[pa.Table]
) -> Iterator[Positioned | Counts]:
    plan, group, _ = prepared
    counts = Counts()
    running = OrderedGroup(plan, group, counts)
    clock: int | None = None
    for table in tables:
        given = table.column(ARRIVAL)
        arrivals = (arrivals_of(given) if task.packed else given).to_pylist()
        clock, table = _without_extras(table, task, clock)
        records = read_batches(
            table.to_batches(), table.schema, plan.library.types, DEFAULT_SOURCE, where="the rows"
        )
        for arrival, record in zip(arrivals, records, strict=True):
            if isinstance(record, Rejected):
                raise _disagreement([record])
            position = positions.event_position(record.time, arrival)
            yield from running.read(position, record, None, ALL_KEYS)
    yield from running.finish(clock)
    yield counts


def _disagreement(rejected: Sequence[Rejected]) -> JobError:
    shown = "; ".join(problem for each in rejected[:3] for problem in each.problems)
    return JobError(
        f"rows that SQL took for events were refused in the worker; please report this: {shown}"
    )


# --- events in bytes ----------------------------------------------------------------------------


def map_rows(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Rows of any columns as the events that a group wants."""
    task = Task(*given)
    plan, group, _ = _prepared(task)
    records = read_rows(batches, plan.library.types)
    wanting = Wanting(plan, group, keep_unkeyed=task.mode == "count")
    yield from event_rows(positioned(records), wanting)


def map_payloads(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Events that are in bytes already, as those that a group wants."""
    task = Task(*given)
    plan, group, _ = _prepared(task)
    types = plan.library.types

    def records() -> Iterator[tuple[bytes, str | None, Event]]:
        for batch in batches:
            for row in batch.to_pylist():
                event = read_event(row["payload"], types)
                yield positions.event_position(event.time, row[ARRIVAL]), None, event

    yield from event_rows(records(), Wanting(plan, group, keep_unkeyed=task.mode == "count"))


def map_outputs(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Outputs of earlier stages as the events that a group wants."""
    task = Task(*given)
    plan, group, _ = _prepared(task)
    types = plan.library.types

    def records() -> Iterator[tuple[bytes, str | None, Event]]:
        for batch in batches:
            for row in batch.to_pylist():
                yield row["position"], row["author"], read_event(row["payload"], types)

    yield from event_rows(records(), Wanting(plan, group, keep_unkeyed=task.mode == "count"))


def run_events(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The rules of a group over events in bytes."""
    task = Task(*given)
    prepared = _prepared(task)
    yield from _rows(prepared, task, _over_events(prepared, task, batches))


def _over_events(prepared: Prepared, task: Task, batches: Batches) -> Iterator[Positioned | Counts]:
    plan, group, _ = prepared
    counts = Counts()
    running = OrderedGroup(plan, group, counts)
    clock: int | None = None
    for table in in_order(batches, ["position"], task.gathered_bytes):
        has_clock = CLOCK in table.schema.names
        for batch in table.to_batches(max_chunksize=OUTPUTS_AT_ONCE):
            for row in batch.to_pylist():
                clock = row[CLOCK] if has_clock else None
                event = read_event(row["payload"], plan.library.types)
                yield from running.read(row["position"], event, row["author"], row["mask"])
    yield from running.finish(clock)
    yield counts


# --- what leaves a worker -----------------------------------------------------------------------


def _rows(prepared: Prepared, task: Task, outputs: Iterator[Positioned | Counts]) -> Batches:
    plan, _, columns = prepared
    selected = frozenset(plan.selected)
    waiting: list[Positioned] = []
    for each in outputs:
        if isinstance(each, Counts):
            if task.mode == "count":
                waiting += [(b"", _counted(n, c)) for n, c in each.without_key.items()]
        elif task.mode == "feed" or each[1].extensions["correlation"] in selected:
            waiting.append(each)
        if len(waiting) >= OUTPUTS_AT_ONCE:
            yield _written(columns, task, waiting)
            waiting = []
    if waiting:
        yield _written(columns, task, waiting)


def _written(columns: OutputColumns, task: Task, outputs: list[Positioned]) -> pa.RecordBatch:
    if task.mode != "feed":
        return columns.batch(outputs)
    return pa.RecordBatch.from_pydict(
        {
            "position": pa.array([position for position, _ in outputs], pa.binary()),
            "author": pa.array([event.extensions["correlation"] for _, event in outputs]),
            "payload": pa.array([write_event(event) for _, event in outputs], pa.binary()),
        }
    )


def _counted(name: str, count: int) -> Event:
    return Event(str(count), name, COUNTED, 0, None, {"correlation": COUNTED})


# --- rows that are no events, and times -----------------------------------------------------------


def rejected_rows(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The rows that are no events or do not fit, as JSON, each with all that is wrong with it."""
    types = _plan(given[0], given[1]).library.types
    for batch in batches:
        refused = [
            record
            for _, record in read_rows(iter([batch]), types, with_arrival=False)
            if isinstance(record, Rejected)
        ]
        texts = [r.raw if isinstance(r.raw, str) else r.raw.decode() for r in refused]
        problems = pa.array([list(r.problems) for r in refused], pa.list_(pa.string()))
        yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string()), problems], REJECTED_NAMES)


REJECTED_NAMES = ["row", "problems"]
REJECTED_DDL = "row string, problems array<string>"


def latest_time(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The latest time of the events of a partition."""
    types = _plan(given[0], given[1]).library.types
    times = [
        record.time
        for _, record in read_rows(batches, types, with_arrival=False)
        if isinstance(record, Event)
    ]
    if times:
        yield pa.RecordBatch.from_arrays([pa.array([max(times)], pa.int64())], ["latest"])

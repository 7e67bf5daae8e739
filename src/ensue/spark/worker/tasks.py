"""The functions that Spark's workers run over a partition: Arrow batches in, Arrow batches out.

Each takes a `GroupTask`, which holds only text and numbers, so that no object of ours travels to
another machine; a worker process decodes the library once. `run_columns` runs the batch engine over
rows of columns, or the step engine event by event where the exact position of each output is
needed. `run_events` runs event by event over what `map_rows` and `map_outputs` made before the
shuffle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch import BatchEngine
from ensue.engine.batch.output.columns import BatchOutputs, join_tables, joined_texts
from ensue.engine.batch.output.lines import batch_lines
from ensue.engine.counts import Counts
from ensue.engine.timing.jumps import UNBOUNDED
from ensue.events.arrow import read_batches
from ensue.events.event import Event, Rejected
from ensue.library import Library
from ensue.spark.outputs import OutputColumns, output_columns
from ensue.spark.plan import JobPlan, RuleGroup, plan_of
from ensue.spark.worker import positions
from ensue.spark.worker.event_rows import (
    ARRIVAL,
    BEGIN,
    DEFAULT_SOURCE,
    NO_TIMES,
    REACH,
    Times,
    disagreement,
    event_rows,
    positioned,
    read_event,
    read_rows,
    write_event,
)
from ensue.spark.worker.external_sort import SORT_BUFFER_BYTES, sorted_tables
from ensue.spark.worker.ordered_group import ALL_KEYS, OrderedGroup, Positioned
from ensue.spark.worker.packed_types import unpack_arrivals, unpack_types
from ensue.spark.worker.routing import EventRouter
from ensue.spark.worker.row_positions import SortedRows, output_positions

CLOCK = "ensue_clock"
"""The column that has in every row the time of the clock at the end of the whole input."""
UNKEYED_COUNT = "ensue_counted"
"""The `correlation` of a row that is a count: `id` says how many events had no key."""
OUTPUTS_AT_ONCE = 8192
ROWS_AT_ONCE = 1 << 18
"""How many rows the batch engine reads at a time, which bounds the memory of its outputs."""

Batches = Iterator[pa.RecordBatch]


class GroupTask(NamedTuple):
    """One group of rules for a worker, as plain data.

    `library` has the tables of the library: machines are planned once, on the driver. `mode` is
    `rows` (the result), `feed` (outputs for a later stage) or `count` (the result, and how many
    events had no key). `names` are the names of the columns as `ensue.events.columns` reads them,
    `nulls` the attributes that were not shuffled, and `packed` the types that are numbers in the
    column of arrivals, if they are (`packed_types`). `times` says how rows that Python reads hold
    their times. `clock` is the time of the clock at the end, where it is known before the run.
    """

    library: bytes
    selected: tuple[str, ...]
    group: int
    mode: str = "rows"
    with_order: bool = False
    with_event: bool = False
    names: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    sort_buffer_bytes: int = SORT_BUFFER_BYTES
    packed: tuple[str, ...] = ()
    times: Times = NO_TIMES
    max_jump: float = UNBOUNDED
    clock: int | None = None


class PreparedGroup(NamedTuple):
    plan: JobPlan
    group: RuleGroup
    columns: OutputColumns


@lru_cache(maxsize=16)
def decoded_plan(library: bytes, selected: tuple[str, ...]) -> JobPlan:
    return plan_of(Library.from_tables(library).checked, selected)


def _prepared(task: GroupTask) -> PreparedGroup:
    plan = decoded_plan(task.library, task.selected)
    columns = output_columns(plan, with_order=task.with_order, with_event=task.with_event)
    return PreparedGroup(plan, plan.groups[task.group], columns)


# --- rows of columns ----------------------------------------------------------------------------


def run_columns(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The rules of a group over rows of columns, all of which fit their types."""
    task = GroupTask(*given)
    renamed = (pa.RecordBatch.from_arrays(b.columns, names=list(task.names)) for b in batches)
    yield from run_rows(task, renamed)


def run_rows(task: GroupTask, renamed: Batches) -> Batches:
    """As `run_columns`, over rows whose columns have the names of the task."""
    prepared = _prepared(task)
    keys = ["time", ARRIVAL] if ARRIVAL in task.names else ["time"]
    tables = _near(sorted_tables(renamed, keys, task.sort_buffer_bytes))
    if task.mode != "feed" and runs_in_columns(prepared.plan, prepared.group, task):
        yield from _in_columns(prepared, task, tables)
    else:
        yield from _rows(prepared, task, _by_event(prepared, task, tables))


def _near(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The rows, which are in order, without rows whose times lie too far ahead or behind."""
    for table in tables:
        if REACH in table.schema.names and len(table):
            ends = table.column(BEGIN)[0].as_py(), table.column(REACH)[0].as_py() + 1
            first, last = np.searchsorted(_microseconds(table.column("time")), ends).tolist()
            table = table.drop_columns([BEGIN, REACH]).slice(first, last - first)
        if len(table):
            yield table


def _microseconds(times: pa.ChunkedArray) -> Any:
    return times.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()


def runs_in_columns(plan: JobPlan, group: RuleGroup, task: GroupTask) -> bool:
    """Whether the batch engine can make the rows of a result, or the step engine has to."""
    columns = output_columns(plan)
    can_order = not task.with_order or plan.orders_by_row(group)
    can_write = not task.with_event or not group.sends_on
    return can_order and can_write and not columns.structs


def _in_columns(prepared: PreparedGroup, task: GroupTask, tables: Iterator[pa.Table]) -> Batches:
    plan, group, columns = prepared
    engine = BatchEngine(plan.part(group), columns=columns.made)
    clock = task.clock
    selected = None
    if not {rule.name for rule in group.rules} <= set(plan.selected):
        selected = pa.array(list(plan.selected))

    def rows(
        found: Sequence[BatchOutputs], positions: Callable[[pa.Table], pa.Array] | None = None
    ) -> Batches:
        if not any(map(len, found)):
            return
        made = join_tables([each.table() for each in found if len(each)])
        order = None if positions is None else positions(made)
        events = _written_lines(found) if task.with_event else None
        if selected is not None:
            kept = pc.is_in(made.column("correlation"), selected).combine_chunks()
            made = made.filter(kept)
            order = None if order is None else order.filter(kept)
            events = None if events is None else events.filter(kept)
        if made.num_rows:
            yield from columns.table(made, order, events).combine_chunks().to_batches()

    for table in tables:
        arrivals = _arrivals(table, task)
        clock, table = _event_columns(table, task, clock)
        if not task.with_order:
            for found in engine.read_table(table, DEFAULT_SOURCE):
                yield from rows([found])
            _check(engine)
            continue
        sorted_rows = SortedRows(table, arrivals)
        for begin, end in sorted_rows.distinct_slices():
            outputs = list(engine.read_table(table.slice(begin, end - begin), DEFAULT_SOURCE))
            _check(engine)
            numbered = plan.numbered_names
            yield from rows(
                outputs, partial(output_positions, sorted_rows, begin, end, names=numbered)
            )
    if clock is not None:
        for found in engine.advance_to(clock):
            yield from rows([found])
    missed = [(name, count) for name, count in engine.counts.without_key.items() if count]
    if task.mode == "count" and missed:
        yield columns.batch([(b"", _unkeyed_count(*each)) for each in missed])


def _written_lines(found: Sequence[BatchOutputs]) -> pa.Array:
    """Outputs as CloudEvents JSON."""
    lines = joined_texts([batch_lines(each) for each in found if len(each)])
    return pc.ascii_rtrim(lines, characters="\n")


def _check(engine: BatchEngine) -> None:
    if engine.rejected or engine.late:
        raise disagreement(engine.rejected)


def _arrivals(table: pa.Table, task: GroupTask) -> pa.ChunkedArray:
    given = table.column(ARRIVAL)
    return unpack_arrivals(given) if task.packed else given


def _event_columns(
    table: pa.Table, task: GroupTask, clock: int | None
) -> tuple[int | None, pa.Table]:
    """The columns of events only, with nulls for attributes that were not shuffled."""
    if CLOCK in task.names:
        clock = table.column(CLOCK)[0].as_py()
        table = table.drop_columns([CLOCK])
    if ARRIVAL in task.names:
        if task.packed:
            types = unpack_types(table.column(ARRIVAL), task.packed)
            table = table.append_column("type", types)
        table = table.drop_columns([ARRIVAL])
    for name in task.nulls:
        table = table.append_column(name, pa.nulls(table.num_rows))
    return clock, table


def _by_event(
    prepared: PreparedGroup, task: GroupTask, tables: Iterator[pa.Table]
) -> Iterator[Positioned | Counts]:
    plan, group, _ = prepared
    counts = Counts()
    running = OrderedGroup(plan, group, counts)
    clock = task.clock
    for table in tables:
        arrivals = _arrivals(table, task).to_pylist()
        clock, table = _event_columns(table, task, clock)
        records = read_batches(
            table.to_batches(), table.schema, plan.library.types, DEFAULT_SOURCE, where="the rows"
        )
        for arrival, record in zip(arrivals, records, strict=True):
            if isinstance(record, Rejected):
                raise disagreement([record])
            position = positions.event_position(record.time, arrival)
            yield from running.read(position, record, None, ALL_KEYS)
    yield from running.finish(clock)
    yield counts


# --- events as bytes ----------------------------------------------------------------------------


def map_rows(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Rows of any columns as the events that a group wants."""
    task = GroupTask(*given)
    plan, group, _ = _prepared(task)
    records = read_rows(batches, plan.library.types, task.times)
    router = EventRouter(plan, group, keep_unkeyed=task.mode == "count")
    yield from event_rows(positioned(records), router)


def map_payloads(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Events of the input that are bytes already, as the events that a group wants."""
    yield from _map_payloads(
        GroupTask(*given),
        batches,
        lambda row, event: (positions.event_position(event.time, row[ARRIVAL]), None, event),
    )


def payload_types(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The types of events that are bytes, and their numbers in each batch."""
    types = decoded_plan(given[0], given[1]).library.types
    for batch in batches:
        found = Counter(read_event(each, types).type for each in batch.column(0).to_pylist())
        names, counts = pa.array(list(found), pa.string()), pa.array(found.values(), pa.int64())
        yield pa.RecordBatch.from_pydict({"type": names, "n": counts})


def map_outputs(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Outputs of earlier stages as the events that a group wants."""
    yield from _map_payloads(
        GroupTask(*given),
        batches,
        lambda row, event: (row["position"], row["author"], event),
    )


def _map_payloads(
    task: GroupTask,
    batches: Batches,
    positioned_event: Callable[[Mapping[str, Any], Event], tuple[bytes, str | None, Event]],
) -> Batches:
    plan, group, _ = _prepared(task)
    types = plan.library.types
    records = (
        positioned_event(row, read_event(row["payload"], types))
        for batch in batches
        for row in batch.to_pylist()
    )
    yield from event_rows(records, EventRouter(plan, group, keep_unkeyed=task.mode == "count"))


def run_events(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The rules of a group over events as bytes."""
    task = GroupTask(*given)
    prepared = _prepared(task)
    yield from _rows(prepared, task, _over_events(prepared, task, batches))


def _over_events(
    prepared: PreparedGroup, task: GroupTask, batches: Batches
) -> Iterator[Positioned | Counts]:
    plan, group, _ = prepared
    counts = Counts()
    running = OrderedGroup(plan, group, counts)
    clock: int | None = None
    for table in sorted_tables(batches, ["position"], task.sort_buffer_bytes):
        has_clock = CLOCK in table.schema.names
        has_reach = REACH in table.schema.names
        for batch in table.to_batches(max_chunksize=OUTPUTS_AT_ONCE):
            for row in batch.to_pylist():
                clock = row[CLOCK] if has_clock else None
                event = read_event(row["payload"], plan.library.types)
                if (
                    has_reach
                    and row["author"] is None
                    and not row[BEGIN] <= event.time <= row[REACH]
                ):
                    continue
                yield from running.read(row["position"], event, row["author"], row["mask"])
    yield from running.finish(clock)
    yield counts


# --- rows of the result -------------------------------------------------------------------------


def _rows(
    prepared: PreparedGroup, task: GroupTask, outputs: Iterator[Positioned | Counts]
) -> Batches:
    plan, _, columns = prepared
    selected = frozenset(plan.selected)
    waiting: list[Positioned] = []
    for each in outputs:
        if isinstance(each, Counts):
            if task.mode == "count":
                waiting += [(b"", _unkeyed_count(n, c)) for n, c in each.without_key.items()]
        elif task.mode == "feed" or each[1].extensions["correlation"] in selected:
            waiting.append(each)
        if len(waiting) >= OUTPUTS_AT_ONCE:
            yield _written(columns, task, waiting)
            waiting = []
    if waiting:
        yield _written(columns, task, waiting)


def _written(columns: OutputColumns, task: GroupTask, outputs: list[Positioned]) -> pa.RecordBatch:
    if task.mode != "feed":
        return columns.batch(outputs)
    return pa.RecordBatch.from_pydict(
        {
            "position": pa.array([position for position, _ in outputs], pa.binary()),
            "author": pa.array([event.extensions["correlation"] for _, event in outputs]),
            "payload": pa.array([write_event(event) for _, event in outputs], pa.binary()),
        }
    )


def _unkeyed_count(name: str, count: int) -> Event:
    return Event(str(count), name, UNKEYED_COUNT, 0, None, {"correlation": UNKEYED_COUNT})

"""Chunks of rows for which SQL has said which groups and rules want them.

In come rows of columns that `StreamJob.rows` names by the functions below; out go the chunks of
`chunks`, by the columns that each group of rules reads. Rows that SQL has rejected come as JSON
(`worker.json_rows`), and leave with their problems.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import Column, attribute_column
from ensue.engine.batch.input.intake import Intake
from ensue.engine.batch.input.key_hashes import hashes_of_columns
from ensue.engine.counts import Counts
from ensue.events.event import Rejected
from ensue.events.files.tables import TableChunks
from ensue.lang.expressions.derived_names import derived_name, path_to
from ensue.spark.streaming.chunks import (
    CHUNK_BYTES,
    KEY,
    REJECTED,
    REPORTS,
    TIME,
    ChunkPacker,
    StreamTask,
    columns_of,
    planned,
)
from ensue.spark.streaming.groups import StreamGroup
from ensue.spark.streaming.measures import Measures
from ensue.spark.worker.event_rows import ARRIVAL, DEFAULT_SOURCE, ROW, rejected_records
from ensue.spark.worker.json_rows import rows_of_json

RULES_A_MASK = 63
"""How many rules have their bits in one column of 64-bit integers."""
_INSTANT = pa.timestamp("us", "UTC")


def wanted_column(group: StreamGroup) -> str:
    """Whether the group wants a row, by true and null."""
    return f"wanted_{group.group.number}"


def mask_columns(group: StreamGroup) -> list[str]:
    """Bits of the rules that want a row. A group of one rule has none."""
    rules = len(group.group.rules)
    count = 0 if rules == 1 else -(-rules // RULES_A_MASK)
    return [f"rules_{group.group.number}_{part}" for part in range(count)]


def value_column(number: int) -> str:
    return f"value_{number}"


def pack_columns(
    given: tuple[Any, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of a time, who wants them, values, values, and JSON if rejected."""
    task = StreamTask(*given)
    packer = ChunkPacker(task)
    measures = Measures()
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        yield from packer.reject(_rejected_in(task, batch.column(REJECTED)))
        if batch.num_rows:
            measures.rows += batch.num_rows
            held.append(batch)
            size += batch.nbytes
            packer.observe_times(batch.column(TIME))
        if size > CHUNK_BYTES:
            yield from _packed(packer, task, pa.Table.from_batches(held), measures)
            held, size = [], 0
    if held:
        yield from _packed(packer, task, pa.Table.from_batches(held), measures)
    yield from packer.measured(measures)
    yield from packer.clock_rows()


def _rejected_in(task: StreamTask, column: pa.Array) -> list[Rejected]:
    """The problems of rows that SQL has rejected."""
    texts = column.drop_null().to_pylist()
    if not texts:
        return []
    row_type = pa.ipc.read_schema(pa.py_buffer(task.row_type)).field(ROW).type
    rows = rows_of_json(texts, row_type)
    types = planned(task.library, task.selected)[0].library.types
    return rejected_records(pa.RecordBatch.from_arrays([rows], [ROW]), types, task.times)


def _packed(
    packer: ChunkPacker, task: StreamTask, table: pa.Table, measures: Measures
) -> Iterator[pa.RecordBatch]:
    claimed = np.zeros(len(table), np.bool_)
    times = table.column(TIME)
    for group, (columns, _) in zip(packer.groups, task.shuffled, strict=True):
        wanted = table.column(wanted_column(group)).is_valid()
        rows = np.flatnonzero(wanted)
        if not len(rows):
            continue
        _count_read(group, table, measures)
        kept = {TIME: times, REPORTS: pa.array(~claimed), "time": times.cast(_INSTANT)}
        if task.has_arrival:
            kept[ARRIVAL] = table.column(ARRIVAL)
        kept |= {task.names[each]: table.column(value_column(each)) for each in columns}
        claimed = claimed.copy()
        claimed[rows] = True
        chosen = pa.Table.from_pydict(kept).filter(wanted).combine_chunks()
        if group.is_keyed:
            hashes = hashes_of_columns(_keys_of(task, group, chosen))
            chosen = chosen.append_column(KEY, pa.array(hashes))
        yield from packer.pack(group, chosen)


def _keys_of(task: StreamTask, group: StreamGroup, table: pa.Table) -> list[Column]:
    """The keys of rows, as the engines read them."""
    names = group.group.key_set[0]
    types = planned(task.library, task.selected)[0].library.types
    plain = [
        attribute_column(table.column(name).combine_chunks())
        for name in names
        if [each for each in table.schema.names if each.lower() == name.lower()] == [name]
        and derived_name(path_to(name)) is None
    ]
    if len(plain) == len(names) and None not in plain:
        return [each for each in plain if each is not None]
    _, nulls = task.shuffled[group.group.number]
    rows = columns_of(table, nulls).combine_chunks()
    chunks = TableChunks(rows.schema, types, DEFAULT_SOURCE, "the rows")
    chunk = chunks.chunk(rows.to_batches()[0], np.arange(len(rows)))
    batch = Intake(types, Counts()).check(chunk).batch
    return [batch.column(path_to(name)) for name in names]


def _count_read(group: StreamGroup, table: pa.Table, measures: Measures) -> None:
    """Count the rows that each rule of a group wants, once for each combination of rules."""
    names = [rule.name for rule in group.group.rules]
    masks = mask_columns(group)
    if not masks:
        times = table.column(TIME).filter(table.column(wanted_column(group)).is_valid())
        measures.count_read(names, pc.max(times).as_py(), len(times))
        return
    wanted = table.select([TIME, *masks]).group_by(masks)
    for found in wanted.aggregate([(TIME, "count"), (TIME, "max")]).to_pylist():
        bits = [(found[mask] or 0) >> bit & 1 for mask in masks for bit in range(RULES_A_MASK)]
        chosen = [name for name, bit in zip(names, bits, strict=False) if bit]
        measures.count_read(chosen, found[f"{TIME}_max"], found[f"{TIME}_count"])

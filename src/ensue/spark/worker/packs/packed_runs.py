"""The rules of a group over packs of events (`packing`), and outputs in packs.

In come packs of one partition; out go rows of outputs, or these in packs that are put in order by
one worker (`ordered_lines`, `ordered_tables`). Rows inside of packs are run as `tasks` runs rows
that Spark hands over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ensue.spark.worker.external_sort import sorted_tables
from ensue.spark.worker.output_lines import join_lines, pack_tables
from ensue.spark.worker.packs.storage import PACK_DDL, PACK_FIELDS, PackWriter, repeated, unpacked
from ensue.spark.worker.tasks import UNKEYED_COUNT, GroupTask, run_rows

OUTPUT_PACKS_DDL = f"outputs bigint, told string, {PACK_DDL}"
_SCHEMA = pa.schema([("outputs", pa.int64()), ("told", pa.string()), *PACK_FIELDS])

Batches = Iterator[pa.RecordBatch]


def run_packs(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The outputs of a group, and how many events had no key."""
    rows = (each for batch in batches for each in unpacked(batch))
    yield from run_rows(GroupTask(*given), rows)


def run_packs_to_packs(given: tuple[Any, ...], batches: Batches) -> Batches:
    """As `run_packs`, with the outputs in packs of the columns that they are put in order with.

    `given` has the task of the group, and the folder of the packs if there is one.
    """
    task, folder = GroupTask(*given[0]), given[1]
    with PackWriter(folder) as writer:
        yield from _in_packs(task, run_packs(given[0], batches), writer)


def _in_packs(task: GroupTask, outputs: Batches, writer: PackWriter) -> Batches:
    for rows in outputs:
        is_count = pc.equal(rows.column("correlation"), UNKEYED_COUNT)
        told = rows.filter(is_count)
        if told.num_rows:
            names, counts = told.column("source").to_pylist(), told.column("id").to_pylist()
            said = json.dumps({name: int(n) for name, n in zip(names, counts, strict=True)})
            yield _row({"outputs": 0, "told": said})
            rows = rows.filter(pc.invert(is_count))
        if rows.num_rows:
            kept = rows.select(["order", "event"]) if task.with_event else rows
            yield _row({"outputs": rows.num_rows, **writer.write(kept)})


def _row(values: Mapping[str, Any]) -> pa.RecordBatch:
    columns = [repeated(values.get(field.name), 1, field.type) for field in _SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def ordered_lines(_: tuple[()], batches: Batches) -> Batches:
    """Outputs in packs as lines in order, in blocks."""
    yield from join_lines((), _in_order(batches))


def ordered_tables(_: tuple[()], batches: Batches) -> Batches:
    """Outputs in packs as tables in order."""
    yield from pack_tables((), _in_order(batches))


def _in_order(batches: Batches) -> Batches:
    rows = (each for batch in batches for each in unpacked(batch))
    for table in sorted_tables(rows, ["order"]):
        yield from table.to_batches()

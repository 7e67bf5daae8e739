"""The rules of a group over packs of events (`packing`), and outputs in packs.

In come packs of one partition; out go rows of outputs, or these in packs that are put in order by
one worker (`ordered_lines`, `ordered_tables`). Rows inside of packs are run as `tasks` runs rows
that Spark hands over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ensue.spark.worker.external_sort import sorted_tables
from ensue.spark.worker.output_lines import join_lines, pack_tables
from ensue.spark.worker.packs.packing import unpacked, written
from ensue.spark.worker.tasks import UNKEYED_COUNT, GroupTask, run_rows

OUTPUT_PACKS_DDL = "outputs bigint, told string, packed binary"

Batches = Iterator[pa.RecordBatch]


def run_packs(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The outputs of a group, and how many events had no key."""
    rows = (each for batch in batches for each in unpacked(batch.column("packed")))
    yield from run_rows(GroupTask(*given), rows)


def run_packs_to_packs(given: tuple[Any, ...], batches: Batches) -> Batches:
    """As `run_packs`, with the outputs in packs of the columns that they are put in order with."""
    task = GroupTask(*given)
    for rows in run_packs(given, batches):
        is_count = pc.equal(rows.column("correlation"), UNKEYED_COUNT)
        told = rows.filter(is_count)
        if told.num_rows:
            names, counts = told.column("source").to_pylist(), told.column("id").to_pylist()
            said = json.dumps({name: int(n) for name, n in zip(names, counts, strict=True)})
            yield _pack(0, said, None)
            rows = rows.filter(pc.invert(is_count))
        if rows.num_rows:
            kept = rows.select(["order", "event"]) if task.with_event else rows
            yield _pack(rows.num_rows, None, written(kept).to_pybytes())


def _pack(outputs: int, told: str | None, packed: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([outputs], pa.int64()),
            pa.array([told], pa.string()),
            pa.array([packed], pa.binary()),
        ],
        names=["outputs", "told", "packed"],
    )


def ordered_lines(_: tuple[()], batches: Batches) -> Batches:
    """Outputs in packs as lines in order, in blocks."""
    yield from join_lines((), _in_order(batches))


def ordered_tables(_: tuple[()], batches: Batches) -> Batches:
    """Outputs in packs as tables in order."""
    yield from pack_tables((), _in_order(batches))


def _in_order(batches: Batches) -> Batches:
    rows = (each for batch in batches for each in unpacked(batch.column("packed").drop_null()))
    for table in sorted_tables(rows, ["order"]):
        yield from table.to_batches()

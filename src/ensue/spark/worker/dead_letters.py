"""Rejected records as dead letters, in workers."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ensue.events.event import Rejected
from ensue.events.records.dead_letters import dead_letter
from ensue.spark.worker.event_rows import ARRIVAL


def write_dead_letters(
    given: tuple[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of a number, a record in bytes and its problems as lines; `given` has the format."""
    (format_,) = given
    for batch in batches:
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        lines = [
            dead_letter(
                Rejected(number, raw.decode() if format_ == "parquet" else raw, tuple(problems)),
                as_line=format_ == "jsonl",
            )
            for number, raw, problems in rows
        ]
        yield pa.RecordBatch.from_pydict({"line": pa.array(lines, pa.binary())})


def number_lines(
    given: tuple[tuple[tuple[str, int, int], ...]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rejected lines with their numbers; `given` has the lines before each block of a file."""
    before = {(file, start): count for file, start, count in given[0]}
    for batch in batches:
        places = (batch.column(name).to_pylist() for name in ("file", "start", "line"))
        numbers = [
            before[file, start] + line + 1 for file, start, line in zip(*places, strict=True)
        ]
        kept = batch.select([ARRIVAL, "file", "raw", "problems"])
        yield kept.add_column(2, "number", pa.array(numbers, pa.int64()))

"""Rejected records as dead letters, in workers."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ensue.events.event import Rejected
from ensue.events.records.dead_letters import dead_letter


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

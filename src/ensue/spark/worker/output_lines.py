"""Lines of text in blocks, so that few rows pass from Spark to the driver or to a file."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

LINES_DDL = "lines binary"
PACKED_DDL = "packed binary"
BLOCK_BYTES = 1 << 20


def join_lines(_: tuple[()], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The last column of each row as a line, in blocks of about a megabyte."""
    for batch in batches:
        lines = batch.column(batch.num_columns - 1)
        rows = max(1, BLOCK_BYTES * len(lines) // max(1, lines.nbytes))
        for first in range(0, len(lines), rows):
            taken = lines.slice(first, rows).cast(pa.binary())
            ends = pa.array([0, len(taken)], pa.int32())
            joined = pc.binary_join(pa.ListArray.from_arrays(ends, taken), b"\n")
            block = pc.binary_join_element_wise(joined, b"", b"\n")
            yield pa.RecordBatch.from_arrays([block], names=["lines"])


def pack_tables(_: tuple[()], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as an Arrow stream in one value."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_pydict({"packed": packed})

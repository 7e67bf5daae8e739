"""Lines of text in blocks, so that few rows pass from Spark to the driver or to a file."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

LINES_DDL = "lines binary"
PACKED_DDL = "packed binary"
BLOCK_BYTES = 1 << 20


def join_lines(_: tuple[()], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The last column of each row as a line, in blocks of about a megabyte."""
    held: list[bytes] = []
    size = 0
    for batch in batches:
        for line in batch.column(batch.num_columns - 1).cast(pa.binary()).to_pylist():
            held.append(line)
            size += len(line) + 1
            if size >= BLOCK_BYTES:
                yield _block(held)
                held, size = [], 0
    if held:
        yield _block(held)


def _block(lines: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"lines": pa.array([b"\n".join([*lines, b""])], pa.binary())})


def pack_tables(_: tuple[()], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as an Arrow stream in one value."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_pydict({"packed": packed})

"""Parquet files of events, batch by batch.

In come files; out go the records of all of them in turn, as `reading` promises. The rows are made
into events by `arrow`. This module is apart from `reading` because it needs pyarrow.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ensue.errors import UsageError
from ensue.events.arrow import read_batches
from ensue.events.event import Event, Rejected
from ensue.events.reading import Progress
from ensue.events.types import TypeSystem

BATCH_ROWS = 8192


def read_parquet(
    files: Sequence[tuple[Path | BinaryIO, str]],
    types: TypeSystem,
    progress: Progress | None = None,
) -> Iterator[Event | Rejected]:
    """The records of the files, with row numbers that go on from file to file.

    Each file comes with the name that stands in for the `source` of rows that have none.
    """
    with ExitStack() as stack:
        opened = [(_open(file, name, stack), name) for file, name in files]
        total = sum(file.metadata.num_rows for file, _ in opened)
        done = 0
        for file, name in opened:
            schema = file.schema_arrow
            for batch in _batches(file, name):
                yield from read_batches([batch], schema, types, name, rows_before=done)
                done += batch.num_rows
                if progress:
                    progress(done, total)
            if not file.metadata.num_rows:
                # A file without rows must still have the right columns.
                yield from read_batches([], schema, types, name)
    if progress:
        progress(done, total)


def _open(file: Path | BinaryIO, name: str, stack: ExitStack) -> pq.ParquetFile:
    if not isinstance(file, Path) and not file.seekable():
        # Parquet keeps its directory at the end of the file, so a pipe must first come to rest.
        copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        file = copy
    try:
        return stack.enter_context(pq.ParquetFile(file))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(name, error) from None


def _batches(file: pq.ParquetFile, name: str) -> Iterator[pa.RecordBatch]:
    try:
        yield from file.iter_batches(batch_size=BATCH_ROWS)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: Exception) -> UsageError:
    return UsageError(f"`{name}` cannot be read as Parquet: {error}")

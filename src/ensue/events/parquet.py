"""Parquet and Arrow files of events, batch by batch.

In comes a file; out go its records in their order, as `reading` promises. The rows are made
into events by `arrow`. This module is apart from `reading` because it needs pyarrow.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ensue.errors import UsageError
from ensue.events.arrow import BatchReader
from ensue.events.event import Event, Rejected
from ensue.events.mapping import Mapping
from ensue.events.types import TypeSystem

Progress = Callable[[int, int | None], None]
"""Is told how many rows have been read and, if that is known, how many there are."""

BATCH_ROWS = 1 << 17
BATCH_BYTES = 1 << 25
"""The most rows, and about the most bytes, that are unpacked at once."""
PROBED_ROWS = 64
_FILE_SIGN = b"ARROW1"


def read_parquet(
    file: Path | BinaryIO,
    name: str,
    types: TypeSystem,
    progress: Progress | None = None,
    rows_before: int = 0,
    mapping: Mapping | None = None,
) -> Iterator[Event | Rejected]:
    """The records of a file; `name` stands in for the `source` of rows that have none.

    Numbers that stand in for ids begin after `rows_before`.
    """
    with ExitStack() as stack:
        opened = open_parquet(file, name, stack)
        batches = parquet_batches(opened, name)
        total = opened.metadata.num_rows
        table = _Table(opened.schema_arrow, name, types, mapping)
        yield from _records(batches, table, progress, rows_before, total)


def read_arrow(
    file: Path | BinaryIO,
    name: str,
    types: TypeSystem,
    progress: Progress | None = None,
    rows_before: int = 0,
    mapping: Mapping | None = None,
) -> Iterator[Event | Rejected]:
    """As `read_parquet`, from an Arrow file or stream."""
    with ExitStack() as stack:
        opened = stack.enter_context(file.open("rb")) if isinstance(file, Path) else file
        try:
            reader = open_arrow(opened, stack)
        except (pa.ArrowException, OSError) as error:
            raise UsageError(f"`{name}` cannot be read as Arrow: {error}") from None
        table = _Table(reader.schema, name, types, mapping)
        yield from _records(reader, table, progress, rows_before, None)


def open_arrow(file: BinaryIO, stack: ExitStack) -> pa.RecordBatchReader:
    """The batches of an Arrow stream, or of an Arrow file, which is read from its end."""
    seekable = file if file.seekable() else _at_rest(file, stack)
    if seekable.read(len(_FILE_SIGN)) != _FILE_SIGN:
        seekable.seek(0)
        return pa.ipc.open_stream(seekable)
    seekable.seek(0)
    opened = pa.ipc.open_file(seekable)
    batches = (opened.get_batch(number) for number in range(opened.num_record_batches))
    return pa.RecordBatchReader.from_batches(opened.schema, batches)


class _Table(NamedTuple):
    """What the rows of a file have in common."""

    schema: pa.Schema
    name: str
    types: TypeSystem
    mapping: Mapping | None


def _records(
    batches: Iterable[pa.RecordBatch],
    table: _Table,
    progress: Progress | None,
    rows_before: int,
    total: int | None,
) -> Iterator[Event | Rejected]:
    done = 0
    reader = BatchReader(table.schema, table.types, table.name, f"`{table.name}`", table.mapping)
    for batch in batches:
        first = rows_before + done + 1
        for record in reader.read(batch, range(first, first + batch.num_rows)):
            yield record if isinstance(record, Event) else _numbered(record, rows_before)
        done += batch.num_rows
        if progress:
            progress(done, total)
    if progress:
        progress(done, total)


def _numbered(record: Rejected, rows_before: int) -> Rejected:
    """A refused row with its number in its own file."""
    return msgspec.structs.replace(record, number=record.number - rows_before)


def _at_rest(file: BinaryIO, stack: ExitStack) -> BinaryIO:
    """A copy of what a pipe brings, which can be read from its end."""
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(file, copy)
    copy.seek(0)
    return cast(BinaryIO, copy)


def open_parquet(file: Path | BinaryIO, name: str, stack: ExitStack) -> pq.ParquetFile:
    if not isinstance(file, Path) and not file.seekable():
        file = _at_rest(file, stack)
    try:
        return stack.enter_context(pq.ParquetFile(file))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(name, error) from None


def parquet_batches(file: pq.ParquetFile, name: str) -> Iterator[pa.RecordBatch]:
    """The rows of a file in batches of bounded size, however small they are packed."""
    try:
        for group in range(file.metadata.num_row_groups):
            rows = _rows_at_once(file, group)
            yield from file.iter_batches(batch_size=rows, row_groups=[group])
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(name, error) from None


def _rows_at_once(file: pq.ParquetFile, group: int) -> int:
    """How many rows of a group fill `BATCH_BYTES`, judged by its first ones.

    What a group says of its size is how it is packed: one text that stands in a million rows is
    written once.
    """
    first = next(file.iter_batches(batch_size=PROBED_ROWS, row_groups=[group]), None)
    if first is None or not len(first):
        return PROBED_ROWS
    bytes_a_row: int = max(1, first.nbytes // len(first))
    return max(1, min(BATCH_ROWS, BATCH_BYTES // bytes_a_row))


def _unreadable(name: str, error: Exception) -> UsageError:
    return UsageError(f"`{name}` cannot be read as Parquet: {error}")

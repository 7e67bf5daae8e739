"""Parquet and Arrow files of events, batch by batch.

In comes a file; out go its records in order, as in `reading`. `arrow` makes events of the rows.
This module is separate from `reading` because it needs pyarrow.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ensue.errors import UsageError
from ensue.events.arrow import BatchReader
from ensue.events.event import Event, Rejected
from ensue.events.last_record import LastRecord
from ensue.events.mapping import Mapping
from ensue.events.records.progress import OnProgress
from ensue.events.types import TypeSystem

BATCH_ROWS = 1 << 17
BATCH_BYTES = 1 << 25
"""The most rows, and about the most bytes, that are unpacked at once."""
MOST_BYTES = 1 << 26
"""The most bytes that a batch may take in the worst case."""
PROBED_ROWS = FEW_ROWS = 64
_TEXT = "BYTE_ARRAY"
_WITH_ALL_VALUES = {"PLAIN", "RLE", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "BIT_PACKED"}
"""Encodings of texts whose dictionary or first values bound the length of all values."""
_FILE_SIGN = b"ARROW1"
_PARQUET_SIGN = b"PAR1"
_AGAIN = "write the file again, or copy it again from where it is whole"
_SMALLEST_PARQUET = 12
"""The bytes of both magic signs, and of the length of the footer between them."""


def read_parquet(
    file: Path | BinaryIO,
    name: str,
    types: TypeSystem,
    progress: OnProgress | None = None,
    mapping: Mapping | None = None,
    last: LastRecord | None = None,
    label: str | None = None,
) -> Iterator[Event | Rejected]:
    """The records of a file; `name` is the `source` of rows without one.

    `label` is the file in ids of rows without one, by default `name`.
    """
    with ExitStack() as stack:
        opened = open_parquet(file, name, stack)
        batches = parquet_batches(opened, name)
        total = opened.file.metadata.num_rows
        table = _Table(opened.file.schema_arrow, name, label or name, types, mapping)
        yield from _records(batches, table, progress, total, last)


def read_arrow(
    file: Path | BinaryIO,
    name: str,
    types: TypeSystem,
    progress: OnProgress | None = None,
    mapping: Mapping | None = None,
    last: LastRecord | None = None,
    label: str | None = None,
) -> Iterator[Event | Rejected]:
    """As `read_parquet`, from an Arrow file or stream."""
    with ExitStack() as stack:
        opened = stack.enter_context(file.open("rb")) if isinstance(file, Path) else file
        schema, batches = open_arrow(opened, name, stack)
        table = _Table(schema, name, label or name, types, mapping)
        yield from _records(batches, table, progress, None, last)


def open_arrow(
    file: BinaryIO, name: str, stack: ExitStack
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and the batches of an Arrow stream, or of an Arrow file."""
    try:
        reader = _opened_arrow(file, stack)
        plain = pa.schema([(each.name, _plain_layout(each.type)) for each in reader.schema])
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise UsageError(
            f"`{name}` cannot be read as Arrow: it is another format, or damaged, or breaks off"
            f" ({_reason(error)}); {_AGAIN}"
        ) from None
    return plain, _whole_batches(reader, plain, name)


def _whole_batches(
    reader: pa.RecordBatchReader, plain: pa.Schema, name: str
) -> Iterator[pa.RecordBatch]:
    number = 0
    try:
        for batch in reader:
            batch.validate()
            for column in batch.columns:
                _check_offsets(column)
            number += 1
            yield pa.RecordBatch.from_arrays(
                [
                    column if column.type == type_ else column.cast(type_)
                    for column, type_ in zip(batch.columns, plain.types, strict=True)
                ],
                schema=plain,
            )
    except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError, MemoryError) as error:
        raise UsageError(
            f"`{name}` cannot be read as Arrow: batch {number + 1} is damaged, or breaks off"
            f" ({_reason(error)}); {_AGAIN}"
        ) from None


def _plain_layout(type_: pa.DataType) -> pa.DataType:
    """The type without views, for which pyarrow has few functions."""
    kind = pa.types
    if kind.is_string_view(type_):
        return pa.string()
    if kind.is_binary_view(type_):
        return pa.binary()
    if kind.is_list(type_):
        return pa.list_(_plain_layout(type_.value_type))
    if kind.is_large_list(type_):
        return pa.large_list(_plain_layout(type_.value_type))
    if kind.is_struct(type_):
        return pa.struct([(each.name, _plain_layout(each.type)) for each in type_])
    return type_


def _check_offsets(array: pa.Array) -> None:
    """Raises `ArrowInvalid` if the offsets of values are wrong.

    Pyarrow trusts the offsets in a file. Its full validation would also refuse a whole batch for
    one text that is no UTF-8, where only the row is refused here.
    """
    kind, type_ = pa.types, array.type
    if kind.is_dictionary(type_):
        places = array.indices.drop_null().to_numpy()
        if len(places) and not 0 <= places.min() <= places.max() < len(array.dictionary):
            raise pa.ArrowInvalid("a value of a column is none of its dictionary")
        _check_offsets(array.dictionary)
    elif kind.is_struct(type_):
        for number in range(type_.num_fields):
            _check_offsets(array.field(number))
    elif kind.is_fixed_size_list(type_):
        _check_offsets(array.values)
    else:
        is_large = kind.is_large_string(type_) or kind.is_large_binary(type_)
        is_text = is_large or kind.is_string(type_) or kind.is_binary(type_)
        is_list = kind.is_list(type_) or kind.is_large_list(type_) or kind.is_map(type_)
        if not (is_text or is_list):
            # Views, unions and other types with offsets of their own.
            array.validate(full=True)
            return
        if not len(array):
            return
        _, buffer, *rest = array.buffers()
        width: Any = np.int64 if is_large or kind.is_large_list(type_) else np.int32
        count = array.offset + len(array) + 1
        offsets = np.frombuffer(buffer, width, count)[array.offset :]
        room = (rest[0].size if rest[0] is not None else 0) if is_text else len(array.values)
        if offsets[0] < 0 or offsets[-1] > room or (offsets[1:] < offsets[:-1]).any():
            raise pa.ArrowInvalid("the offsets of a column do not rise")
        if is_list:
            _check_offsets(array.values)


def _opened_arrow(file: BinaryIO, stack: ExitStack) -> pa.RecordBatchReader:
    """The reader of an Arrow stream, or of an Arrow file, which is read from its end."""
    seekable = file if file.seekable() else _at_rest(file, stack)
    if seekable.read(len(_FILE_SIGN)) != _FILE_SIGN:
        seekable.seek(0)
        return pa.ipc.open_stream(seekable)
    seekable.seek(0)
    opened = pa.ipc.open_file(seekable)
    batches = (opened.get_batch(number) for number in range(opened.num_record_batches))
    return pa.RecordBatchReader.from_batches(opened.schema, batches)


class _Table(NamedTuple):
    """The facts that all rows of a file share."""

    schema: pa.Schema
    name: str
    label: str
    types: TypeSystem
    mapping: Mapping | None


def _records(
    batches: Iterable[pa.RecordBatch],
    table: _Table,
    progress: OnProgress | None,
    total: int | None,
    last: LastRecord | None,
) -> Iterator[Event | Rejected]:
    done = 0
    where = f"`{table.name}`"
    reader = BatchReader(table.schema, table.types, table.name, where, table.mapping, table.label)
    for batch in batches:
        numbers = range(done + 1, done + 1 + batch.num_rows)
        yield from reader.read(batch, numbers, last)
        done += batch.num_rows
        if progress:
            progress(done, total)
    if progress:
        progress(done, total)


def _at_rest(file: BinaryIO, stack: ExitStack) -> BinaryIO:
    """A copy of the bytes of a pipe, which can be read from its end."""
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(file, copy)
    copy.seek(0)
    return cast(BinaryIO, copy)


class Parquet(NamedTuple):
    """A file, opened twice: `packed` reads texts as dictionaries, with each value once."""

    file: pq.ParquetFile
    packed: pq.ParquetFile


def open_parquet(file: Path | BinaryIO, name: str, stack: ExitStack) -> Parquet:
    if not isinstance(file, Path) and not file.seekable():
        file = _at_rest(file, stack)
    try:
        opened = stack.enter_context(pq.ParquetFile(file))
        # Names that are no UTF-8 raise an error when they are read.
        str(opened.schema_arrow)
        texts = [each.path for each in opened.schema if each.physical_type == _TEXT]
        packed = pq.ParquetFile(file, metadata=opened.metadata, read_dictionary=texts)
        return Parquet(opened, stack.enter_context(packed))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"`{name}` cannot be read as Parquet: {_what_is_wrong(file, error)}"
        ) from None


def parquet_batches(opened: Parquet, name: str) -> Iterator[pa.RecordBatch]:
    """The rows of a file in batches of bounded size, however well they are compressed."""
    file = opened.file
    groups = file.metadata.num_row_groups
    for group in range(groups):
        try:
            rows, most = _rows_at_once(opened, group)
            read = file.iter_batches(batch_size=most, row_groups=[group])
            yield from read if most == rows else _joined(read, rows)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"`{name}` cannot be read as Parquet: row group {group + 1} of {groups} is damaged"
                f" ({_reason(error)}); {_AGAIN}"
            ) from None


def _rows_at_once(opened: Parquet, group: int) -> tuple[int, int]:
    """The rows of a group that fill `BATCH_BYTES`, and the most rows that are safe to read.

    The size of a group in its metadata is that of its packed form: a text that occurs in a million
    rows is written once. The first rows show the size of rows, and the texts; no batch is read that
    could take more than `MOST_BYTES` if each of its rows had the longest text.
    """
    try:
        first = next(opened.packed.iter_batches(batch_size=PROBED_ROWS, row_groups=[group]), None)
    except (pa.ArrowNotImplementedError, OSError):
        # Some encodings cannot be read as dictionaries; damage is found once more.
        first = next(opened.file.iter_batches(batch_size=PROBED_ROWS, row_groups=[group]), None)
    if first is None or not len(first):
        return PROBED_ROWS, PROBED_ROWS
    mean = max(1, sum(map(_unpacked_bytes, first.columns)) // len(first))
    rows = max(1, min(BATCH_ROWS, BATCH_BYTES // mean))
    longest = max(1, sum(map(_longest_bytes, first.columns)))
    return rows, max(1, min(rows, MOST_BYTES // longest, _rows_by_encoding(opened.file, group)))


def _rows_by_encoding(file: pq.ParquetFile, group: int) -> int:
    """The rows that are safe to read if the first rows do not show all texts."""
    described = file.metadata.row_group(group)
    rows = BATCH_ROWS
    for column in (described.column(number) for number in range(described.num_columns)):
        if column.physical_type != _TEXT:
            continue
        # Texts in a delta encoding, or with too many different values for a dictionary.
        if (
            not _WITH_ALL_VALUES.issuperset(column.encodings)
            or column.total_uncompressed_size > MOST_BYTES
        ):
            rows = FEW_ROWS
        # A row with a list has several values.
        rows = min(rows, BATCH_ROWS * described.num_rows // max(1, column.num_values))
    return rows


def _joined(read: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Small batches joined, up to so many rows and `BATCH_BYTES`."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in read:
        if waiting and (count + len(batch) > rows or size + batch.nbytes > BATCH_BYTES):
            yield waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)
            waiting, count, size = [], 0, 0
        waiting.append(batch)
        count, size = count + len(batch), size + batch.nbytes
    if waiting:
        yield pa.concat_batches(waiting)


def _unpacked_bytes(array: pa.Array) -> int:
    """The size of all values, with every occurrence of a dictionary value."""
    if pa.types.is_struct(array.type):
        fields = (array.field(number) for number in range(array.type.num_fields))
        return sum(map(_unpacked_bytes, fields))
    if pa.types.is_dictionary(array.type):
        places = array.indices.drop_null().to_numpy()
        each = _lengths(array.dictionary)
        return int(array.indices.nbytes + each[places].sum())
    if _is_list(array.type):
        return int(array.nbytes - array.values.nbytes) + _unpacked_bytes(array.flatten())
    return int(array.nbytes)


def _longest_bytes(array: pa.Array) -> int:
    """The size of a row with the longest text in every place."""
    if pa.types.is_struct(array.type):
        fields = (array.field(number) for number in range(array.type.num_fields))
        return sum(map(_longest_bytes, fields))
    if pa.types.is_dictionary(array.type):
        return int(_lengths(array.dictionary).max(initial=8))
    if _is_list(array.type):
        counted = pc.list_value_length(array).fill_null(0)
        return int(pc.max(counted).as_py() or 1) * _longest_bytes(array.values)
    return int(array.nbytes) // max(1, len(array)) + 1


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _lengths(dictionary: pa.Array) -> Any:
    """The bytes of each value of a dictionary, and a 0, so that there is at least one."""
    try:
        lengths = pc.binary_length(dictionary).fill_null(0).to_numpy()
    except pa.ArrowNotImplementedError:
        # Numbers have one size.
        lengths = np.full(len(dictionary), dictionary.nbytes // max(1, len(dictionary)))
    return np.append(lengths, 0)


def _what_is_wrong(file: Path | BinaryIO, error: Exception) -> str:
    """The reason why a file cannot be opened, by its first and last bytes, and what to do."""
    try:
        with file.open("rb") if isinstance(file, Path) else nullcontext(file) as opened:
            opened.seek(0)
            begin = opened.read(len(_PARQUET_SIGN))
            size = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, size - len(_PARQUET_SIGN)))
            end = opened.read()
    except OSError:
        return _reason(error)
    if not size:
        return f"it is empty; {_AGAIN}"
    if begin != _PARQUET_SIGN:
        return (
            "it does not begin with `PAR1`, as such a file does; if it is CSV, JSON lines or Arrow,"
            " say so with `--format`, or give it another ending"
        )
    if end != _PARQUET_SIGN or size < _SMALLEST_PARQUET:
        return (
            f"it begins as Parquet and breaks off after {size:,} bytes, before the description of"
            f" its columns, which stands at the end; {_AGAIN}"
        )
    return f"the description of its columns is damaged ({_reason(error)}); {_AGAIN}"


def _reason(error: Exception) -> str:
    """The message of pyarrow as part of a sentence."""
    text = str(error).strip().rstrip(".") or "its lengths are those of no file"
    return f"{text[:1].lower()}{text[1:]}"

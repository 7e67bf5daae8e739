"""Packs between workers: rows as one value that Spark moves, or as a slice of a file.

In come rows; out go the values of `PACK_DDL` for one row of Spark. Where all workers stand on the
machine of the driver, a pack is written to a file of a folder that they share, and Spark moves only
its place. Bytes would pass through Java four times, which takes longer than the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa

from ensue.errors import JobError

PACK_DDL = "packed binary, pack_file string, pack_begin bigint, pack_size bigint"
PACK_FIELDS: list[tuple[str, pa.DataType]] = [
    ("packed", pa.binary()),
    ("pack_file", pa.string()),
    ("pack_begin", pa.int64()),
    ("pack_size", pa.int64()),
]
PACK_COLUMNS = tuple(name for name, _ in PACK_FIELDS)
_ALIGNED = 64
"""Columns of Arrow begin at multiples of so many bytes of their stream."""

Batches = Iterator[pa.RecordBatch]


class PackWriter:
    """Writes the packs of a task, all into one file of a folder if there is one."""

    def __init__(self, folder: str | None) -> None:
        self._path = None if folder is None else str(Path(folder) / uuid4().hex)
        self._opened = ExitStack()
        self._file: pa.NativeFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def write(self, rows: pa.RecordBatch) -> Mapping[str, Any]:
        """The values of a row of `PACK_DDL`. Raises `JobError` if a file cannot be written."""
        if self._path is None:
            sink = pa.BufferOutputStream()
            _write_stream(sink, rows)
            return {"packed": sink.getvalue()}
        try:
            if self._file is None:
                self._file = self._opened.enter_context(pa.OSFile(self._path, "wb"))
            begin = self._file.tell()
            _write_stream(self._file, rows)
            size = self._file.tell() - begin
            self._file.write(bytes(-size % _ALIGNED))
            self._file.flush()
        except OSError as error:
            raise JobError(
                f"events on their way cannot be written to `{self._path}`: {error}; make room"
                " there, or choose another folder with `spark.local.dir`"
            ) from None
        return {"pack_file": self._path, "pack_begin": begin, "pack_size": size}


def _write_stream(sink: pa.NativeFile, rows: pa.RecordBatch) -> None:
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)


def repeated(value: Any, count: int, type_: pa.DataType) -> pa.Array:
    """A column of one value. Bytes in a buffer may be many, and are not copied."""
    if isinstance(value, pa.Buffer):
        offsets = pa.py_buffer(np.array([0, value.size], np.int32))
        return pa.Array.from_buffers(type_, 1, [None, offsets, value])
    return pa.nulls(count, type_) if value is None else pa.array([value] * count, type_)


def unpacked(packs: pa.RecordBatch) -> Batches:
    """The rows of packs, which stand in columns of `PACK_DDL`."""
    values = {name: packs.column(packs.schema.get_field_index(name)) for name, _ in PACK_FIELDS}
    with ExitStack() as opened:
        files: dict[str, pa.NativeFile] = {}
        for number in range(packs.num_rows):
            packed, path, begin, size = (each[number] for each in values.values())
            if packed.is_valid:
                buffer = packed.as_buffer()
            elif path.is_valid:
                name = path.as_py()
                if name not in files:
                    files[name] = opened.enter_context(pa.memory_map(name))
                files[name].seek(begin.as_py())
                buffer = files[name].read_buffer(size.as_py())
            else:
                continue
            with pa.ipc.open_stream(buffer) as stream:
                yield from stream

"""Files of tables of outputs: Parquet, CSV or Arrow.

In come tables one after the other; out goes one file. All columns are known only at the end, since
events that are sent on have columns of their own: until then tables are in temporary files, one for
each schema in turn, and are then written batch by batch.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ensue.events.cloudevents import write_json
from ensue.events.files.output.endings import FORMATS
from ensue.events.kernels.json_writing import write_times

_LONGEST_TIME = 29


class TableFile:
    """Outputs that become a file. Nothing is written to it before `write_to`."""

    def __init__(self, path: Path, columns: pa.Schema) -> None:
        """`columns` come first in the file, whether outputs have them or not."""
        self._format = FORMATS[path.suffix.lower()]
        self._delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        self._columns = columns.remove_metadata()
        self._parts: list[tuple[Any, Any]] = []
        self._schemas: list[pa.Schema] = []

    def restart(self) -> None:
        """Forget all outputs."""
        for writer, file in self._parts:
            writer.close()
            file.close()
        self._parts, self._schemas = [], []

    def add(self, table: pa.Table) -> None:
        schema = table.schema.remove_metadata()
        if not self._schemas or self._schemas[-1] != schema:
            file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it has been read
            self._parts.append((pa.ipc.new_stream(file, schema), file))
            self._schemas.append(schema)
        self._parts[-1][0].write_table(table.replace_schema_metadata(None))

    def write_to(self, file: BinaryIO) -> None:
        """Write everything, with the columns of all outputs."""
        for writer, _ in self._parts:
            writer.close()
        schema = pa.unify_schemas([self._columns, *self._schemas], promote_options="permissive")
        out = self._writer(file, schema)
        for _, part in self._parts:
            part.seek(0)
            with part, pa.ipc.open_stream(part) as batches:
                for batch in batches:
                    out.write(_fitted(pa.Table.from_batches([batch]), schema))
        out.close()
        self._parts, self._schemas = [], []

    def _writer(self, file: BinaryIO, schema: pa.Schema) -> Any:
        match self._format:
            case "parquet":
                return pq.ParquetWriter(file, schema)
            case "arrow":
                return pa.ipc.new_file(file, schema)
            case "arrow stream":
                return pa.ipc.new_stream(file, schema)
        options = pyarrow.csv.WriteOptions(delimiter=self._delimiter, quoting_style="needed")
        return _Csv(file, schema, options)


class CsvRows:
    """Tables as rows of CSV with fixed columns; columns that are none of them are left out."""

    def __init__(self, columns: pa.Schema, delimiter: str) -> None:
        self._columns = columns.remove_metadata()
        self._delimiter = delimiter

    @property
    def header(self) -> bytes:
        return self._written(self._columns.empty_table(), True)

    def rows(self, table: pa.Table) -> bytes:
        return self._written(_fitted(table, self._columns), False)

    def _written(self, table: pa.Table, with_header: bool) -> bytes:
        options = pyarrow.csv.WriteOptions(
            include_header=with_header, delimiter=self._delimiter, quoting_style="needed"
        )
        file = io.BytesIO()
        out = _Csv(file, self._columns, options)
        out.write(table)
        out.close()
        return file.getvalue()


class _Csv:
    """Writes CSV: times as RFC 3339, and lists as JSON."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, options: Any) -> None:
        fields = [
            pa.field(each.name, pa.string()) if _is_written(each.type) else each for each in schema
        ]
        self._schema = pa.schema(fields)
        self._writer = pyarrow.csv.CSVWriter(file, self._schema, write_options=options)

    def write(self, table: pa.Table) -> None:
        columns = [
            _written(column) if _is_written(column.type) else column for column in table.columns
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _is_written(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_nested(type_))


def _written(column: pa.ChunkedArray) -> pa.Array:
    """Times and lists as text."""
    array = column.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_nested(array.type):
        texts = [None if each is None else write_json(each) for each in array.to_pylist()]
        return pa.array(texts, pa.string())
    gone = np.asarray(array.is_null())
    values = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    out, offsets = (
        np.empty(len(array) * _LONGEST_TIME, np.uint8),
        np.empty(len(array) + 1, np.int64),
    )
    used = write_times(values, gone, False, out, offsets)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out[:used])]
    texts = pa.Array.from_buffers(pa.large_string(), len(array), buffers).cast(pa.string())
    return pc.if_else(pa.array(gone), pa.scalar(None, pa.string()), texts)


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with all columns of a schema, null where it has none."""
    columns = []
    for field in schema:
        place = table.schema.get_field_index(field.name)
        if place < 0:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            columns.append(table.column(place).cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)

"""Arrow columns with types for which pyarrow has functions.

In come rows or a schema of a file; out go the same with text views as text, and UUIDs (which DuckDB
and other databases write) as their usual text. All other types stay, and `arrow_types` refuses a
type that no event can have.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_HEX = np.frombuffer(bytes(range(256)).hex().encode(), np.uint8).reshape(-1, 2)
_UUID_BYTES, _UUID_CHARACTERS = 16, 36
_DASHES = (8, 13, 18, 23)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of `plain_rows`."""
    fields = [field.with_type(_plain(field.type)) for field in schema]
    return pa.schema(fields, schema.metadata)


def plain_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without views and UUIDs."""
    schema = plain_schema(rows.schema)
    if schema.equals(rows.schema):
        return rows
    columns = [
        _uuid_texts(column) if _is_uuid(column.type) else column.cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(type_) or _is_uuid(type_):
        return pa.string()
    if pa.types.is_struct(type_):
        inner = [type_.field(number) for number in range(type_.num_fields)]
        if any(_is_uuid(field.type) for field in inner):
            return type_
        return pa.struct([field.with_type(_plain(field.type)) for field in inner])
    return type_


def _is_uuid(type_: pa.DataType) -> bool:
    return isinstance(type_, pa.UuidType)


def _uuid_texts(column: pa.ExtensionArray) -> pa.Array:
    """UUIDs as groups of hexadecimal digits; null stays null."""
    given = column.storage
    count = len(given)
    _, buffer = given.buffers()
    octets = np.frombuffer(buffer, np.uint8, (given.offset + count) * _UUID_BYTES)
    octets = octets[given.offset * _UUID_BYTES :]
    texts = np.full((count, _UUID_CHARACTERS), ord("-"), np.uint8)
    digits = [place for place in range(_UUID_CHARACTERS) if place not in _DASHES]
    texts[:, digits] = _HEX[octets].reshape(count, 2 * _UUID_BYTES)
    offsets = np.arange(count + 1, dtype=np.int32) * _UUID_CHARACTERS
    found = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts))
    return pc.if_else(given.is_valid(), found, pa.scalar(None, pa.string()))

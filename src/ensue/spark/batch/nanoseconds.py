"""Types of Parquet that Spark reads otherwise: nanoseconds, empty columns, and types that differ.

Spark reads times in nanoseconds, as pandas writes them, only as numbers; it takes a column in which
there is nothing for integers, and a column for the type that it has in the first file. In come the
paths of files; out go the names of such columns, told by the schemas of the files, the types that
other files have for them, and expressions that cut numbers to microseconds. Only files of this
machine can be looked into; for others the user says the unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from ensue.spark.sql.instants import instant_of_number

SIGN = "TIMESTAMP(NANOS"
"""In what Spark says of such a file."""
SETTING = "spark.sql.legacy.parquet.nanosAsLong"
BY_VECTORS = "spark.sql.parquet.enableVectorizedReader"
"""Only Spark's reader of single rows takes a column that is null by its type for another one."""


def nanosecond_columns(files: Sequence[str], read: st.StructType) -> dict[str, bool]:
    """The columns of nanoseconds, and whether their times have no zone.

    `read` has the columns as Spark reads them: times of INT96 are no numbers to it. Files that
    cannot be looked into from here have none: their numbers need a unit, `ts:ns`.
    """
    schema = schema_here(files[0])
    numbers = {field.name for field in read if isinstance(field.dataType, st.LongType)}
    return {
        field.name: field.type.tz is None
        for field in schema or ()
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns" and field.name in numbers
    }


def empty_columns(files: Sequence[str], read: st.StructType) -> list[str]:
    """The columns that are null in all files by their type, which Spark takes for integers.

    pandas writes a column so in which there is no value. Files must be of this machine.
    """
    found = {field.name for field in read if isinstance(field.dataType, st.IntegerType)}
    for file in files:
        schema = schema_here(file) if found else None
        if schema is None:
            return []
        found &= {field.name for field in schema if pa.types.is_null(field.type)}
    return sorted(found)


class DifferentTypes(NamedTuple):
    """Columns that do not have the same type in all files.

    `elsewhere` has those that are null by their type in some files, or of fewer bits than in
    others, each with a file that has the other type; `null` those of them that are null by their
    type; `clashing` those of different kinds, each with the reason why Spark cannot read them: it
    would take them for the kind of the first file.
    """

    elsewhere: dict[str, str]
    null: set[str]
    clashing: dict[str, str]


def different_types(files: Sequence[str]) -> DifferentTypes:
    """The columns of files on this machine that do not have the same type in all of them."""
    found: dict[str, list[tuple[pa.DataType, str]]] = {}
    for file in files:
        for field in schema_here(file) or ():
            type_ = _value_type(field.type)
            if type_ == pa.timestamp("ns") and _is_int96(file, field.name):
                type_ = pa.timestamp("us", "UTC")
            found.setdefault(field.name, []).append((type_, file))
    different = DifferentTypes({}, set(), {})
    for name, given in found.items():
        typed = [each for each in given if not pa.types.is_null(each[0])]
        if len({_kind(type_) for type_, _ in typed}) > 1:
            different.clashing[name] = _of_different_kinds(name, typed)
            continue
        widest = max(typed, key=lambda each: _bits(each[0]), default=None)
        if widest is not None and any(_is_other(type_, widest[0]) for type_, _ in given):
            different.elsewhere[name] = widest[1]
            different.null.update([name] if len(typed) < len(given) else [])
    return different


def _is_int96(file: str, name: str) -> bool:
    """Whether times are in the old form, which Spark writes, and reads as instants."""
    columns = pq.read_metadata(_path(file)).schema
    return any(
        columns.column(place).path == name and columns.column(place).physical_type == "INT96"
        for place in range(len(columns))
    )


def _is_other(type_: pa.DataType, widest: pa.DataType) -> bool:
    return pa.types.is_null(type_) or _bits(type_) < _bits(widest)


def _value_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _kind(type_: pa.DataType) -> str:
    """What values of a type are to Spark, however many bits they have."""
    kind = pa.types
    if kind.is_signed_integer(type_):
        return "integer"
    if kind.is_float32(type_) or kind.is_float64(type_):
        return "real"
    if kind.is_string(type_) or kind.is_large_string(type_):
        return "text"
    if kind.is_timestamp(type_):
        return f"timestamp {type_.unit == 'ns'} {type_.tz is None}"
    # Fields of nested values may differ in their names alone.
    return "nested" if kind.is_nested(type_) else str(type_)


def _bits(type_: pa.DataType) -> int:
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    return int(type_.bit_width) if is_number else 0


def _of_different_kinds(name: str, given: Sequence[tuple[pa.DataType, str]]) -> str:
    kinds = {_kind(type_): f"`{type_}` in `{Path(file).name}`" for type_, file in reversed(given)}
    return (
        f"the column `{name}` is {' and '.join(sorted(kinds.values()))}: Spark reads Parquet files"
        " with columns of the same kinds at a time, so run them apart, or choose the engine `batch`"
    )


def with_types(reader: Any, read: st.StructType, elsewhere: Mapping[str, str]) -> st.StructType:
    """The columns of files, with the types that some of them have elsewhere."""
    schemas = {file: reader.load(file).schema for file in set(elsewhere.values())}
    fields = {name: schemas[file][name] for name, file in elsewhere.items()}
    known = {field.name for field in read}
    added = [each for name, each in fields.items() if name not in known]
    return st.StructType([*(fields.get(each.name, each) for each in read), *added])


def schema_here(file: str) -> pa.Schema | None:
    """The schema of a file of this machine; None for any other, and for what is no Parquet.

    Whether such a file is passed over or named in an error is for its reader to say.
    """
    path = _path(file)
    try:
        return pq.read_schema(path) if path.is_file() else None
    except (pa.ArrowInvalid, OSError):
        return None


def _path(file: str) -> Path:
    return Path(file.removeprefix("file:"))


def in_microseconds(number: Column, is_local: bool) -> Column:
    """Nanoseconds since 1970 as a timestamp, without a zone where they had none."""
    instant = instant_of_number(number, st.LongType(), "ns")
    if not is_local:
        return instant
    epoch = sf.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return sf.timestamp_add("MICROSECOND", sf.unix_micros(instant), epoch)

"""Parquet as pandas writes it: times in nanoseconds, and columns in which there is nothing.

Spark reads the first only as numbers, and takes the second for integers, also where other files
have values. In come the paths of files; out go the names of such columns, told by the schemas of
the files, the types that other files have for them, and expressions that cut numbers to
microseconds. Only files of this machine can be looked into; for others the user says the unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import types as st

from ensue.spark.sql.instants import instant_of_local, instant_of_number

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


def types_elsewhere(files: Sequence[str]) -> dict[str, str]:
    """Columns that are null by their type in some files, each with a file that has another one."""
    lacking: set[str] = set()
    typed: dict[str, str] = {}
    for file in files:
        for field in schema_here(file) or ():
            if pa.types.is_null(field.type):
                lacking.add(field.name)
            else:
                typed.setdefault(field.name, file)
    return {name: typed[name] for name in sorted(lacking) if name in typed}


def with_types(reader: Any, read: st.StructType, elsewhere: Mapping[str, str]) -> st.StructType:
    """The columns of files, with the types of those files that have one (`types_elsewhere`)."""
    schemas = {file: reader.load(file).schema for file in set(elsewhere.values())}
    fields = {name: schemas[file][name] for name, file in elsewhere.items()}
    known = {field.name for field in read}
    added = [each for name, each in fields.items() if name not in known]
    return st.StructType([*(fields.get(each.name, each) for each in read), *added])


def schema_here(file: str) -> pa.Schema | None:
    """The schema of a file of this machine; None for any other, and for what is no Parquet.

    Whether such a file is passed over or named in an error is for its reader to say.
    """
    path = Path(file.removeprefix("file:"))
    try:
        return pq.read_schema(path) if path.is_file() else None
    except (pa.ArrowInvalid, OSError):
        return None


def in_microseconds(number: Column, is_local: bool, zone: str | None) -> Column:
    """Nanoseconds since 1970 as a timestamp; local ones in a zone, or in UTC."""
    instant = instant_of_number(number, st.LongType(), "ns")
    return instant_of_local(instant, zone) if is_local and zone is not None else instant

"""Parquet with times in nanoseconds, as pandas writes it, which Spark reads only as numbers.

In come the paths of files; out go the names of such columns, told by the schema of the first file,
and expressions that cut numbers to microseconds. Only files of this machine can be looked into; for
others the user says the unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import types as st

from ensue.spark.sql.instants import instant_of_local, instant_of_number

SIGN = "TIMESTAMP(NANOS"
"""In what Spark says of such a file."""
SETTING = "spark.sql.legacy.parquet.nanosAsLong"


def nanosecond_columns(files: Sequence[str]) -> dict[str, bool]:
    """The columns of nanoseconds, and whether their times have no zone.

    Files that cannot be looked into from here have none: their numbers need a unit, `ts:ns`.
    """
    first = files[0].removeprefix("file:")
    if not Path(first).is_file():
        return {}
    schema = pq.read_schema(first)
    return {
        field.name: field.type.tz is None
        for field in schema
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns"
    }


def in_microseconds(number: Column, is_local: bool, zone: str | None) -> Column:
    """Nanoseconds since 1970 as a timestamp; local ones in a zone, or in UTC."""
    instant = instant_of_number(number, st.LongType(), "ns")
    return instant_of_local(instant, zone) if is_local and zone is not None else instant

"""Rows that travel as JSON text, as Arrow again.

In come texts that Spark's `to_json` has written with `JSON_OPTIONS`, and the Arrow type of a row;
out go the rows with the values that they had. Rows of a stream that are no events travel so: a
nested column for them would cost time at every row, for each of its fields, even where it is empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

_INSTANT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
JSON_OPTIONS = {
    "dateFormat": "yyyy-MM-dd",
    "timestampFormat": _INSTANT,
    "timestampNTZFormat": _INSTANT,
    "timeZone": "UTC",
}


def arrow_schema(rows: DataFrame) -> pa.Schema:
    """The schema of rows as Arrow has it, with instants in UTC."""
    # To Spark 4.1 the zone is UTC unless told otherwise; to later ones it has to be told.
    asks_for_zone = "timezone" in signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if asks_for_zone else {}
    return to_arrow_schema(rows.schema, **zone)


def rows_of_json(texts: Iterable[str], row_type: pa.DataType) -> pa.StructArray:
    # A real number as a decimal, since a column of decimals may have more digits than a double.
    read = [json.loads(each, parse_float=Decimal) for each in texts]
    return pa.array([_value(each, row_type) for each in read], row_type)


def _value(given: Any, type_: pa.DataType) -> Any:
    """A value as Arrow takes it for a type."""
    if given is None:
        return None
    if pa.types.is_struct(type_):
        return {each.name: _value(given.get(each.name), each.type) for each in type_}
    if pa.types.is_list(type_):
        return [_value(each, type_.value_type) for each in given]
    if pa.types.is_map(type_):
        return [(_key(k, type_.key_type), _value(v, type_.item_type)) for k, v in given.items()]
    if pa.types.is_integer(type_):
        return int(given)
    if pa.types.is_floating(type_):
        # `NaN` and `Infinity` are texts in JSON.
        return float(given)
    if pa.types.is_decimal(type_):
        return Decimal(given)
    if pa.types.is_boolean(type_):
        return given in (True, "true")
    if pa.types.is_timestamp(type_):
        # Python's own times end with the year 9999, and a row may be rejected for that.
        return int(np.datetime64(given, "us").astype(np.int64))
    if pa.types.is_date(type_):
        return int(np.datetime64(given, "D").astype(np.int64))
    if pa.types.is_time(type_):
        return int(np.datetime64(f"1970-01-01T{given}", type_.unit).astype(np.int64))
    return given


def _key(given: str, type_: pa.DataType) -> Any:
    """A key of a map, which is text; Spark writes a time in it as a plain number."""
    return int(given) if pa.types.is_temporal(type_) else _value(given, type_)

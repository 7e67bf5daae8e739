"""CESQL values in Spark SQL, and the casts from one kind to another.

In comes a Python constant or a SQL value; out goes a SQL value of the kind that an operator needs.
SQL's null stands for an error of CESQL. A cast that SQL would do differently (the text of a real, a
number or a time in text) raises `NotInSqlError`, and Python does it in the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from ensue.events.times import microseconds_of
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.values import (
    LARGEST_INTEGER,
    FaultError,
    kind_of,
    to_boolean,
    to_number,
    to_string,
    to_timestamp,
)


class NotInSqlError(Exception):
    """SQL would give another result than Python; the message names the operation."""


@dataclass(frozen=True)
class Sql:
    """A value in SQL: null where CESQL has an error.

    `kind` is `boolean`, `integer`, `real`, `string` or `timestamp`, or None for a value that only
    `EXISTS` takes (a sequence, or an error). `constant` is the value of a constant expression.
    """

    kind: str | None
    column: Column
    constant: Any = MISSING


def error() -> Sql:
    return Sql(None, sf.lit(None).cast("boolean"))


def literal(constant: Any) -> Sql:
    """A Python constant as a SQL value."""
    kind = kind_of(constant)
    if isinstance(constant, datetime):
        # As a number, since Spark converts timestamp literals before 1582 to another calendar.
        return Sql(kind, sf.timestamp_micros(sf.lit(microseconds_of(constant))), constant)
    if kind == "integer":
        if constant > LARGEST_INTEGER:
            raise NotInSqlError(f"the integer {constant} is too large for Spark")
        return Sql(kind, sf.lit(constant).cast("bigint"), constant)
    if kind == "real":
        return Sql(kind, sf.lit(float(constant)).cast("double"), constant)
    return Sql(kind, sf.lit(constant), constant)


# --- casts --------------------------------------------------------------------------------------


def _cast(found: Sql, cast: Callable[[Any], Any]) -> Sql | None:
    """The cast of a constant; None for a value that is no constant."""
    if found.constant is MISSING:
        return None
    try:
        return literal(cast(found.constant))
    except FaultError:
        return error()


def as_boolean(found: Sql) -> Column:
    if (known := _cast(found, to_boolean)) is not None:
        return known.column
    if found.kind == "boolean":
        return found.column
    if found.kind == "string":
        lower = sf.lower(found.column)
        return sf.when(lower == "true", sf.lit(True)).when(lower == "false", sf.lit(False))
    return error().column


def as_number(found: Sql) -> Sql:
    """An integer or a real; an error for a value that is never a number."""
    if (known := _cast(found, to_number)) is not None:
        return known
    if found.kind in ("integer", "real"):
        return found
    if found.kind == "boolean":
        return Sql("integer", found.column.cast("bigint"))
    if found.kind == "string":
        raise NotInSqlError("text from an event is read as a number")
    return error()


def as_integer(found: Sql) -> Column:
    if found.kind in ("integer", "boolean"):
        return found.column.cast("bigint")
    if found.kind == "string":
        is_integer = found.column.rlike(r"\A[+-]?[0-9]+\z")
        return sf.when(is_integer, found.column.try_cast("bigint"))
    return sf.lit(None).cast("bigint")


def as_real(found: Sql) -> Column:
    return found.column.cast("double")


def as_string(found: Sql) -> Column:
    if (known := _cast(found, to_string)) is not None:
        return known.column.cast("string")
    if found.kind == "string":
        return found.column
    if found.kind in ("integer", "boolean"):
        return found.column.cast("string")
    if found.kind is None:
        return sf.lit(None).cast("string")
    raise NotInSqlError(f"a {found.kind} is shown as text")


def as_timestamp(found: Sql) -> Column:
    if (known := _cast(found, to_timestamp)) is not None and known.kind is not None:
        return known.column
    if found.kind == "timestamp":
        return found.column
    if found.kind == "string" and found.constant is MISSING:
        raise NotInSqlError("text from an event is read as a time")
    return sf.lit(None).cast("timestamp")

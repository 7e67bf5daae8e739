"""Which rows of a column fit an attribute: `ensue.events.conformance`, for many rows at once.

In comes a column as a table has it; out goes a mask of the rows that may not fit. What exactly is
wrong with such a row is said by conformance itself, which is asked about these rows alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import Column, Mask
from ensue.events.conformance import LARGEST_EXACT
from ensue.events.times import EARLIEST, LATEST
from ensue.events.types import INTEGER_RANGES, ValueType

LARGEST_FLOAT = (2 - 2**-24) * 2.0**127
"""From here on a real rounds to no 32-bit float."""


def is_empty(texts: pa.Array) -> Mask:
    _, offsets, _ = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    empty: Mask = ends[1:] == ends[:-1]
    return empty & np.asarray(texts.is_valid()) if texts.null_count else empty


def misfits_of(column: Column | None, type_: ValueType, arrow: pa.DataType) -> Mask | None:
    """The rows whose value does not fit; None if all do. Null fits."""
    if column is None:
        # An unsigned integer beyond 64 bits with a sign: let each row be asked.
        return np.ones(1, np.bool_)
    if column.missing is not None and column.missing.all():
        return None
    bad: Mask | None = _misfit_values(column, type_, arrow)
    if bad is not None and column.missing is not None:
        bad = bad & ~column.missing
    return bad


def _misfit_values(column: Column, type_: ValueType, arrow: pa.DataType) -> Any:
    values: Any = column.values
    if type_.name in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.name]
        if column.kind == "integer":
            if pa.types.is_integer(arrow) and _fits_by_type(arrow, low, high):
                return None
            return (values < low) | (values > high) if high < 2**63 else values < low
        if column.kind == "real":
            whole = np.isfinite(values) & (np.floor(values) == values)
            return ~(whole & (values >= low) & (values <= high) & (np.abs(values) <= LARGEST_EXACT))
        return np.ones(len(values), np.bool_)
    if type_.kind == "real":
        if column.kind == "integer":
            return None
        if column.kind != "real":
            return np.ones(len(values), np.bool_)
        return ~(np.abs(values) < (LARGEST_FLOAT if type_.name == "float" else np.inf))
    if type_.name == "char" and column.kind == "string":
        lengths = pc.fill_null(pc.utf8_length(values), 1)
        return np.asarray(lengths) != 1
    if type_.kind == column.kind == "timestamp":
        return (values < EARLIEST) | (values > LATEST)
    if type_.kind == column.kind:
        return None
    return np.ones(len(values), np.bool_)


def _fits_by_type(arrow: pa.DataType, low: int, high: int) -> bool:
    bits: int = arrow.bit_width
    if pa.types.is_unsigned_integer(arrow):
        return low <= 0 and high >= (1 << bits) - 1
    return low <= -(1 << bits - 1) and high >= (1 << bits - 1) - 1

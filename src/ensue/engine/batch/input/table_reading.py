"""How rows in plain columns are read: which types they have, and which of them do not fit.

In come the columns of a chunk (`ensue.events.files`); out go the instants and types of its rows,
and which rows may not fit their types: `ensue.events.conformance`, for many rows at once. What
exactly is wrong with a row is said by conformance itself, where the row is read by itself. The
values of outputs are brought to the types of their attributes by the same ranges (`fitted`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import Column, Mask, arrow_column, column_of
from ensue.engine.batch.input.keys import TextNumbers
from ensue.engine.outputs import fitting_key
from ensue.events.columns import Layout
from ensue.events.conformance import LARGEST_EXACT, conform_value
from ensue.events.files.tables import is_empty
from ensue.events.times import EARLIEST, LATEST
from ensue.events.types import INTEGER_RANGES, TypeSystem, ValueType
from ensue.lang.expressions.evaluation import MISSING

Instants = npt.NDArray[np.int64]

LARGEST_FLOAT = (2 - 2**-24) * 2.0**127
"""From here on a real rounds to no 32-bit float."""


def plain_text(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def attribute_column(array: pa.Array) -> Column | None:
    if pa.types.is_timestamp(array.type):
        instants = array.cast(pa.int64())
        return Column(
            "timestamp",
            pc.fill_null(instants, 0).to_numpy(zero_copy_only=False),
            np.asarray(array.is_null()) if array.null_count else None,
        )
    return arrow_column(array)


def present_codes(codes: npt.NDArray[np.int32], count: int) -> Mask:
    """For each of so many types whether a row has it; -1 is the code of any other type."""
    present = np.zeros(count + 1, np.bool_)
    present[codes] = True
    return present[:-1]


class TableReading:
    """Reads chunks whose columns have the same names."""

    def __init__(self, names: Sequence[str], types: TypeSystem) -> None:
        self.layout = Layout.of(names, "the table")
        self.types = types
        self._names = TextNumbers()
        if types.types:
            self._names.number(pa.array(list(types.types), pa.string()))
        self._declaring: dict[tuple[str, ValueType], Mask] = {}
        """Each attribute, by its name and type, with the types that declare it so."""
        for code, type_name in enumerate(types.types):
            for attribute in types.attributes(type_name).items():
                none = np.zeros(len(types.types) + 1, np.bool_)
                self._declaring.setdefault(attribute, none)[code] = True

    def times(self, rows: pa.RecordBatch) -> Instants:
        """The instants of the rows; a row without one is doubtful anyway."""
        instants = rows.column(self.layout.context["time"]).cast(pa.int64())
        held = pc.fill_null(instants, 0) if instants.null_count else instants
        times: Instants = held.to_numpy(zero_copy_only=False)
        return times

    def codes(self, rows: pa.RecordBatch) -> npt.NDArray[np.int32]:
        column = rows.column(self.layout.context["type"])
        if pa.types.is_dictionary(column.type):
            known = plain_text(column.dictionary)
            codes = self._names.number(known, grow=False) if len(known) else np.empty(0, np.int32)
            places = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)
            return codes[places] if len(codes) else np.full(len(column), -1, np.int32)
        return self._names.number(column, grow=False)

    def misfits(self, rows: pa.RecordBatch, codes: npt.NDArray[np.int32]) -> Mask:
        """The rows that do not fit their types, or have an empty name."""
        wrong = np.zeros(rows.num_rows, np.bool_)
        for name in ("type", "id"):
            column = rows.column(self.layout.context[name])
            if not pa.types.is_dictionary(column.type):
                wrong |= is_empty(column)
            elif is_empty(plain_text(column.dictionary)).any():
                wrong |= is_empty(plain_text(column))
        columns = dict(self.layout.attributes)
        present = present_codes(codes, len(self.types.types))
        for (name, type_), declaring in self._declaring.items():
            # The last place is that of types that are not declared.
            if not (declaring[:-1] & present).any():
                continue
            if name not in columns:
                wrong |= declaring[codes]
                continue
            array = rows.column(columns[name])
            # Rows with a list have been read by themselves.
            bad = None if pa.types.is_nested(array.type) else misfits_of(array, type_)
            if bad is not None:
                wrong |= bad & declaring[codes]
        return wrong


def misfits_of(array: pa.Array, type_: ValueType) -> Mask | None:
    """The rows of a column whose value does not fit an attribute; None if all do. Null fits."""
    column = attribute_column(array)
    if column is None:
        # An unsigned integer beyond 64 bits with a sign: let each row be asked.
        return np.ones(1, np.bool_)
    if column.missing is not None and column.missing.all():
        return None
    bad: Mask | None = _misfit_values(column, type_)
    if bad is not None and column.missing is not None:
        bad = bad & ~column.missing
    return bad


def _misfit_values(column: Column, type_: ValueType) -> Any:
    values: Any = column.values
    if type_.name in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.name]
        if column.kind == "integer":
            return _outside(values, low, high)
        if column.kind == "real":
            whole = np.isfinite(values) & (np.floor(values) == values)
            return ~(whole & (values >= low) & (values <= high) & (np.abs(values) <= LARGEST_EXACT))
    elif type_.kind == "real":
        if column.kind == "integer":
            return None
        if column.kind == "real":
            return _outside(values, *_range_of_reals(type_))
    elif type_.name == "char" and column.kind == "string":
        lengths = pc.fill_null(pc.utf8_length(values), 1)
        return np.asarray(lengths) != 1
    elif type_.kind == column.kind == "timestamp":
        return _outside(values, EARLIEST, LATEST)
    elif type_.kind == column.kind:
        return None
    return np.ones(len(values), np.bool_)


def _range_of_reals(type_: ValueType) -> tuple[float, float]:
    largest = float(np.nextafter(LARGEST_FLOAT if type_.name == "float" else np.inf, 0))
    return -largest, largest


def _outside(values: Any, low: float, high: float) -> Mask | None:
    """The rows of numbers that are not from `low` to `high`; None if all are, as mostly."""
    if len(values) and low <= values.min() and values.max() <= high:
        return None
    outside: Mask = ~((values >= low) & (values <= high))
    return outside


def fitted(column: Column, type_: ValueType) -> Column | None:
    """The column as its attribute holds it, null where it does not fit.

    None if that has to be asked value by value.
    """
    if type_.name in INTEGER_RANGES and column.kind == "integer":
        return _without(column, _outside(column.values, *INTEGER_RANGES[type_.name]))
    if type_.kind == "real" and column.kind in ("integer", "real"):
        reals = Column("real", column.values.astype(np.float64, copy=False), column.missing)
        return _without(reals, _outside(reals.values, *_range_of_reals(type_)))
    if type_.name == column.kind and column.kind in ("boolean", "string", "timestamp"):
        return column
    return None


def _without(column: Column, wrong: Mask | None) -> Column:
    """The column with the wrong rows missing."""
    if wrong is None:
        return column
    gone = wrong if column.missing is None else wrong | column.missing
    return Column(column.kind, column.values, gone)


def fitted_keys(column: Column, type_: ValueType) -> Column:
    """Keys as an attribute holds them, null where they do not fit."""
    if column.kind == "string" and type_.name == "string":
        return column
    if column.kind == "integer" and type_.name in INTEGER_RANGES:
        held = fitted(column, type_)
        assert held is not None, "integers are fitted in columns"
        return held
    keys = [fitting_key(value, type_) for value in column.to_list()]
    return column_of([MISSING if value is None else value for value in keys])


def conformed(value: Any, type_: ValueType) -> Any:
    """A value as an attribute holds it, `MISSING` if it does not fit."""
    if value is MISSING:
        return MISSING
    try:
        return conform_value(value, type_)
    except ValueError:
        return MISSING

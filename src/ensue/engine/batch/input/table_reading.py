"""How rows in plain columns are read: which types they have, and which of them do not fit.

In come the columns of a chunk (`ensue.events.files`); out go the instants and types of its rows,
and which rows do not fit their types. What exactly is wrong with a row is said where it is read by
itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import Column, Mask, arrow_column
from ensue.engine.batch.input.fitting import is_empty, misfits_of
from ensue.engine.batch.input.keys import TextNumbers
from ensue.events.columns import Layout
from ensue.events.types import TypeSystem

Instants = npt.NDArray[np.int64]


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


class TableReading:
    """Reads chunks whose columns have the same names."""

    def __init__(self, names: Sequence[str], types: TypeSystem) -> None:
        self.layout = Layout.of(names, "the table")
        self.types = types
        self._names = TextNumbers()
        if types.types:
            self._names.number(pa.array(list(types.types), pa.string()))

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
            if pa.types.is_dictionary(column.type):
                empty = is_empty(plain_text(column.dictionary))
                if empty.any():
                    wrong |= is_empty(plain_text(column))
            else:
                wrong |= is_empty(column)
        columns = dict(self.layout.attributes)
        read: dict[str, Column | None] = {}
        present = np.bincount(codes + 1, minlength=len(self.types.types) + 1)[1:]
        for code, type_name in enumerate(self.types.types):
            if not present[code]:
                continue
            for name, type_ in self.types.attributes(type_name).items():
                if name not in columns:
                    wrong |= codes == code
                    break
                held = rows.column(columns[name]).type
                if pa.types.is_nested(held):
                    # Rows with a list have been read by themselves.
                    continue
                if name not in read:
                    read[name] = attribute_column(rows.column(columns[name]))
                bad = misfits_of(read[name], type_, held)
                if bad is not None:
                    wrong |= bad & (codes == code)
        return wrong

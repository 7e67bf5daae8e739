"""How tables of one schema are read: which of their rows are events, and what those are.

In comes a schema; out go the instants and types of rows, which of them do not fit, and rows as
events. The rule by which columns make events is that of `ensue.events.columns`, and rows that do
not fit their type are refused as there. `is_plain` says whether rows can be checked in columns, and
`batches` reads those; any other table goes through events, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import Column, Mask, Rows, arrow_column
from ensue.engine.batch.input.fitting import is_empty, misfits_of
from ensue.engine.batch.input.keys import TextNumbers
from ensue.errors import EventError
from ensue.events.arrow import plain_values, raw_text
from ensue.events.arrow_types import held_type
from ensue.events.cloudevents import TEXT_ATTRIBUTES
from ensue.events.columns import Layout, RowReader, convert_number
from ensue.events.event import Event, Rejected
from ensue.events.nesting import is_nested
from ensue.events.times import EARLIEST, LATEST
from ensue.events.types import TypeSystem

Instants = npt.NDArray[np.int64]


def plain_text(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def attribute_column(array: pa.Array) -> Column | None:
    if pa.types.is_timestamp(array.type):
        instants = array.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
        return arrow_column(instants) and Column(
            "timestamp",
            pc.fill_null(instants, 0).to_numpy(zero_copy_only=False),
            np.asarray(array.is_null()) if array.null_count else None,
        )
    return arrow_column(array)


class TableReading:
    """Reads tables of one schema. `nested` says that dotted names may reach somewhere."""

    def __init__(self, schema: pa.Schema, types: TypeSystem, source: str, where: str) -> None:
        self.layout = Layout.of(schema.names, where)
        self.types = types
        self.source = source
        self.nested = False
        self._reader = RowReader(self.layout, types, source, convert_number)
        self._held = [held_type(field, where) for field in schema]
        self._names = TextNumbers()
        if types.types:
            self._names.number(pa.array(list(types.types), pa.string()))

    def is_plain(self, schema: pa.Schema) -> bool:
        """Whether rows can be checked and read in columns, without making events of them."""
        context, extensions = self.layout.context, self.layout.extensions
        texts = [schema.types[context[name]] for name in ("type", "source") if name in context]
        ids = [schema.types[context["id"]]] if "id" in context else []
        return (
            self.layout.data is None
            # A value inside of nested data is found by making events.
            and not any(is_nested(name) for name, _ in self.layout.attributes)
            and "specversion" not in context
            and pa.types.is_timestamp(schema.types[context["time"]])
            and all(_is_text(each) for each in texts)
            and all(_is_text(each) or pa.types.is_integer(each) for each in ids)
            and all(
                _is_text(schema.types[place])
                or (name not in TEXT_ATTRIBUTES and _is_extension(schema.types[place]))
                for name, place in extensions
            )
            and all(_is_plain(schema.types[place]) for _, place in self.layout.attributes)
        )

    def times(self, rows: pa.RecordBatch) -> tuple[Instants, Mask]:
        """The instants of the rows, and which of them are none."""
        column = rows.column(self.layout.context["time"])
        instants = column.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
        gone = np.asarray(instants.is_null()) if instants.null_count else None
        times = pc.fill_null(instants, 0) if gone is not None else instants
        held = times.to_numpy(zero_copy_only=False)
        wrong = (held < EARLIEST) | (held > LATEST)
        return held, wrong if gone is None else wrong | gone

    def codes(self, rows: pa.RecordBatch) -> npt.NDArray[np.int32]:
        column = rows.column(self.layout.context["type"])
        if pa.types.is_dictionary(column.type):
            known = plain_text(column.dictionary)
            codes = self._names.number(known, grow=False) if len(known) else np.empty(0, np.int32)
            places = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)
            return codes[places] if len(codes) else np.full(len(column), -1, np.int32)
        return self._names.number(plain_text(column), grow=False)

    def misfits(self, rows: pa.RecordBatch, codes: npt.NDArray[np.int32]) -> Mask:
        """The rows that do not fit their types, or lack what every event has."""
        wrong = np.zeros(rows.num_rows, np.bool_)
        for name in ("type", "id"):
            place = self.layout.context.get(name)
            if place is None:
                continue
            column = rows.column(place)
            if name == "type" and column.null_count:
                wrong |= np.asarray(column.is_null())
            if _is_text(column.type):
                wrong |= is_empty(plain_text(column))
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
                if name not in read:
                    read[name] = attribute_column(rows.column(columns[name]))
                bad = misfits_of(read[name], type_, rows.column(columns[name]).type)
                if bad is not None:
                    wrong |= bad & (codes == code)
        return wrong

    def events(self, rows: pa.RecordBatch, numbers: Rows) -> list[Event]:
        """The events in rows that all fit."""
        return [
            self._reader.event(number, row)
            for number, row in zip(numbers.tolist(), self.raw(rows), strict=True)
        ]

    def read(self, rows: pa.RecordBatch, numbers: Rows) -> list[Event | Rejected]:
        """Each row as an event or as what is wrong with it."""
        found: list[Event | Rejected] = []
        for number, row in zip(numbers.tolist(), self.raw(rows), strict=True):
            try:
                found.append(self._reader.event(number, row))
            except EventError as error:
                found.append(Rejected(number, raw_text(rows.schema.names, row), error.problems))
        return found

    def raw(self, rows: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        columns = [
            plain_values(column, held, name, "the table", name == "time")
            for column, held, name in zip(rows.columns, self._held, rows.schema.names, strict=True)
        ]
        return zip(*columns, strict=True)


def _is_text(type_: pa.DataType) -> bool:
    kind = pa.types
    if kind.is_dictionary(type_):
        return _is_text(type_.value_type)
    return bool(kind.is_string(type_) or kind.is_large_string(type_) or kind.is_string_view(type_))


def _is_extension(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_boolean(type_))


def _is_plain(type_: pa.DataType) -> bool:
    kind = pa.types
    return bool(
        _is_text(type_)
        or kind.is_integer(type_)
        or kind.is_float32(type_)
        or kind.is_float64(type_)
        or kind.is_boolean(type_)
        or kind.is_timestamp(type_)
        or kind.is_null(type_)
    )

"""Many events at once: from an Arrow table, or from events that are in Python already.

In come rows; out goes a `Batch`, which can be asked for a name's values as a column, for which rows
a predicate holds (once, however many ports ask), and for a row as an event. The rule by which
columns make events is that of `ensue.events.columns`, and rows that do not fit their type are
refused as there. A table whose columns are all plain is checked and read in columns; any other goes
through events, row by row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.column import Column, Mask, Rows, absent, arrow_column, column_of
from ensue.engine.batch.fitting import is_empty, misfits_of
from ensue.engine.batch.keys import TextNumbers
from ensue.engine.batch.predicates import NotInColumnsError, Parts, outcomes, values_by_row
from ensue.errors import EventError
from ensue.events.arrow import plain_values, raw_text
from ensue.events.arrow_types import held_type
from ensue.events.cloudevents import TEXT_ATTRIBUTES
from ensue.events.columns import Layout, RowReader, convert_number
from ensue.events.event import Event, Rejected
from ensue.events.times import EARLIEST, LATEST
from ensue.events.types import TypeSystem
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import MISSING, EventScope

Instants = npt.NDArray[np.int64]


class Batch(ABC):
    """Rows in the order in which they are read. `times` are microseconds since 1970."""

    times: Instants
    types: TypeSystem

    def __init__(self) -> None:
        self._columns: dict[Parts, Column] = {}
        self._held: dict[Expression, Mask] = {}
        self._asked: dict[Expression, Mask] = {}

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    @abstractmethod
    def type_codes(self) -> npt.NDArray[np.int32]:
        """The place of each row's type among the declared types, -1 if it is none of them."""

    @cached_property
    @abstractmethod
    def ids(self) -> pa.Array: ...

    @abstractmethod
    def _column(self, parts: Parts) -> Column: ...

    @abstractmethod
    def event(self, row: int) -> Event: ...

    def column(self, parts: Parts) -> Column:
        """What a name stands for in each row."""
        if parts not in self._columns:
            self._columns[parts] = self._column(parts)
        return self._columns[parts]

    def holds(self, predicate: Expression, wanted: Mask) -> Mask:
        """The rows of which a predicate holds; only what it says of the wanted rows counts."""
        held = self._held.get(predicate)
        if held is None:
            try:
                found = outcomes(predicate, self.column, len(self))
            except NotInColumnsError:
                held = np.zeros(len(self), np.bool_)
                self._asked[predicate] = np.zeros(len(self), np.bool_)
            else:
                if found.kind != "boolean":
                    held = np.zeros(len(self), np.bool_)
                elif found.errors is None:
                    held = found.values
                else:
                    held = found.values & ~found.errors
            self._held[predicate] = held
        asked = self._asked.get(predicate)
        if asked is not None:
            rows = np.flatnonzero(wanted & ~asked)
            values = values_by_row(predicate, self.column, rows)
            held[rows] = [value is True for value in values]
            asked |= wanted
        return held

    def rows_of_types(self, accepted: npt.NDArray[np.bool_]) -> Mask:
        """The rows of these types; `accepted` has a place for each type and one for all others."""
        return accepted[self.type_codes]


class EventBatch(Batch):
    """Events that are in Python already, each of them conformed."""

    def __init__(self, events: Sequence[Event], types: TypeSystem) -> None:
        super().__init__()
        self.events = events
        self.types = types
        self.times = np.fromiter((event.time for event in events), np.int64, len(events))

    @cached_property
    def type_codes(self) -> npt.NDArray[np.int32]:
        places = {name: place for place, name in enumerate(self.types.types)}
        found = (places.get(event.type, -1) for event in self.events)
        return np.fromiter(found, np.int32, len(self.events))

    @cached_property
    def ids(self) -> pa.Array:
        return pa.array([event.id for event in self.events], pa.string())

    def _column(self, parts: Parts) -> Column:
        return column_of([EventScope(event).lookup(parts) for event in self.events])

    def event(self, row: int) -> Event:
        return self.events[row]


class TableBatch(Batch):
    """Rows of an Arrow table with plain columns, all of which fit their types."""

    def __init__(
        self,
        rows: pa.RecordBatch,
        reading: TableReading,
        times: Instants,
        type_codes: npt.NDArray[np.int32],
        numbers: Rows,
    ) -> None:
        super().__init__()
        self.rows = rows
        self.types = reading.types
        self.times = times
        self.numbers = numbers
        self._reading = reading
        self._type_codes = type_codes

    @cached_property
    def type_codes(self) -> npt.NDArray[np.int32]:
        return self._type_codes

    @cached_property
    def ids(self) -> pa.Array:
        place = self._reading.layout.context.get("id")
        if place is None:
            return pa.array(self.numbers).cast(pa.string())
        held = plain_text(self.rows.column(place))
        if held.null_count:
            held = pc.coalesce(held, pa.array(self.numbers).cast(pa.string()))
        return held

    @cached_property
    def sources(self) -> pa.Array:
        place = self._reading.layout.context.get("source")
        if place is None:
            return pa.array([self._reading.source] * len(self), pa.string())
        held = plain_text(self.rows.column(place))
        empty = pc.fill_null(pc.equal(held, ""), True)
        return pc.if_else(empty, self._reading.source, held)

    @cached_property
    def present_types(self) -> list[str]:
        known = list(self.types.types)
        found = np.bincount(self.type_codes + 1, minlength=len(known) + 1)[1:]
        return [name for name, count in zip(known, found, strict=True) if count]

    def _column(self, parts: Parts) -> Column:
        name, *inner = parts
        layout = self._reading.layout
        if inner:
            return absent(len(self)) if not self._reading.nested else self._by_event(parts)
        match name:
            case "id":
                return Column("string", self.ids)
            case "source":
                return Column("string", self.sources)
            case "type":
                return Column("string", plain_text(self._context("type")))
            case "time":
                return Column("timestamp", self.times)
            case "specversion":
                return Column("string", pa.array(["1.0"] * len(self), pa.string()))
        places = {**dict(layout.attributes)}
        extensions = dict(layout.extensions)
        candidates = [name in extensions, name in places]
        lower = name.lower()
        if lower != name:
            candidates.append(lower in extensions or lower in _CONTEXT)
        if sum(candidates) > 1 or (sum(candidates) == 1 and not any(candidates[:2])):
            return self._by_event(parts)
        if name in extensions:
            column = arrow_column(self.rows.column(extensions[name]))
        elif name in places:
            column = self._attribute(name, self.rows.column(places[name]))
        else:
            return absent(len(self))
        return column if column is not None else self._by_event(parts)

    def _context(self, name: str) -> pa.Array:
        return self.rows.column(self._reading.layout.context[name])

    def _attribute(self, name: str, array: pa.Array) -> Column | None:
        """The values as conforming leaves them: an integer in a real attribute becomes a real."""
        column = attribute_column(array)
        if column is None:
            return None
        kinds = {
            declared[name].kind if name in declared else column.kind
            for declared in (self.types.attributes(each) for each in self.present_types)
        }
        if kinds <= {column.kind}:
            return column
        if kinds == {"real"} and column.kind == "integer":
            return Column("real", column.values.astype(np.float64), column.missing)
        if kinds == {"integer"} and column.kind == "real":
            with np.errstate(invalid="ignore"):
                return Column("integer", column.values.astype(np.int64), column.missing)
        return None

    def _by_event(self, parts: Parts) -> Column:
        known = self.type_codes >= 0
        return column_of(
            [
                EventScope(event).lookup(parts) if declared else MISSING
                for event, declared in zip(self._all_events, known.tolist(), strict=True)
            ]
        )

    @cached_property
    def _all_events(self) -> list[Event]:
        return self.events(np.arange(len(self)))

    def event(self, row: int) -> Event:
        return self.events(np.array([row]))[0]

    def events(self, rows: Rows) -> list[Event]:
        taken = self.rows.take(pa.array(rows))
        return self._reading.events(taken, self.numbers[rows])


_CONTEXT = frozenset({"id", "source", "type", "time", "specversion"})


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
            plain_values(column, held, name, "the table")
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

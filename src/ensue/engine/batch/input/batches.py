"""Events in columns: how the rows of a table are read, and a batch of them.

In come the plain columns of a chunk (`ensue.events.files`). `TableReading` finds the times and the
types of rows, and which rows may not fit their types (by the rules of `ensue.events.conformance`,
for many rows at once); what exactly is wrong with a row is said when the row is read alone.
Out goes a `Batch`, which can be asked for a name's values as a column, for which rows a predicate
holds (evaluated once, however many ports ask), and for a row as an event. Batches that come from no
table are in `intake`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import (
    Column,
    absent,
    arrow_column,
    attribute_column,
    column_of,
    outside,
    range_of_reals,
)
from ensue.engine.batch.input.keys import TextNumbers
from ensue.engine.batch.input.predicates import NotInColumnsError, outcomes, values_by_row
from ensue.engine.core.numbering import Instants, Mask, Rows
from ensue.events.cloudevents import encode
from ensue.events.columns import Layout
from ensue.events.conformance import LARGEST_EXACT
from ensue.events.event import CONTEXT, Event, Rejected
from ensue.events.files.chunk import Chunk
from ensue.events.files.tables import is_empty
from ensue.events.times import EARLIEST, LATEST
from ensue.events.types import INTEGER_RANGES, TypeSystem, ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.derived_names import DerivedName, derived_name
from ensue.lang.expressions.evaluation import MISSING, EventScope
from ensue.lang.expressions.names import Parts


class Batch(ABC):
    """Rows in the order in which they are read. `times` are microseconds since 1970."""

    times: Instants
    types: TypeSystem
    held_bytes = 0
    """How much memory is held on to with a batch, where that may be much."""

    def __init__(self) -> None:
        self._columns: dict[Parts, Column] = {}
        self._held: dict[Expression, Mask] = {}
        self._evaluated: dict[Expression, Mask] = {}

    def __len__(self) -> int:
        return len(self.times)

    @property
    def names(self) -> Collection[str]:
        """Names of values in the events, also of such that are no columns, as far as known."""
        return ()

    @cached_property
    @abstractmethod
    def type_codes(self) -> npt.NDArray[np.int32]:
        """The place of each row's type among the declared types, -1 if it is none of them."""

    @abstractmethod
    def _column(self, parts: Parts) -> Column: ...

    @abstractmethod
    def event(self, row: int) -> Event: ...

    def events(self, rows: Rows) -> list[Event]:
        return [self.event(row) for row in rows.tolist()]

    def original(self, rows: Rows) -> list[Rejected]:
        """Rows as refused records, for problems that are found later."""
        return [Rejected(0, encode(self.event(row)), ()) for row in rows.tolist()]

    @abstractmethod
    def since(self, row: int, end: int | None = None) -> Batch:
        """The rows from this one on, or up to an end, as a batch of their own."""

    def column(self, parts: Parts) -> Column:
        """What a name stands for in each row."""
        if parts not in self._columns:
            self._columns[parts] = self._column(parts)
        return self._columns[parts]

    def holds(self, predicate: Expression, wanted: Callable[[], Mask]) -> Mask:
        """A mask of the rows for which a predicate holds. Only the wanted rows have to be right.

        Which rows are wanted is asked only where the predicate is evaluated row by row.
        """
        held = self._held.get(predicate)
        if held is None:
            try:
                found = outcomes(predicate, self.column, len(self))
            except NotInColumnsError:
                held = np.zeros(len(self), np.bool_)
                self._evaluated[predicate] = np.zeros(len(self), np.bool_)
            else:
                if found.kind != "boolean":
                    held = np.zeros(len(self), np.bool_)
                elif found.errors is None:
                    held = found.values
                else:
                    held = found.values & ~found.errors
            self._held[predicate] = held
        evaluated = self._evaluated.get(predicate)
        if evaluated is not None:
            rows = np.flatnonzero(wanted() & ~evaluated)
            values = values_by_row(predicate, self.column, rows)
            held[rows] = [value is True for value in values]
            evaluated[rows] = True
        return held

    def rows_of_types(self, accepted: npt.NDArray[np.bool_]) -> Mask:
        """The rows of these types; `accepted` has a place for each type and one for all others."""
        return accepted[self.type_codes]


class TableReading:
    """Reads the times, types and misfits of chunks whose columns have these names."""

    def __init__(self, names: Sequence[str], types: TypeSystem) -> None:
        self.layout = Layout.of(names, "the table")
        self.types = types
        self._type_names = TextNumbers()
        if types.types:
            self._type_names.number(pa.array(list(types.types), pa.string()))
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
            codes = self._type_names.number(plain_text(column.dictionary), grow=False)
            places = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)
            return codes[places] if len(codes) else np.full(len(column), -1, np.int32)
        return self._type_names.number(column, grow=False)

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


class TableBatch(Batch):
    """Rows in plain columns, all of which fit their types.

    `places` says where each row stands in its chunk, which reads rows as events.
    """

    def __init__(
        self,
        rows: pa.RecordBatch,
        reading: TableReading,
        times: Instants,
        type_codes: npt.NDArray[np.int32],
        chunk: Chunk,
        places: Rows,
    ) -> None:
        super().__init__()
        self.rows = rows
        self.types = reading.types
        self.times = times
        self._reading = reading
        self._type_codes = type_codes
        self._chunk = chunk
        self._places = places
        self.held_bytes = chunk.held_bytes

    @cached_property
    def type_codes(self) -> npt.NDArray[np.int32]:
        return self._type_codes

    @cached_property
    def _present_types(self) -> list[str]:
        present = present_codes(self.type_codes, len(self.types.types))
        return [name for name, is_there in zip(self.types.types, present, strict=True) if is_there]

    def _column(self, parts: Parts) -> Column:
        if (derived := derived_name(parts)) is not None:
            return self._derived(derived)
        name, is_simple = ".".join(parts), len(parts) == 1
        if is_simple:
            match name:
                case "id" | "source" | "type":
                    return Column("string", plain_text(self._context(name)))
                case "time":
                    return Column("timestamp", self.times)
                case "specversion":
                    return Column("string", pa.array(["1.0"] * len(self), pa.string()))
        layout, chunk = self._reading.layout, self._chunk
        attributes, extensions = dict(layout.attributes), dict(layout.extensions)
        is_attribute, is_extension = name in attributes, is_simple and name in extensions
        # Extensions and attributes of the context are found in lower case as well.
        lower = name.lower()
        is_lower = (
            is_simple
            and lower != name
            and (lower in extensions or lower in CONTEXT or chunk.has_extensions)
        )
        if is_lower or (is_attribute and is_extension):
            # The name has two meanings: each event says which of them it has.
            return self._by_event(parts)
        column: Column | None = None
        if is_extension:
            column = arrow_column(self.rows.column(extensions[name]))
        elif is_attribute:
            column = self._attribute(name, self.rows.column(attributes[name]))
        elif not chunk.has_other_data and not (is_simple and chunk.has_extensions):
            column = absent(len(self))
        return self._by_event(parts) if column is None else column

    def _context(self, name: str) -> pa.Array:
        return self.rows.column(self._reading.layout.context[name])

    def _attribute(self, name: str, array: pa.Array) -> Column | None:
        """The values as conforming leaves them: an integer in a real attribute becomes a real."""
        column = attribute_column(array)
        if column is None:
            return None
        # Where all declared types agree, the types of this batch need not be found.
        if self._kinds(name, column.kind, self.types.types) <= {column.kind}:
            return column
        kinds = self._kinds(name, column.kind, self._present_types)
        if kinds <= {column.kind}:
            return column
        if kinds == {"real"} and column.kind == "integer":
            return Column("real", column.values.astype(np.float64), column.missing)
        if kinds == {"integer"} and column.kind == "real":
            with np.errstate(invalid="ignore"):
                return Column("integer", column.values.astype(np.int64), column.missing)
        return None

    def _kinds(self, name: str, given: str, types: Iterable[str]) -> set[str]:
        """The kinds that types give to a name; a type that does not declare it has the given."""
        every = (self.types.attributes(each) for each in types)
        return {declared[name].kind if name in declared else given for declared in every}

    def _derived(self, name: DerivedName) -> Column:
        """What a derived attribute is worked out to be, in columns where it can be."""
        values = {name.values.get(each) for each in self._present_types}
        if len(values) == 1 and (value := values.pop()) is not None:
            try:
                found = outcomes(value.expression, self.column, len(self))
            except NotInColumnsError:
                pass
            else:
                fitting = fitting_column(Column(found.kind, found.values, found.errors), value.type)
                if fitting is not None:
                    return fitting
        return self._by_event((name,))

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

    @property
    def names(self) -> Collection[str]:
        return self._chunk.names

    def event(self, row: int) -> Event:
        return self.events(np.array([row]))[0]

    def since(self, row: int, end: int | None = None) -> TableBatch:
        return TableBatch(
            self.rows[row:end],
            self._reading,
            self.times[row:end],
            self._type_codes[row:end],
            self._chunk,
            self._places[row:end],
        )

    def events(self, rows: Rows) -> list[Event]:
        return [each for each in self._chunk.singly(self._places[rows]) if isinstance(each, Event)]

    def original(self, rows: Rows) -> list[Rejected]:
        return self._chunk.original(self._places[rows])


def fitting_column(column: Column, type_: ValueType) -> Column | None:
    """Values as an attribute holds them, missing where they do not fit; None to ask one by one."""
    if column.kind == "integer" and type_.kind == "real":
        column = Column("real", column.values.astype(np.float64), column.missing)
    if column.kind != type_.kind or column.kind == "object":
        return None
    bad = _misfit_values(column, type_)
    if bad is None:
        return column
    return Column(column.kind, column.values, bad | column.missing_mask())


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
            return outside(values, low, high)
        if column.kind == "real":
            whole = np.isfinite(values) & (np.floor(values) == values)
            return ~(whole & (values >= low) & (values <= high) & (np.abs(values) <= LARGEST_EXACT))
    elif type_.kind == "real":
        if column.kind == "integer":
            return None
        if column.kind == "real":
            return outside(values, *range_of_reals(type_))
    elif type_.name == "char" and column.kind == "string":
        lengths = pc.fill_null(pc.utf8_length(values), 1)
        return np.asarray(lengths) != 1
    elif type_.kind == column.kind == "timestamp":
        return outside(values, EARLIEST, LATEST)
    elif type_.kind == column.kind:
        return None
    return np.ones(len(values), np.bool_)


def plain_text(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def accepted_types(types: TypeSystem, name: str) -> Mask:
    """Whether each declared type is that type or below it; the last place is for all others."""
    accepted = np.zeros(len(types.types) + 1, np.bool_)
    below = set(types.subtypes(name))
    accepted[:-1] = [each in below for each in types.types]
    return accepted


def present_codes(codes: npt.NDArray[np.int32], count: int) -> Mask:
    """Whether any row has a type, for each of `count` types; the code of other types is -1."""
    present = np.zeros(count + 1, np.bool_)
    present[codes] = True
    return present[:-1]

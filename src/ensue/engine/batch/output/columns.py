"""The outputs of correlations over one batch, as columns or as events.

A `Made` holds them by statement: all events that one statement puts out in a batch are one group of
columns, and what is sent on (`push a`) is events. Out go one table, or events, in their order.
`build` makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import Column, Rows, Texts, constant
from ensue.engine.batch.output.schema import PROVENANCE, OutputSchema, struct_of
from ensue.events.arrow import CONTEXT_FIELDS, TIME, extension_values, undeclared_data
from ensue.events.arrow_types import arrow_type, field_of
from ensue.events.columns import DATA_COLUMN, extension_column
from ensue.events.event import Event
from ensue.events.nesting import value_at
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.expressions.evaluation import MISSING

_LARGEST_TABLE = 1 << 30
"""Up to so many bytes the chunks of a column are joined before they are put in order."""


@dataclass(frozen=True)
class ColumnGroup:
    """Events of one type, made by one statement. `places` says where they stand in the order."""

    places: Rows
    type: str
    ids: pa.Array
    sources: pa.Array
    times: npt.NDArray[np.int64]
    data: Mapping[str, tuple[ValueType, Column]]
    provenance: Mapping[str, pa.Array]

    def table(self, types: TypeSystem, columns: OutputSchema) -> pa.Table:
        """The columns that these outputs have; the others of a library are null."""
        count = len(self.places)
        fields = list(CONTEXT_FIELDS)
        arrays = [
            self.ids,
            self.sources,
            constant(self.type, count),
            pa.array(self.times).cast(TIME),
        ]
        for name, values in self.provenance.items():
            fields.append(pa.field(name, pa.string()))
            arrays.append(values)
        for name in types.attributes(self.type):
            if (wide := columns.attributes.get(name)) is not None:
                fields.append(field_of(name, wide))
                arrays.append(self._values(name, wide))
        if members := columns.structs.get(self.type):
            struct = struct_of(members)
            fields.append(pa.field(self.type, struct))
            inner = [self._values(name, type_) for name, type_ in members.items()]
            arrays.append(pa.StructArray.from_arrays(inner, fields=list(struct)))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _values(self, name: str, wide: ValueType) -> pa.Array:
        """The values of an attribute, in a type that may be wider than its own."""
        wanted = arrow_type(wide)
        if name not in self.data:
            return pa.nulls(len(self.places), wanted)
        values = _arrow(*self.data[name])
        return values if values.type == wanted else values.cast(wanted)

    def events(self) -> list[Event]:
        names = list(self.data)
        rows: Any = zip(*(column.to_list() for _, column in self.data.values()), strict=True)
        if not names:
            rows = [()] * len(self.places)
        extensions = zip(*(each.to_pylist() for each in self.provenance.values()), strict=True)
        return [
            Event(
                id_,
                source,
                self.type,
                time,
                {n: None if v is MISSING else v for n, v in zip(names, values, strict=True)},
                dict(zip(self.provenance, extension, strict=True)),
            )
            for id_, source, time, values, extension in zip(
                self.ids.to_pylist(),
                self.sources.to_pylist(),
                self.times.tolist(),
                rows,
                extensions,
                strict=True,
            )
        ]


@dataclass(frozen=True)
class EventGroup:
    places: Rows
    made: Sequence[Event]

    def table(self, types: TypeSystem, columns: OutputSchema) -> pa.Table:
        return events_table(self.made, types, columns)

    def events(self) -> Sequence[Event]:
        return self.made


@dataclass(frozen=True)
class Made:
    """`at` says of each output, in their order, from which of the given readings it came."""

    at: Rows
    groups: Sequence[ColumnGroup | EventGroup]
    rules: Rows | None = None
    """Where several correlations have put out: which, by their numbers among those."""

    def __len__(self) -> int:
        return len(self.at)

    def events(self) -> list[Event]:
        out: list[Any] = [None] * len(self.at)
        for group in self.groups:
            for place, event in zip(group.places.tolist(), group.events(), strict=True):
                out[place] = event
        return out

    def table(self, types: TypeSystem, columns: OutputSchema) -> pa.Table | None:
        if not self.groups:
            return None
        if len(self.groups) == 1:
            # What one statement has put out is in its order.
            return self.groups[0].table(types, columns)
        joined = join_tables([group.table(types, columns) for group in self.groups])
        order = np.argsort(np.concatenate([group.places for group in self.groups]), kind="stable")
        return reordered(joined, order)


@dataclass(frozen=True)
class MadeInTurn:
    """What was made of one part of a batch after the other, each in its order."""

    parts: Sequence[Made]

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def at(self) -> Rows:
        return np.concatenate([part.at for part in self.parts] or [np.empty(0, np.int64)])

    @property
    def rules(self) -> Rows:
        every = [part.rules for part in self.parts if part.rules is not None]
        return np.concatenate(every or [np.empty(0, np.int64)])

    def events(self) -> list[Event]:
        return [event for part in self.parts for event in part.events()]

    def table(self, types: TypeSystem, columns: OutputSchema) -> pa.Table | None:
        tables = [part.table(types, columns) for part in self.parts]
        found = [table for table in tables if table is not None]
        return join_tables(found) if found else None


def join_tables(tables: Sequence[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables, promote_options="permissive")


def reordered(table: pa.Table, order: Rows) -> pa.Table:
    """The rows of a table in another order."""
    if (order[1:] > order[:-1]).all():
        return table
    if table.nbytes > _LARGEST_TABLE:
        return table.take(pa.array(order))
    places = pa.array(order)
    columns = [_in_order(column, order, places) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _in_order(column: pa.ChunkedArray, order: Rows, places: pa.Array) -> pa.Array:
    # A column of many chunks is many times slower to take from, and so are texts.
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_string(array.type) and not array.null_count:
        return Texts.of(array).take(order)
    return array.take(places)


def events_table(events: Sequence[Event], types: TypeSystem, columns: OutputSchema) -> pa.Table:
    """Outputs as a table, with the columns that these have; an attribute without a value is null.

    What is sent on brings more with it. What of its data no column holds stands as JSON text in a
    column `data`, and its extensions in columns `ce_NAME`.
    """
    fields = list(CONTEXT_FIELDS)
    arrays = [
        pa.array([event.id for event in events], pa.string()),
        pa.array([event.source for event in events], pa.string()),
        pa.array([event.type for event in events], pa.string()),
        pa.array([event.time for event in events], TIME),
    ]
    for name in PROVENANCE:
        fields.append(pa.field(name, pa.string()))
        arrays.append(pa.array([event.extensions.get(name) for event in events], pa.string()))
    present = {name for event in events for name in types.attributes(event.type)}
    for name, type_ in columns.attributes.items():
        if name in present:
            fields.append(field_of(name, type_))
            arrays.append(
                pa.array([_held(each, name, types) for each in events], arrow_type(type_))
            )
    for type_name, members in columns.structs.items():
        if any(event.type == type_name for event in events):
            rows = [
                {name: _held(event, name, types) for name in members}
                if event.type == type_name
                else None
                for event in events
            ]
            fields.append(pa.field(type_name, struct_of(members)))
            arrays.append(pa.array(rows, struct_of(members)))
    taken = {field.name for field in fields}
    for name, column in further_columns(events, types):
        while name in taken:
            name = extension_column(name)
        taken.add(name)
        fields.append(pa.field(name, column.type))
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _held(event: Event, name: str, types: TypeSystem) -> Any:
    return value_at(event.data, name)[1] if name in types.attributes(event.type) else None


def further_columns(events: Sequence[Event], types: TypeSystem) -> Iterator[tuple[str, pa.Array]]:
    """Data that no type declares, and extensions other than those of every output."""
    rest = [undeclared_data(event, types) for event in events]
    if any(text is not None for text in rest):
        yield DATA_COLUMN, pa.array(rest, pa.string())
    every = dict.fromkeys(name for event in events for name in event.extensions)
    for name in every:
        if name not in PROVENANCE:
            values = [event.extensions.get(name) for event in events]
            yield extension_column(name), extension_values(values)


def _arrow(type_: ValueType, column: Column) -> pa.Array:
    wanted = arrow_type(type_)
    if column.kind == "object" or type_.element is not None:
        return pa.array([None if v is MISSING else v for v in column.to_list()], wanted)
    if column.missing is not None and column.missing.all():
        return pa.nulls(len(column), wanted)
    held = present_or_none(column)
    return held if held.type == wanted else held.cast(wanted)


def present_or_none(column: Column) -> pa.Array:
    """A column of one kind as an Arrow array, null where it is missing."""
    if column.kind == "string":
        if column.missing is None:
            return column.values
        return pc.if_else(pa.array(~column.missing), column.values, pa.scalar(None, pa.string()))
    held = pa.array(column.values, mask=column.missing)
    return held.cast(TIME) if column.kind == "timestamp" else held

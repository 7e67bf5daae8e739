"""The outputs of correlations over one batch, as columns or as events.

A `Made` holds them by statement: all events that one statement puts out in a batch are one group of
columns, and what is sent on (`push a`) is events. Out go one table, or events, in their order.
`build` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import Column, Rows
from ensue.engine.batch.input.texts import Texts, constant
from ensue.events.arrow import CONTEXT_FIELDS, TIME, table_of
from ensue.events.arrow_types import arrow_type, field_of
from ensue.events.columns import extension_column, is_attribute_column
from ensue.events.event import Event
from ensue.events.nesting import with_nulls
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.expressions.evaluation import MISSING

_LARGEST_TABLE = 1 << 30
"""Up to so many bytes the chunks of a column are joined before they are put in order."""
PROVENANCE = ("correlation", "trigger", "labels", "causes", "partitionkey")


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

    def table(self, types: TypeSystem) -> pa.Table:
        count = len(self.places)
        if not all(is_attribute_column(name) for name in types.attributes(self.type)):
            # An attribute that is named as one of CloudEvents stands in the rest of the data.
            return events_table(self.events(), types)
        fields = list(CONTEXT_FIELDS)
        columns = [
            self.ids,
            self.sources,
            constant(self.type, count),
            pa.array(self.times).cast(TIME),
        ]
        for name, type_ in types.attributes(self.type).items():
            fields.append(field_of(name, type_))
            if name in self.data:
                columns.append(_arrow(*self.data[name]))
            else:
                columns.append(pa.nulls(count, arrow_type(type_)))
        for name, values in self.provenance.items():
            fields.append(pa.field(extension_column(name), pa.string()))
            columns.append(values)
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

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

    def table(self, types: TypeSystem) -> pa.Table:
        return events_table(self.made, types)

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

    def table(self, types: TypeSystem) -> pa.Table | None:
        if not self.groups:
            return None
        if len(self.groups) == 1:
            # What one statement has put out is in its order.
            return self.groups[0].table(types)
        joined = join_tables([group.table(types) for group in self.groups])
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

    def table(self, types: TypeSystem) -> pa.Table | None:
        tables = [part.table(types) for part in self.parts]
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


def events_table(events: Sequence[Event], types: TypeSystem) -> pa.Table:
    """Outputs as a table; an attribute without a value is null."""
    whole = [
        Event(
            event.id,
            event.source,
            event.type,
            event.time,
            with_nulls(event.attributes, types.attributes(event.type))
            if event.type in types
            else event.data,
            event.extensions,
        )
        for event in events
    ]
    return table_of(whole, types)


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

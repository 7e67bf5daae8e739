"""Outputs that are events, as a table.

In come events, for a rule that sends events on (`push a`) or runs event by event; out goes a table
with the columns of the library's outputs (`schema`). What an event brings along beyond these stands
in columns of its own, so that nothing of it is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from ensue.engine.batch.output.schema import PROVENANCE, OutputSchema, struct_of
from ensue.events.arrow import CONTEXT_FIELDS, TIME, extension_values, undeclared_data
from ensue.events.arrow_types import arrow_type, field_of
from ensue.events.columns import DATA_COLUMN, extension_column
from ensue.events.event import Event
from ensue.events.nesting import value_at
from ensue.events.types import TypeSystem


def events_table(events: Sequence[Event], types: TypeSystem, columns: OutputSchema) -> pa.Table:
    """Events as a table, with the columns that these events have; a missing attribute is null.

    Data that no type declares stands as JSON text in a column `data`, and extensions in columns
    `ce_NAME`.
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
    for name, column in _further_columns(events, types):
        while name in taken:
            name = extension_column(name)
        taken.add(name)
        fields.append(pa.field(name, column.type))
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _held(event: Event, name: str, types: TypeSystem) -> Any:
    return value_at(event.data, name)[1] if name in types.attributes(event.type) else None


def _further_columns(events: Sequence[Event], types: TypeSystem) -> Iterator[tuple[str, pa.Array]]:
    """Data that no type declares, and extensions other than those of every output."""
    rest = [undeclared_data(event, types) for event in events]
    if any(text is not None for text in rest):
        yield DATA_COLUMN, pa.array(rest, pa.string())
    every = dict.fromkeys(name for event in events for name in event.extensions)
    for name in every:
        if name not in PROVENANCE:
            values = [event.extensions.get(name) for event in events]
            yield extension_column(name), extension_values(values)

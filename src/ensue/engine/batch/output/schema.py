"""The columns of outputs, which follow from the library: one rule for tables, files and Spark.

In come the types of a library and correlations; out go the columns that their outputs have, also
where nothing was found. First the attributes of CloudEvents, then where an output comes from, then
what `with` sets, under the names that extensions have in columns (`ensue.events.columns`), then a
column for each attribute of an output type. An attribute stands in a struct named like its type
instead, if two output types give it types that one column cannot hold, or if its name is a column
of every output. Tables of outputs that are columns already are made in `columns`.

Outputs that are events, of a rule that sends events on (`push a`) or runs event by event, become a
table with these columns here (`events_table`). What an event brings along beyond them stands in
columns of its own, so that nothing of it is lost.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from ensue.events.arrow import CONTEXT_FIELDS, TIME, extension_values, undeclared_data
from ensue.events.arrow_types import arrow_type, field_of, widen
from ensue.events.cloudevents import write_json
from ensue.events.columns import DATA_COLUMN, extension_column
from ensue.events.conformance import fits
from ensue.events.event import Event
from ensue.events.nesting import value_at
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.checking.feeding import outputs_of
from ensue.lang.derived.extensions import BOOLEAN, INTEGER, TEXT, extensions_of
from ensue.lang.syntax import Correlation

CONTEXT = tuple(field.name for field in CONTEXT_FIELDS)
PROVENANCE = ("correlation", "trigger", "labels", "causes", "partitionkey")
ORDER = "order"
EVENT = "event"
TAKEN = frozenset({*CONTEXT, *PROVENANCE, ORDER, EVENT})
"""Names of columns that no attribute has; `order` and `event` are asked for on Spark."""


@dataclass(frozen=True)
class OutputSchema:
    """The columns of outputs: one for each of `attributes`; `structs` hold the others by type.

    `extensions` has the type of each extension that some correlation sets.
    """

    attributes: Mapping[str, ValueType]
    structs: Mapping[str, Mapping[str, ValueType]]
    extensions: Mapping[str, ValueType] = field(default_factory=dict)

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [*CONTEXT_FIELDS, *(pa.field(name, pa.string()) for name in PROVENANCE)]
        fields += [
            pa.field(extension_column(name), arrow_type(type_))
            for name, type_ in self.extensions.items()
        ]
        fields += [field_of(name, type_) for name, type_ in self.attributes.items()]
        fields += [pa.field(name, struct_of(members)) for name, members in self.structs.items()]
        return pa.schema(fields)


def struct_of(members: Mapping[str, ValueType]) -> pa.DataType:
    return pa.struct([pa.field(name, arrow_type(type_)) for name, type_ in members.items()])


def output_schema(types: TypeSystem, correlations: Iterable[Correlation]) -> OutputSchema:
    """The columns of what the correlations put out; what is internal leaves in no column."""
    made: set[str] = set()
    extensions: dict[str, ValueType] = {}
    for correlation in correlations:
        if correlation.role == "internal":
            continue
        for each in extensions_of(correlation):
            assert each.type is not None, "the extensions of a checked library have types"
            type_ = _COLUMN_TYPES.get(each.type, TEXT)
            # No column holds two types.
            extensions[each.name] = type_ if extensions.get(each.name, type_) == type_ else TEXT
        for output in outputs_of(correlation):
            made.update(types.subtypes(output.type) if output.or_below else (output.type,))
    for name in PROVENANCE:
        extensions.pop(name, None)
    taken = TAKEN | {extension_column(name) for name in extensions}
    wide: dict[str, ValueType] = {}
    apart: set[str] = set()
    # In the order of declarations, so that the same library gives the same columns.
    for type_name in (name for name in types.types if name in made):
        for name, type_ in types.attributes(type_name).items():
            joined = widen(wide[name], type_) if name in wide else type_
            if joined is None or name.lower() in taken:
                apart.add(name)
            else:
                wide[name] = joined
    apart |= _differing_in_case(wide)
    structs = {
        type_name: members
        for type_name in types.types
        if type_name in made
        and (members := {n: t for n, t in types.attributes(type_name).items() if n in apart})
    }
    beside = {name: type_ for name, type_ in wide.items() if name not in apart}
    return OutputSchema(beside, structs, extensions)


_COLUMN_TYPES = {BOOLEAN: BOOLEAN, INTEGER: ValueType("long long")}
"""The types of extensions in columns: events from outside have integers of any size, and a
timestamp is text, as in every column of an extension that is read."""


def _differing_in_case(names: Iterable[str]) -> set[str]:
    """Names that differ only in case, which Spark cannot tell apart, without the first of each."""
    seen: dict[str, str] = {}
    return {name for name in names if seen.setdefault(name.lower(), name) != name}


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
    for name, type_ in columns.extensions.items():
        values = [event.extensions.get(name) for event in events]
        fields.append(pa.field(extension_column(name), arrow_type(type_)))
        arrays.append(extension_array(values, type_))
    for name, type_ in columns.attributes.items():
        if name in present:
            fields.append(field_of(name, type_))
            arrays.append(
                pa.array([declared_value(each, name, types) for each in events], arrow_type(type_))
            )
    for type_name, members in columns.structs.items():
        if any(event.type == type_name for event in events):
            rows = [
                {name: declared_value(event, name, types) for name in members}
                if event.type == type_name
                else None
                for event in events
            ]
            fields.append(pa.field(type_name, struct_of(members)))
            arrays.append(pa.array(rows, struct_of(members)))
    taken = {field.name for field in fields}
    for name, column in _further_columns(events, types, columns.extensions):
        while name in taken:
            name = extension_column(name)
        taken.add(name)
        fields.append(pa.field(name, column.type))
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def declared_value(event: Event, name: str, types: TypeSystem) -> Any:
    """The value of an attribute of the type of an event; null where the type declares none."""
    return value_at(event.data, name)[1] if name in types.attributes(event.type) else None


def extension_array(values: Sequence[Any], type_: ValueType) -> pa.Array:
    """The values of an extension as a column; one that events brought and does not fit is null."""
    if type_ == TEXT:
        held = [each if isinstance(each, str | None) else write_json(each) for each in values]
    else:
        held = [each if fits(each, type_) else None for each in values]
    return pa.array(held, arrow_type(type_))


def _further_columns(
    events: Sequence[Event], types: TypeSystem, set_here: Container[str]
) -> Iterator[tuple[str, pa.Array]]:
    """Data that no type declares, and extensions that have no column yet."""
    rest = [undeclared_data(event, types) for event in events]
    if any(text is not None for text in rest):
        yield DATA_COLUMN, pa.array(rest, pa.string())
    every = dict.fromkeys(name for event in events for name in event.extensions)
    for name in every:
        if name not in PROVENANCE and name not in set_here:
            values = [event.extensions.get(name) for event in events]
            yield extension_column(name), extension_values(values)

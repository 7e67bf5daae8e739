"""The columns of the outputs, which follow from the library; one row is one output.

In come the selected correlations; out go the columns as schemas of Spark and Arrow, and rows from
events or from tables of the batch engine. Which columns there are is said for all outputs in
`ensue.engine.batch.output.schema`; here are Spark's types of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.output.schema import (
    CONTEXT,
    EVENT,
    ORDER,
    PROVENANCE,
    OutputSchema,
    declared_value,
    extension_array,
    output_schema,
)
from ensue.events.cloudevents import encode
from ensue.events.columns import extension_column
from ensue.events.event import Event
from ensue.events.types import TypeSystem, ValueType
from ensue.spark.plan import JobPlan

_TIME = pa.timestamp("us", "UTC")

# Spark has no unsigned integers; the next larger type takes their place.
_TYPES: Mapping[str, tuple[str, pa.DataType]] = {
    "octet": ("smallint", pa.int16()),
    "short": ("smallint", pa.int16()),
    "unsigned short": ("int", pa.int32()),
    "long": ("int", pa.int32()),
    "unsigned long": ("bigint", pa.int64()),
    "long long": ("bigint", pa.int64()),
    "unsigned long long": ("decimal(20,0)", pa.decimal128(20, 0)),
    "float": ("double", pa.float64()),
    "double": ("double", pa.float64()),
    "boolean": ("boolean", pa.bool_()),
    "char": ("string", pa.string()),
    "string": ("string", pa.string()),
    "timestamp": ("timestamp", _TIME),
}


@dataclass(frozen=True)
class OutputColumns:
    """The columns of outputs, and of what else was asked for."""

    made: OutputSchema
    types: TypeSystem
    with_order: bool = False
    with_event: bool = False

    @property
    def attributes(self) -> Mapping[str, ValueType]:
        return self.made.attributes

    @property
    def structs(self) -> Mapping[str, Mapping[str, ValueType]]:
        return self.made.structs

    @property
    def _beside(self) -> Mapping[str, ValueType]:
        """The columns of what `with` sets."""
        return {extension_column(name): type_ for name, type_ in self.made.extensions.items()}

    @cached_property
    def ddl(self) -> str:
        """The schema as Spark DDL."""
        parts = [f"`{name}` {'timestamp' if name == 'time' else 'string'}" for name in CONTEXT]
        parts += [f"`{name}` string" for name in PROVENANCE]
        parts += [f"{_quoted(name)} {_spark(type_)}" for name, type_ in self._beside.items()]
        parts += [f"{_quoted(name)} {_spark(type_)}" for name, type_ in self.attributes.items()]
        for name, members in self.structs.items():
            inner = ", ".join(f"{_quoted(n)}: {_spark(type_)}" for n, type_ in members.items())
            parts.append(f"{_quoted(name)} struct<{inner}>")
        parts += ["`order` binary"] if self.with_order else []
        parts += ["`event` string"] if self.with_event else []
        return ", ".join(parts)

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [pa.field(name, _TIME if name == "time" else pa.string()) for name in CONTEXT]
        fields += [pa.field(name, pa.string()) for name in PROVENANCE]
        fields += [pa.field(name, _arrow(type_)) for name, type_ in self._beside.items()]
        fields += [pa.field(name, _arrow(type_)) for name, type_ in self.attributes.items()]
        fields += [pa.field(name, _struct(members)) for name, members in self.structs.items()]
        fields += [pa.field(ORDER, pa.binary())] if self.with_order else []
        fields += [pa.field(EVENT, pa.string())] if self.with_event else []
        return pa.schema(fields)

    def batch(self, outputs: Sequence[tuple[bytes, Event]]) -> pa.RecordBatch:
        """Rows for events, each with its position."""
        events = [event for _, event in outputs]
        columns: list[pa.Array] = [
            pa.array([event.id for event in events], pa.string()),
            pa.array([event.source for event in events], pa.string()),
            pa.array([event.type for event in events], pa.string()),
            pa.array([event.time for event in events], pa.int64()).cast(_TIME),
        ]
        columns += [
            pa.array([event.extensions.get(name) for event in events], pa.string())
            for name in PROVENANCE
        ]
        for name, type_ in self.made.extensions.items():
            given = [event.extensions.get(name) for event in events]
            columns.append(extension_array(given, type_))
        for name, type_ in self.attributes.items():
            values = [_held(declared_value(event, name, self.types), type_) for event in events]
            columns.append(pa.array(values, _arrow(type_)))
        for type_name, members in self.structs.items():
            rows = [
                {n: _held(declared_value(event, n, self.types), t) for n, t in members.items()}
                if event.type == type_name
                else None
                for event in events
            ]
            columns.append(pa.array(rows, _struct(members)))
        if self.with_order:
            columns.append(pa.array([position for position, _ in outputs], pa.binary()))
        if self.with_event:
            columns.append(pa.array([encode(event).decode() for event in events], pa.string()))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def table(
        self, made: pa.Table, order: pa.Array | None = None, events: pa.Array | None = None
    ) -> pa.Table:
        """Rows from a table of the batch engine, which has no structs.

        `order` has the positions of the rows, and `events` the whole events, if they are wanted.
        """
        columns: list[Any] = []
        names = set(made.schema.names)
        column: Any
        for field in self.schema:
            if field.name == ORDER:
                column = order
            elif field.name == EVENT:
                column = events
            else:
                column = made.column(field.name) if field.name in names else pa.nulls(len(made))
            columns.append(column.cast(field.type) if column.type != field.type else column)
        return pa.Table.from_arrays(columns, schema=self.schema)


def output_columns(
    plan: JobPlan, *, with_order: bool = False, with_event: bool = False
) -> OutputColumns:
    """The columns of the outputs of the selected correlations."""
    rules = [each.correlation for group in plan.groups for each in group.rules]
    chosen = [each for each in rules if each.name in plan.selected]
    types = plan.library.types
    return OutputColumns(output_schema(types, chosen), types, with_order, with_event)


def _held(value: Any, type_: ValueType) -> Any:
    if value is None:
        return None
    if type_.element is not None:
        return [_held(each, type_.element) for each in value]
    if type_.name == "unsigned long long":
        return Decimal(value)
    return float(value) if type_.kind == "real" else value


def _spark(type_: ValueType) -> str:
    return f"array<{_spark(type_.element)}>" if type_.element else _TYPES[type_.name][0]


def _arrow(type_: ValueType) -> pa.DataType:
    return pa.list_(_arrow(type_.element)) if type_.element else _TYPES[type_.name][1]


def _struct(members: Mapping[str, ValueType]) -> pa.DataType:
    return pa.struct([pa.field(name, _arrow(type_)) for name, type_ in members.items()])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def selected_rows(table: pa.Table, selected: Sequence[str]) -> pa.Table:
    """The rows of a table of the batch engine that come from the selected correlations."""
    return table.filter(pc.is_in(table.column("correlation"), pa.array(list(selected))))

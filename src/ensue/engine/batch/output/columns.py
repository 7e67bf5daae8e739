"""The outputs of a batch, as columns: from one statement up to all correlations together.

All outputs that one statement makes in a batch are one bundle of columns (`ColumnBundle`), made by
`build`; events that are sent on (`push a`) stay events (`EventBundle`). `SourceOutputs` has the
bundles of one correlation or of one group of rules, and `BatchOutputs` those of the whole library,
with their places in the stream (`order`). Out goes a table or events, in the order of the stream,
made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import LARGEST_OFFSET, Column, Texts, repeated_text
from ensue.engine.batch.output.order import OutputPlaces, Positions, order_of
from ensue.engine.batch.output.schema import (
    PROVENANCE,
    OutputSchema,
    events_table,
    extension_array,
    output_schema,
    struct_of,
)
from ensue.engine.core.numbering import Rows
from ensue.engine.outputs import carried_value, with_extensions
from ensue.events.arrow import CONTEXT_FIELDS, TIME
from ensue.events.arrow_types import arrow_type, field_of
from ensue.events.columns import extension_column
from ensue.events.event import Event
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.checked import CheckedLibrary
from ensue.lang.expressions.evaluation import MISSING

_LARGEST_TABLE = 1 << 30
"""Up to so many bytes the chunks of a column are joined before they are put in order."""


ExtensionColumns = Mapping[str, tuple[ValueType, Column]]
"""What `with` sets on the outputs of a statement: a column for each extension, with its type."""


def extension_rows(
    own: ExtensionColumns, provenance: Mapping[str, pa.Array]
) -> Iterator[Iterator[tuple[str, Any]]]:
    """For each output its extensions: what `with` sets, then where the output comes from."""
    columns = [carried_values(*each) for each in own.values()]
    columns += [each.to_pylist() for each in provenance.values()]
    names = (*own, *provenance)
    return (zip(names, row, strict=True) for row in zip(*columns, strict=True))


def carried_values(type_: ValueType, column: Column) -> list[Any]:
    """The values of an extension as events carry them; None where one is missing."""
    values = [None if each is MISSING else each for each in column.to_list()]
    return [carried_value(each) for each in values] if type_.name == "timestamp" else values


@dataclass(frozen=True)
class ColumnBundle:
    """Outputs of one type, made by one statement; `ranks` are their places among all outputs."""

    ranks: Rows
    type: str
    ids: pa.Array
    sources: pa.Array
    times: npt.NDArray[np.int64]
    data: Mapping[str, tuple[ValueType, Column]]
    provenance: Mapping[str, pa.Array]
    extensions: ExtensionColumns

    def table(self, types: TypeSystem, columns: OutputSchema) -> pa.Table:
        """The columns that these outputs have; the others of a library are null."""
        count = len(self.ranks)
        fields = list(CONTEXT_FIELDS)
        arrays = [
            self.ids,
            self.sources,
            repeated_text(self.type, count),
            pa.array(self.times).cast(TIME),
        ]
        for name, values in self._set_beside().items():
            fields.append(pa.field(name, pa.string()))
            arrays.append(values)
        for name, held in columns.extensions.items():
            if name in self.extensions:
                fields.append(pa.field(extension_column(name), arrow_type(held)))
                carried = carried_values(*self.extensions[name])
                arrays.append(extension_array(carried, held))
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

    def _set_beside(self) -> Mapping[str, pa.Array]:
        """The columns of every output; `partitionkey` may be set where there is no key."""
        own = {
            name: _arrow(*self.extensions[name]) for name in PROVENANCE if name in self.extensions
        }
        return {**self.provenance, **own}

    def _values(self, name: str, wide: ValueType) -> pa.Array:
        """The values of an attribute, in a type that may be wider than its own."""
        wanted = arrow_type(wide)
        if name not in self.data:
            return pa.nulls(len(self.ranks), wanted)
        values = _arrow(*self.data[name])
        return values if values.type == wanted else values.cast(wanted)

    def events(self) -> list[Event]:
        names = list(self.data)
        rows: Any = zip(*(column.to_list() for _, column in self.data.values()), strict=True)
        if not names:
            rows = [()] * len(self.ranks)
        extensions = extension_rows(self.extensions, self.provenance)
        return [
            Event(
                id_,
                source,
                self.type,
                time,
                {n: None if v is MISSING else v for n, v in zip(names, values, strict=True)},
                with_extensions({}, extension),
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
class EventBundle:
    """Outputs that are events already; `ranks` are their places among all outputs."""

    ranks: Rows
    outputs: Sequence[Event]

    def table(self, types: TypeSystem, columns: OutputSchema) -> pa.Table:
        return events_table(self.outputs, types, columns)

    def events(self) -> Sequence[Event]:
        return self.outputs


@dataclass(frozen=True)
class SourceOutputs:
    """Outputs of one correlation, or of one group of rules, over a batch, by statement.

    `at` says for each output, in the order of outputs, which of the readings it came from.
    """

    at: Rows
    bundles: Sequence[ColumnBundle | EventBundle]
    rules: Rows | None = None
    """The number of each output's correlation, where several correlations have put out."""

    def __len__(self) -> int:
        return len(self.at)

    def events(self) -> list[Event]:
        out: list[Any] = [None] * len(self.at)
        for bundle in self.bundles:
            for place, event in zip(bundle.ranks.tolist(), bundle.events(), strict=True):
                out[place] = event
        return out

    def table(self, types: TypeSystem, columns: OutputSchema) -> pa.Table | None:
        if not self.bundles:
            return None
        if len(self.bundles) == 1:
            # What one statement has put out is in its order.
            return self.bundles[0].table(types, columns)
        joined = join_tables([bundle.table(types, columns) for bundle in self.bundles])
        order = np.argsort(np.concatenate([bundle.ranks for bundle in self.bundles]), kind="stable")
        return reordered(joined, order)


@dataclass(frozen=True)
class PartedOutputs:
    """Outputs of the parts of a batch, one part after the other."""

    parts: Sequence[SourceOutputs]

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


PositionedOutputs = tuple[SourceOutputs | PartedOutputs, Positions | OutputPlaces]
"""Outputs of one correlation, or of one group of rules, and the place of each in the stream."""


class OutputForms:
    """Gives outputs of one library their columns; `is_linked` says whether any rule feeds another.

    `columns` are those of tables; without them, all that outputs of the library can have.
    """

    def __init__(
        self, library: CheckedLibrary, is_linked: bool, columns: OutputSchema | None = None
    ) -> None:
        self._types = library.types
        self._columns = columns or output_schema(library.types, library.correlations)
        self._is_linked = is_linked

    def of_batch(self, outputs: Sequence[PositionedOutputs]) -> BatchOutputs:
        return BatchOutputs(outputs, self._types, self._columns, self._is_linked)

    def joined(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Tables of outputs as one, with all columns of the library."""
        if not tables:
            return self._columns.schema.empty_table()
        return whole_table(join_tables(tables), self._columns.schema)


class BatchOutputs:
    """The outputs of all correlations over one batch; a form of them is made when it is asked for.

    `lines.batch_lines` makes JSON lines of them.
    """

    def __init__(
        self,
        outputs: Sequence[PositionedOutputs],
        types: TypeSystem,
        columns: OutputSchema,
        is_linked: bool,
    ) -> None:
        self._outputs = outputs
        self._types = types
        self._columns = columns
        # The outputs of one source are in order already.
        self._is_in_order = len(outputs) == 1 and not is_linked

    def __len__(self) -> int:
        return sum(len(made) for made, _ in self._outputs)

    @property
    def sources(self) -> list[SourceOutputs | PartedOutputs]:
        """The outputs of each correlation and group of rules, one after the other."""
        return [made for made, _ in self._outputs]

    def table(self) -> pa.Table:
        """The outputs in the columns that they have; without outputs, in all of the library."""
        tables = [made.table(self._types, self._columns) for made, _ in self._outputs]
        found = [each for each in tables if each is not None]
        if not found:
            return self._columns.schema.empty_table()
        if self._is_in_order:
            return found[0]
        return reordered(join_tables(found), order_of_outputs(self._outputs))

    def events(self) -> list[Event]:
        if self._is_in_order:
            return self._outputs[0][0].events()
        every = [event for made, _ in self._outputs for event in made.events()]
        return [every[place] for place in order_of_outputs(self._outputs)]

    def ordered_texts(self, parts: Sequence[pa.Array]) -> pa.Array:
        """Texts of the outputs, given for each source, in the order of the stream."""
        whole = joined_texts(parts)
        if self._is_in_order or not len(whole):
            return whole
        order = order_of_outputs(self._outputs)
        if (order[1:] > order[:-1]).all():
            return whole
        return Texts.of(whole).take(order)


def order_of_outputs(outputs: Sequence[PositionedOutputs]) -> Rows:
    """The order of the outputs of several sources, numbered from one source to the next."""
    every = [places for _, places in outputs]
    if not every:
        return np.empty(0, np.int64)
    if all(isinstance(each, OutputPlaces) for each in every):
        return order_of([each for each in every if isinstance(each, OutputPlaces)])
    positions = np.concatenate([each for each in every if not isinstance(each, OutputPlaces)])
    return np.lexsort(positions.T[::-1])


def whole_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table of outputs with every column of a schema; columns beyond the schema come last."""
    if table.schema.names == schema.names:
        return table
    present = set(table.schema.names)
    fields, columns = [], []
    for field in schema:
        if field.name in present:
            columns.append(table.column(field.name))
        else:
            columns.append(pa.nulls(len(table), field.type))
        fields.append(field)
    known = set(schema.names)
    for field in table.schema:
        if field.name not in known:
            fields.append(field)
            columns.append(table.column(field.name))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


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


def joined_texts(parts: Sequence[pa.Array]) -> pa.Array:
    """Arrays of texts one after the other."""
    if not parts:
        return pa.array([], pa.string())
    if len(parts) == 1:
        return parts[0]
    if sum(part.nbytes for part in parts) > LARGEST_OFFSET:
        parts = [part.cast(pa.large_string()) for part in parts]
    return pa.concat_arrays(parts)


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

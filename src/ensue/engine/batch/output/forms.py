"""Outputs of a batch in the form that a caller asks for: events, a table, or JSON lines.

In come the outputs of all correlations with their places; out goes one form of them, in the order
of the stream. Nothing is made before it is asked for. A table without outputs has the columns that
outputs of the library have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import Rows, Texts
from ensue.engine.batch.output.columns import Made, MadeInTurn, join_tables, reordered
from ensue.engine.batch.output.lines import correlations_of, joined_texts, lines_of
from ensue.engine.batch.output.order import Places, Positions, order_of
from ensue.engine.batch.output.schema import OutputSchema, output_schema
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary

Output = tuple[Made | MadeInTurn, Positions | Places]


class OutputForms:
    """The forms of outputs of one library; `is_linked` says whether any rule feeds another.

    `columns` are those of tables; without them, all that outputs of the library can have.
    """

    def __init__(
        self, library: CheckedLibrary, is_linked: bool, columns: OutputSchema | None = None
    ) -> None:
        self._types = library.types
        self._columns = columns or output_schema(library.types, library.correlations)
        self._is_linked = is_linked

    def whole(self, outputs: Sequence[Output]) -> BatchOutputs:
        return BatchOutputs(outputs, self._types, self._columns, self._is_linked)

    def events(self, outputs: Sequence[Output]) -> list[Event]:
        if len(outputs) == 1 and not self._is_linked:
            return outputs[0][0].events()
        every = [event for made, _ in outputs for event in made.events()]
        return [every[place] for place in order_of_outputs(outputs)]

    def table(self, outputs: Sequence[Output]) -> pa.Table:
        found = self.whole(outputs).table()
        return self.empty() if found is None else found

    def joined(self, tables: Sequence[pa.Table]) -> pa.Table:
        return whole_table(join_tables(tables), self._columns.schema) if tables else self.empty()

    def empty(self) -> pa.Table:
        """A table of outputs without any."""
        return self._columns.schema.empty_table()


class BatchOutputs:
    """The outputs of all correlations over one batch."""

    def __init__(
        self,
        outputs: Sequence[Output],
        types: TypeSystem,
        columns: OutputSchema,
        is_linked: bool,
    ) -> None:
        self._outputs = outputs
        self._types = types
        self._columns = columns
        # What comes from one source is in its order.
        self._is_in_order = len(outputs) == 1 and not is_linked

    def __len__(self) -> int:
        return sum(len(made) for made, _ in self._outputs)

    def table(self) -> pa.Table | None:
        """The outputs in the columns that these have; None if there are none."""
        tables = [made.table(self._types, self._columns) for made, _ in self._outputs]
        found = [each for each in tables if each is not None]
        if not found:
            return None
        if self._is_in_order:
            return found[0]
        return reordered(join_tables(found), order_of_outputs(self._outputs))

    def lines(self, only: str | None = None) -> pa.Array:
        """The outputs as JSON lines, each with its line break; or those of one correlation."""
        lines = self._ordered([lines_of(made) for made, _ in self._outputs])
        if only is None:
            return lines
        names = self._ordered([correlations_of(made) for made, _ in self._outputs])
        return lines.filter(pc.equal(names, only))

    def _ordered(self, parts: Sequence[pa.Array]) -> pa.Array:
        whole = joined_texts(parts)
        if self._is_in_order or not len(whole):
            return whole
        order = order_of_outputs(self._outputs)
        if (order[1:] > order[:-1]).all():
            return whole
        return Texts.of(whole).take(order)


def order_of_outputs(outputs: Sequence[Output]) -> Rows:
    """The order of outputs of several correlations, one after the other."""
    every = [places for _, places in outputs]
    if not every:
        return np.empty(0, np.int64)
    if all(isinstance(each, Places) for each in every):
        return order_of([each for each in every if isinstance(each, Places)])
    positions = np.concatenate([each for each in every if not isinstance(each, Places)])
    return np.lexsort(positions.T[::-1])


def whole_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table of outputs with every column, null where it has none; others of its own last."""
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

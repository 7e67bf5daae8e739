"""Outputs of a batch in the form that a caller asks for: events, a table, or both by demand.

In come the outputs of all correlations with their places; out goes one form of them, in the order
of the stream. A table without outputs has the columns that outputs of the library have.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ensue.engine.batch.output.columns import join_tables
from ensue.engine.batch.output.schema import OutputSchema, output_schema
from ensue.engine.batch.output.whole import BatchOutputs, Output, order_of_outputs
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary


class OutputForms:
    """The forms of outputs of one library; `is_linked` says whether any rule feeds another."""

    def __init__(
        self, library: CheckedLibrary, is_linked: bool, columns: OutputSchema | None = None
    ) -> None:
        """`columns` are those of tables; without them, all that the library can have."""
        self._columns = columns or output_schema(library.types, library.correlations)
        self._types = library.types
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
        return self._columns.whole(join_tables(tables)) if tables else self.empty()

    def empty(self) -> pa.Table:
        """A table of outputs without any."""
        return self._columns.schema.empty_table()

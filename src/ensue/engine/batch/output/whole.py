"""All outputs of one batch, in their order: as a table, or as JSON lines.

In come the outputs of each correlation with their places; out go columns, or lines. Nothing is made
before it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.column import Rows
from ensue.engine.batch.input.texts import Texts
from ensue.engine.batch.output.columns import Made, MadeInTurn, join_tables, reordered
from ensue.engine.batch.output.lines import correlations_of, joined_texts, lines_of
from ensue.engine.batch.output.order import Positions
from ensue.engine.batch.output.placing import Places, order_of
from ensue.engine.batch.output.schema import OutputSchema
from ensue.events.types import TypeSystem

Output = tuple[Made | MadeInTurn, Positions | Places]


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

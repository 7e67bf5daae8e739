"""Correlations over tables: one call from events in columns to outputs in columns.

In comes anything that gives an Arrow stream (a pyarrow table, a data frame, a query's result), and
a library; out goes a pyarrow table of what follows. The columns are those of `ensue.events.columns`
on both sides. For a stream that comes in batches, and for its state between them, there is
`ensue.engine.batch`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ensue.library import Library

if TYPE_CHECKING:
    import pyarrow as pa


def correlate(table: Any, library: Library) -> pa.Table:
    """Everything that follows from the events of a table, in the order of their times.

    Rows that do not fit their event types are left out, and a warning says how many and why.
    Raises `UsageError` if the columns do not make events.
    """
    from ensue.engine.batch import BatchEngine

    engine = BatchEngine(library.checked)
    found = engine.push_batch(table)
    if engine.rejected:
        first = engine.rejected[0]
        warnings.warn(
            f"{len(engine.rejected)} rows are no events of this library and were left out;"
            f" the first is row {first.number}: {'; '.join(first.problems)}",
            stacklevel=2,
        )
    return found

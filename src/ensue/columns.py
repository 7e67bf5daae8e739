"""Correlations over tables: one call from events in columns to outputs in columns.

In comes anything that gives an Arrow stream (a pyarrow table, a data frame, a query's result), and
a library, its text or its file; out goes a pyarrow table of what follows. The columns are those of
`ensue.events.columns` on both sides. For a stream that comes in batches, and for its state between
them, there is `ensue.engine.batch`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ensue.events.mapping import Mapping as ColumnMapping
from ensue.library import LibraryLike, as_library

if TYPE_CHECKING:
    import pyarrow as pa


def correlate(
    table: Any,
    library: LibraryLike,
    *,
    columns: Mapping[str, Any] | None = None,
    type: str | None = None,  # noqa: A002 - the CloudEvents name
    timezone: str | None = None,
) -> pa.Table:
    """Everything that follows from the events of a table, in the order of their times.

    The library may be a `Library`, its text, or the path of its file. `columns` says which column
    or path is what, as `{"time": "ts:ms", "user": "actor.name"}`; `type` is the type of all events,
    where no column has it, and in `timezone` are times without an offset. Rows that do not fit
    their event types are left out, and a rule with `by` does not read rows without its key; a
    warning says how many of either there were. Raises `UsageError` if the columns do not make
    events.
    """
    from ensue.engine.batch import BatchEngine

    mapping = ColumnMapping.of(columns, type, timezone)
    engine = BatchEngine(as_library(library).checked)
    found = engine.push_batch(table, mapping=mapping)
    if engine.rejected:
        first = engine.rejected[0]
        one = len(engine.rejected) == 1
        warnings.warn(
            f"{_rows(len(engine.rejected))} {'is no event' if one else 'are no events'} of this"
            f" library and {'was' if one else 'were'} left out;"
            f" {'it' if one else 'the first'} is row {first.number}: {'; '.join(first.problems)}",
            stacklevel=2,
        )
    for name, count in sorted(engine.counts.without_key.items()):
        if count:
            had = "has no key" if count == 1 else "have no key"
            warnings.warn(
                f"{_rows(count)} {had} for `{name}`, which did not read"
                f" {'it' if count == 1 else 'them'}",
                stacklevel=2,
            )
    return found


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"

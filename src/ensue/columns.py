"""Correlations over tables: one call from events in columns to outputs in columns.

In comes anything that gives an Arrow stream (a pyarrow table, a data frame, a query's result), and
a library, its text or its file; out goes a pyarrow table of what follows. Columns of events are
those of `ensue.events.columns`, columns of outputs those of `ensue.engine.batch.output.schema`. For
a stream that comes in batches, and for its state between them, there is `ensue.engine.batch`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from ensue.engine.inputs import time_microseconds
from ensue.engine.timing import jumps
from ensue.engine.timing.jumps import JumpLike
from ensue.events.mapping import Mapping as ColumnMapping
from ensue.events.mapping import refuse_derived
from ensue.lang.derived.wanted import unusable_keys
from ensue.library import LibraryLike, as_library

if TYPE_CHECKING:
    import pyarrow as pa


def correlate(
    table: Any,
    library: LibraryLike,
    columns: Mapping[str, Any] | None = None,
    *,
    type: str | None = None,  # noqa: A002 - the CloudEvents name
    timezone: str | None = None,
    year: int | None = None,
    until: str | datetime | None = None,
    max_jump: JumpLike = None,
) -> pa.Table:
    """Everything that follows from the events of a table, in the order of their times.

    The library may be a `Library`, its text, or the path of its file. `columns` says which column
    or path is what, as `{"time": "ts:ms", "user": "actor.name"}`; `type` is the type of all events,
    where no column has it, in `timezone` are times without an offset, and in `year` the first of
    those whose pattern has none. At the end the clock
    stands at the time of the last event, or at `until` (RFC 3339, or a datetime) if that is later,
    so that timers up to then fire.

    Rows that do not fit their event types are left out, and a rule with `by` does not read rows
    without its key; a warning says how many of either there were. So are rows that lie further
    ahead of those before them than `max_jump` (a duration, or `none`), which is bounded by the
    rules' timers unless it is given. Raises `UsageError` if the columns do not make events.
    """
    import pyarrow as pa

    from ensue.engine.batch import BatchEngine

    mapping = ColumnMapping.of(columns, type, timezone, year)
    checked = as_library(library).checked
    refuse_derived(mapping.columns, checked.types)
    end = None if until is None else time_microseconds(until)
    engine = BatchEngine(checked, max_jump=jumps.max_jump(checked, max_jump, bounded=True))
    found = engine.push_batch(table, mapping=mapping)
    if end is not None:
        found = pa.concat_tables([found, engine.finish(end)], promote_options="permissive")
    for name, sentence in unusable_keys(checked, partial(_inside, table)):
        if engine.counts.without_key[name]:
            warnings.warn(sentence, stacklevel=2)
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


def _inside(table: Any, name: str) -> Sequence[str] | None:
    """The names inside of a column of structs; none for lists; None for any other column."""
    import pyarrow as pa

    schema = getattr(table, "schema", None)
    if not isinstance(schema, pa.Schema) or name not in schema.names:
        return None
    held = schema.field(name).type
    if pa.types.is_struct(held):
        return [each.name for each in held]
    return () if pa.types.is_nested(held) else None

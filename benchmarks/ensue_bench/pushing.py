"""Work for the engines: a library over events one by one, or over a table; a fresh run each time.

The library is loaded off the clock, and so is the state that `before` leaves behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.run import Run
from ensue.events.event import Event
from ensue_bench.timing import Work


def through_step(text: str, events: Sequence[Event], before: Sequence[Event] = ()) -> Work:
    """Each event through `run.push`, as a live channel does it."""
    library = ensue.parse(text)

    def prepare() -> Run:
        run = library.start("step")
        _push_each(before, run)
        return run

    return Work(partial(_push_each, events), prepare)


def _push_each(events: Sequence[Event], run: Run) -> None:
    push = run.push
    for event in events:
        push(event)


def through_batch(text: str, table: pa.Table) -> Work:
    """A table in, a table out."""
    checked = ensue.parse(text).checked
    return Work(lambda engine: engine.push_batch(table), lambda: BatchEngine(checked))


def matches_of(text: str, table: pa.Table) -> int:
    """How many outputs a library has on a table."""
    return len(BatchEngine(ensue.parse(text).checked).push_batch(table))


def table_of(events: Sequence[Event], columns: Sequence[str]) -> pa.Table:
    """Events as a table, with these attributes as columns."""
    data: dict[str, list[object]] = {
        "id": [event.id for event in events],
        "source": [event.source for event in events],
        "type": [event.type for event in events],
    }
    times = pa.array([event.time for event in events]).cast(pa.timestamp("us", "UTC"))
    for name in columns:
        data[name] = [event.data[name] for event in events]
    return pa.table(data).add_column(3, "time", times)

"""Batches that come from no table: events that are in Python already, and firings of timers.

In come events, or the times at which timers fire; out goes a `Batch`, as a table makes one. Firings
of timers are remembered as events are, so that outputs can bind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.batches import Batch, Instants
from ensue.engine.batch.input.column import Column, absent, column_of
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.expressions.evaluation import EventScope
from ensue.lang.expressions.names import Parts, is_time

_BYTES_OF_AN_EVENT = 600
"""What an event with two attributes was seen to hold, with its columns."""


class EventBatch(Batch):
    """Events that are in Python already, each of them conformed."""

    def __init__(self, events: Sequence[Event], types: TypeSystem) -> None:
        super().__init__()
        self._events = events
        self.held_bytes = _BYTES_OF_AN_EVENT * len(events)
        self.types = types
        self.times = np.fromiter((event.time for event in events), np.int64, len(events))

    @cached_property
    def type_codes(self) -> npt.NDArray[np.int32]:
        places = {name: place for place, name in enumerate(self.types.types)}
        found = (places.get(event.type, -1) for event in self._events)
        return np.fromiter(found, np.int32, len(self._events))

    @cached_property
    def ids(self) -> pa.Array:
        return pa.array([event.id for event in self._events], pa.string())

    def _column(self, parts: Parts) -> Column:
        return column_of([EventScope(event).lookup(parts) for event in self._events])

    def event(self, row: int) -> Event:
        return self._events[row]

    def since(self, row: int, end: int | None = None) -> EventBatch:
        return EventBatch(self._events[row:end], self.types)


class AlarmBatch(Batch):
    """Firings of timers. Each has a time, and nothing else."""

    def __init__(self, times: Instants, types: TypeSystem) -> None:
        super().__init__()
        self.times = times
        self.types = types

    @cached_property
    def type_codes(self) -> npt.NDArray[np.int32]:
        return np.full(len(self), -1, np.int32)

    @cached_property
    def ids(self) -> pa.Array:
        return pa.nulls(len(self), pa.string())

    def _column(self, parts: Parts) -> Column:
        if is_time(parts):
            return Column("timestamp", self.times)
        return absent(len(self))

    def since(self, row: int, end: int | None = None) -> AlarmBatch:
        return AlarmBatch(self.times[row:end], self.types)

    def event(self, row: int) -> Event:
        """Stands in the place of an event; it is never sent on."""
        return Event("", "", "", int(self.times[row]))

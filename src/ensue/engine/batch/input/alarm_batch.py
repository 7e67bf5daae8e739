"""Firings of timers as a batch, so that they are remembered as events are."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.batches import Batch
from ensue.engine.batch.input.column import Column, absent
from ensue.engine.core.cells import Instants
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.expressions.names import Parts


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
        if len(parts) == 1 and parts[0].lower() == "time":
            return Column("timestamp", self.times)
        return absent(len(self))

    def since(self, row: int, end: int | None = None) -> AlarmBatch:
        return AlarmBatch(self.times[row:end], self.types)

    def event(self, row: int) -> Event:
        """Stands in the place of an event; it is never sent on."""
        return Event("", "", "", int(self.times[row]))

"""A correlation with timers in compiled loops.

In come the segments of `correlations`, and the time up to which the clock has come; out goes what
it puts out. What its timers fire is read between its events, and takes its own place in the order
of the stream: so a batch of alarms stands beside the batches of events, and an output may be bound
to either.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.batches import Batch
from ensue.engine.batch.column import Column, Rows, absent
from ensue.engine.batch.correlations import ColumnCorrelation, Path, Positions, Segment
from ensue.engine.batch.made import Made
from ensue.engine.batch.making import Readings
from ensue.engine.batch.order import EVENT, alarm_positions, event_positions
from ensue.engine.batch.table_reading import Instants
from ensue.engine.batch.timed_walk import TimedFirings, TimedWalk
from ensue.engine.batch.walks import Firings
from ensue.engine.core.jit import FAR
from ensue.engine.counts import Counts
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.expressions.names import Parts
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine


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

    def since(self, row: int) -> AlarmBatch:
        return AlarmBatch(self.times[row:], self.types)

    def event(self, row: int) -> Event:
        """What stands in its place among events; it is never sent on."""
        return Event("", "", "", int(self.times[row]))


class TimedCorrelation(ColumnCorrelation):
    """`place` is where it stands in the library; `depth` how long a way through rules may get."""

    walk: TimedWalk

    def __init__(
        self,
        correlation: Correlation,
        path: Path,
        machine: Machine,
        place: int,
        depth: int,
        types: TypeSystem,
        counts: Counts,
    ) -> None:
        super().__init__(correlation, path, machine, types, counts)
        self._place = place
        self._depth = depth

    def read_until(self, segments: Sequence[Segment], clock: int | None) -> tuple[Made, Positions]:
        """Read what is there, then let the clock go on."""
        found = self._gathered(segments, self._no_positions())
        first, positions = self.remembered.next, found.positions()
        timed = self.walk.read_until(
            found.bits, found.keys, found.times, self._limits(positions),
            self.keys.count, first, clock,
        )  # fmt: skip
        batches, rows, which = list(found.batches), found.rows, found.which
        times, keys = found.times, found.keys
        before = timed.before
        if before.size:
            alarms = np.arange(before.size)
            if which is None:
                which = np.zeros(len(rows), np.int64)
            which = np.insert(which, before, len(batches))
            rows = np.insert(rows, before, alarms)
            batches.append(AlarmBatch(timed.times, self._types))
            places = self._alarm_positions(timed, first)
            positions = np.insert(positions, before, places, axis=0)
            times = np.insert(times, before, timed.times)
            keys = np.insert(keys, before, timed.keys)
        if not len(rows):
            return Made(np.empty(0, np.int64), []), positions
        self.remembered.add(batches, rows, which)
        firings = timed.firings
        if before.size:
            firings = _in_order(firings, positions)
        made = self.maker.make(firings, Readings(first, times, keys, int(times.max())))
        self._hold_to_budget()
        return made, positions[made.at]

    def next_due(self) -> int | None:
        """When the first of its timers is due."""
        due = int(self.walk.next_due.min(initial=FAR))
        return None if due == FAR else due

    def _read_past(self, segments: Sequence[Segment], clock: int | None) -> None:
        self.read_until(segments, clock)

    def _limits(self, positions: Positions) -> Rows:
        """Up to which time alarms come before each reading.

        Those that are due at the same time come before an event, and before what follows from the
        alarm of a correlation further on in the library.
        """
        is_later = (positions[:, 1] == EVENT) | (positions[:, 2] > self._place)
        limits: Rows = positions[:, 0] - ~is_later
        return limits

    def _alarm_positions(self, timed: TimedFirings, first: int) -> Positions:
        readings = first + timed.before + np.arange(timed.before.size)
        return alarm_positions(timed.times, self._place, timed.numbers, readings, self._depth)

    def _no_positions(self) -> Positions:
        return event_positions(np.empty(0, np.int64), 0, self._depth)


def _in_order(firings: Firings, positions: Positions) -> Firings:
    """The firings in the order of the stream: those of different keys come as the keys are read."""
    order = np.lexsort(positions[firings.at].T[::-1])
    return Firings(firings.at[order], firings.actions[order], firings.places[order], firings.table)

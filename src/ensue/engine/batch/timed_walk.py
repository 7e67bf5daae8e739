"""Takes events through the table of a machine with timers, and fires the timers on the way.

In come symbols, keys and times, and how far the clock goes; out go `TimedFirings`: the firings of a
walk over readings that are events and alarms, and the alarms among them. The due times of a key are
in an array, one for each timer, and the next of them in another: an alarm is found by a compare.
With a window a key has registers too, as in `window_walk`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch import timed_kernels
from ensue.engine.batch.column import Rows
from ensue.engine.batch.walks import Firings, Room
from ensue.engine.batch.window_walk import Starts, WindowWalk
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Numbers, taller
from ensue.engine.core.timer_table import FilledTimed
from ensue.engine.core.window_table import ENDLESS, OrderedState
from ensue.machine.determinise import TableState


@dataclass(frozen=True, slots=True)
class TimedFirings:
    """`firings` number the readings: events, with the alarms put in where `before` says.

    `before` is for each alarm how many events were read before it; `numbers` say which key was the
    first to start, which the second.
    """

    firings: Firings
    before: Rows
    keys: Rows
    times: npt.NDArray[np.int64]
    numbers: Rows


class TimedWalk(WindowWalk):
    """All keys of one correlation with timers, on one table."""

    filled: FilledTimed

    def __init__(self, filled: FilledTimed, window: int | None = None) -> None:
        super().__init__(filled)
        self._window = np.int64(window or self.machine.window or ENDLESS)
        self.due = np.zeros((0, len(filled.timers)), np.int64)
        self.next_due = np.zeros(0, np.int64)
        self.numbers = np.zeros(0, np.int64)
        self.started_count = 0

    def read_until(
        self,
        bits: Any,
        keys: Numbers,
        times: Any,
        limits: Any,
        key_count: int,
        before: int,
        clock: int | None,
    ) -> TimedFirings:
        """Read the events; an alarm comes before an event if it is due up to its limit.

        Then the clock goes on for all keys.
        """
        self.grow(key_count)
        run = _Run(self, before, len(keys))
        run.go_through(self.filled.number_symbols(bits), keys, times, limits)
        if clock is not None:
            behind = np.flatnonzero(self.next_due[:key_count] <= clock).astype(np.int32)
            clocks = np.full(len(behind), clock, np.int64)
            run.go_through(np.full(len(behind), -1, np.int32), behind, clocks, clocks)
        return run.found()

    def grow(self, key_count: int) -> None:
        before = len(self.states)
        super().grow(key_count)
        size = len(self.states)
        if size > before:
            self.due = taller(self.due, size, 0)
            self.next_due = taller(self.next_due, size, FAR)
            self.numbers = taller(self.numbers, size, 0)

    def is_busy(self) -> npt.NDArray[np.bool_]:
        """Every key that has started counts time from there."""
        return np.asarray(self.states != 0)

    # --- snapshots --------------------------------------------------------------------------------

    def take_starts(
        self, at: Numbers, starts: Starts, started: npt.NDArray[np.bool_], most_states: int
    ) -> bool:
        if isinstance(self.filled.machine_table.first, OrderedState):
            return super().take_starts(at, starts, started, most_states)
        patterns, which = np.unique(starts != -FAR, axis=0, return_inverse=True)
        numbers = [
            self.filled.number(TableState(frozenset(np.flatnonzero(pattern).tolist())))
            for pattern in patterns
        ]
        self.states[at] = np.where(started, np.array(numbers, np.int32)[which.reshape(-1)], 0)
        return True

    def due_of(self, chosen: Rows, timer: int) -> npt.NDArray[np.int64]:
        """When a timer of these keys is due; `FAR` where it does not run."""
        runs = self.filled.running[self.states[chosen]] >> timer & 1
        return np.where(runs == 1, self.due[chosen, timer], FAR)

    def take_due(self, at: Numbers, due: npt.NDArray[np.int64], numbers: Rows) -> None:
        """Go on from due times, by key and timer, and from the numbers of the keys."""
        self.due[at] = due
        self.next_due[at] = due.min(axis=1, initial=FAR)
        self.numbers[at] = numbers
        self.started_count = int(np.count_nonzero(self.states))


class _Run:
    """One call of a walk: how far it came, and what it has written."""

    def __init__(self, walk: TimedWalk, before: int, events: int) -> None:
        self._walk = walk
        self._before = before
        self._out = Room(max(1024, events // 8), walk.filled.places)
        self._noted = np.empty((3, 1024), np.int64)
        self._read = self._fired = self._alarms = 0

    def go_through(self, symbols: Any, keys: Numbers, times: Any, limits: Any) -> None:
        walk, filled = self._walk, self._walk.filled
        at = 0
        while at < len(symbols):
            out, noted = self._out, self._noted
            at, self._read, walk.started_count, self._alarms, self._fired, due = (
                timed_kernels.walk_timed(
                    symbols, times, limits, keys, at, self._read,
                    filled.array, filled.anew, filled.running, filled.timers.after,
                    filled.port_symbols, filled.due_masks, filled.due_symbols,
                    filled.oldest, filled.expired, filled.bind_from, filled.bind_places,
                    walk._window, walk.states, walk.registers, walk.due, walk.next_due,
                    walk.numbers, walk.started_count, walk.places, self._before,
                    noted[0], noted[1], noted[2], self._alarms,
                    out.at, out.actions, out.places, self._fired,
                )
            )  # fmt: skip
            if at < len(symbols):
                self._mend(int(symbols[at]), int(keys[at]), int(times[at]), int(limits[at]), due)

    def _mend(self, symbol: int, key: int, time: int, limit: int, due: int) -> None:
        """Make what the loop has stopped for."""
        walk, filled = self._walk, self._walk.filled
        if due:
            filled.add_due(int(due))
            return
        if self._alarms == self._noted.shape[1]:
            self._noted = np.concatenate([self._noted, np.empty_like(self._noted)], axis=1)
            return
        if self._fired == len(self._out.at):
            self._out.grow(self._fired)
            return
        state, next_due = int(walk.states[key]), int(walk.next_due[key])
        if next_due <= limit:
            time, symbol = next_due, self._alarm_symbol(key, state, next_due)
        if walk._is_too_old(key, state, time):
            filled.fill_expired(state)
        else:
            filled.fill(state, symbol)
            walk._widen()

    def _alarm_symbol(self, key: int, state: int, time: int) -> int:
        """The symbol of what is due first, as the loop finds it."""
        filled, due = self._walk.filled, self._walk.due[key]
        ports = len(filled.port_symbols)
        for port in range(ports):
            if due[port] == time:
                return int(filled.port_symbols[port])
        runs = int(filled.running[state])
        mask = sum(1 << n for n in range(ports, len(due)) if runs >> n & 1 and due[n] == time)
        return int(filled.due_symbols[np.flatnonzero(filled.due_masks == mask)[0]])

    def found(self) -> TimedFirings:
        before, keys, times = self._noted[:, : self._alarms]
        firings = self._out.firings(self._fired, self._walk.filled.actions)
        return TimedFirings(firings, before, keys, times, self._walk.numbers[keys])

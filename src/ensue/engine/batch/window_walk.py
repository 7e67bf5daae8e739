"""Takes events through the table of a machine with a window, many at once.

The window's `TableWalk`: in come symbols, keys and times, out go `Firings`. Besides its state and
its places a key has registers, which hold the times that its starts have (`ordered`). Where the
orders of starts become too many, `ColumnCorrelation` goes on with a `LinearWalk`, which takes the
starts from here; snapshots hold the starts too, so that they do not depend on the way taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch import table_kernels
from ensue.engine.batch.column import Rows
from ensue.engine.batch.walks import Firings, Patience, Room
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Numbers, taller
from ensue.engine.core.table import NOT_STARTED, FilledTable
from ensue.engine.core.window_table import (
    ALWAYS,
    ENDLESS_START,
    FIRST_REGISTER,
    FilledWindow,
    OrderedState,
)

Starts = npt.NDArray[np.int64]


class WindowWalk:
    """All keys of one correlation with a window, on one table."""

    def __init__(self, filled: FilledWindow, window: int | None = None) -> None:
        self.filled = filled
        self.machine = filled.machine_table.machine
        # Machines that differ in the length of their windows share a table.
        self._window = np.int64(self.machine.window or 0 if window is None else window)
        self.states = np.zeros(0, np.int32)
        self.registers = np.zeros((0, FIRST_REGISTER), np.int64)
        self.places = np.zeros((0, filled.places + 1), np.int64)

    def read(
        self,
        bits: Any,
        keys: Numbers,
        times: Any,
        key_count: int,
        before: int,
        patience: Patience | None = None,
    ) -> Firings:
        self.grow(key_count)
        filled = self.filled
        symbols = filled.number_symbols(bits)
        at = fired = 0
        out = Room(max(1024, len(keys) // 8), filled.places)
        while True:
            at, fired = table_kernels.walk_ordered(
                symbols, times, keys, at, filled.words, filled.oldest, filled.expired,
                filled.bind_from, filled.bind_places, self._window,
                self.states, self.registers, self.places, before,
                out.at, out.actions, out.places, fired,
            )  # fmt: skip
            if at == len(keys) or (patience and patience.is_over(filled, at)):
                return out.firings(fired, filled.actions, at)
            key = keys[at]
            state, symbol = int(self.states[key]), int(symbols[at])
            if self._is_too_old(key, state, times[at]):
                filled.fill_expired(state)
            elif filled.array[state, symbol, 0] < 0:
                filled.fill(state, symbol)
                self._widen()
            else:
                out.grow(fired)

    def _is_too_old(self, key: int, state: int, now: int) -> bool:
        return bool(self.registers[key, self.filled.oldest[state]] < now - self._window)

    def grow(self, key_count: int) -> None:
        if key_count > len(self.states):
            size = max(key_count, 2 * len(self.states))
            before = len(self.states)
            self.states = taller(self.states, size, NOT_STARTED)
            self.places = taller(self.places, size, 0)
            self.registers = taller(self.registers, size, 0)
            self.registers[before:, ENDLESS_START] = FAR

    def _widen(self) -> None:
        self.widen(FIRST_REGISTER + self.filled.registers)

    def widen(self, width: int) -> None:
        """Have at least so many registers a key, with those before the first."""
        missing = width - self.registers.shape[1]
        if missing > 0:
            more = np.zeros((len(self.registers), missing), np.int64)
            self.registers = np.concatenate([self.registers, more], axis=1)

    def renew(self, empty: FilledTable) -> None:
        """Go on with an empty table, from the states that keys are in."""
        assert isinstance(empty, FilledWindow)
        self.states = empty.renumbered(self.states, self.filled)
        self.filled = empty

    def drop_expired(self, now: int) -> None:
        """Drop what has left the window by now, for every key."""
        at, filled = 0, self.filled
        while at < len(self.states):
            at = table_kernels.drop_expired(
                now - self._window, at, filled.oldest, filled.expired, self.states, self.registers
            )
            if at < len(self.states):
                filled.fill_expired(int(self.states[at]))

    def is_busy(self) -> npt.NDArray[np.bool_]:
        """Which keys are in another state than at their start."""
        return ~self.filled.is_idle()[self.states]

    def bound(self) -> npt.NDArray[np.bool_]:
        """For each key and place, whether the reading in it still counts."""
        return self.filled.bound()[self.states]

    # --- starts, as snapshots and other walks have them -------------------------------------------

    def starts_of(self, chosen: Rows) -> Starts:
        """For each of the keys and each state of the machine its start."""
        homes = self.filled.homes()[self.states[chosen]]
        held = np.take_along_axis(self.registers[chosen], np.maximum(homes, 0), axis=1)
        return np.where(homes < 0, -FAR, held)

    def started_of(self, chosen: Rows) -> npt.NDArray[np.bool_]:
        return np.asarray(self.states[chosen] != NOT_STARTED)

    def take_starts(
        self, at: Numbers, starts: Starts, started: npt.NDArray[np.bool_], most_states: int
    ) -> bool:
        """Go on from starts. Returns whether their orders are few enough for a table."""
        ranks = _ranks(starts)
        patterns, which = np.unique(ranks, axis=0, return_inverse=True)
        if len(patterns) > most_states:
            return False
        numbers = []
        for pattern in patterns.tolist():
            held = {state: rank for state, rank in enumerate(pattern) if rank != _NOWHERE}
            order = tuple(range(1 + max(held.values(), default=-1)))
            numbers.append(self.filled.number(OrderedState.of(held, order)))
        self._widen()
        states = np.array(numbers, np.int32)[which.reshape(-1)]
        self.states[at] = np.where(started, states, NOT_STARTED)
        for state in range(ranks.shape[1]):
            here = ranks[:, state] >= 0
            columns = FIRST_REGISTER + ranks[here, state]
            self.registers[at[here], columns] = starts[here, state]
        return True


_NOWHERE = -3


def _ranks(starts: Starts) -> npt.NDArray[np.int64]:
    """Where each start stands among those of its key, from 0; equal ones stand together."""
    ranks = np.full(starts.shape, _NOWHERE, np.int64)
    ranks[starts == FAR] = ALWAYS
    moving = (starts != FAR) & (starts != -FAR)
    order = np.argsort(np.where(moving, starts, FAR), axis=1, kind="stable")
    ordered = np.take_along_axis(starts, order, axis=1)
    steps = np.zeros(starts.shape, np.int64)
    steps[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    dense = np.empty_like(steps)
    np.put_along_axis(dense, order, np.cumsum(steps, axis=1), axis=1)
    return np.where(moving, dense, ranks)

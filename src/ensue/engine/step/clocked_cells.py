"""The cells of rules with timers: of all keys in one array, and their alarms in a heap.

In comes how many timers, timer ports and registers a cell is to have room for; the compiled loops
of `clocked_kernels` read and write what is here, and say what a column means. Which key and which
rule has which cell is for `clocked_groups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import taller
from ensue.engine.step.clocked_kernels import ALARMS, DUE, RULE, USED, next_alarm, set_alarms

FEWEST_CELLS = 64


class ClockedCells:
    """`array` has the cells, and `status` how many are used; the first is nobody's."""

    def __init__(self) -> None:
        self.timers = self.timer_ports = 0
        self.array = np.zeros((FEWEST_CELLS, DUE), np.int64)
        self.heap = np.zeros((FEWEST_CELLS + 1, 3), np.int64)
        self.status = np.zeros(8, np.int64)
        self.status[USED] = 1

    @property
    def fired_at(self) -> int:
        """The column of the last firing of the first timer port."""
        return DUE + self.timers

    @property
    def registers_at(self) -> int:
        return DUE + self.timers + self.timer_ports

    def lay_out(self, timers: int, timer_ports: int, registers: int) -> None:
        """Have so many columns in a cell for due times, for firings of timer ports, and so on."""
        before, used = self.array, self.status[USED]
        had_fired, had_registers = self.fired_at, self.registers_at
        self.timers, self.timer_ports = timers, timer_ports
        has_fired, has_registers = self.fired_at, self.registers_at
        width = has_registers + max(registers, before.shape[1] - had_registers)
        if (width, has_fired, has_registers) == (before.shape[1], had_fired, had_registers):
            return
        self.array = np.zeros((len(before), width), np.int64)
        for had, has, end in (
            (0, 0, had_fired),
            (had_fired, has_fired, had_registers),
            (had_registers, has_registers, before.shape[1]),
        ):
            # Where rules with the most timers are gone, their columns are nobody's.
            count = min(end - had, width - has)
            self.array[:used, has : has + count] = before[:used, had : had + count]

    def new(self) -> int:
        """The number of a cell that nobody has had."""
        cell = int(self.status[USED])
        if cell == len(self.array):
            self.grow()
        self.status[USED] = cell + 1
        return cell

    def grow(self) -> None:
        size = 2 * len(self.array)
        self.array = taller(self.array, size, 0)
        self.heap = taller(self.heap, size + 1, 0)

    def forget(self, rules: Sequence[int]) -> Any:
        """Drop the cells of some rules; says where each cell is now, 0 for those that are gone."""
        used = self.status[USED]
        stays = ~np.isin(self.array[:used, RULE], rules)
        stays[0] = True
        kept = self.array[:used][stays]
        self.array[: len(kept)] = kept
        self.array[len(kept) : used] = 0
        self.status[USED] = len(kept)
        return np.where(stays, np.cumsum(stays) - 1, 0).astype(np.uint32)

    def renumber(self, more: int) -> None:
        """The numbers of rules are so much larger from now on."""
        self.array[1 : self.status[USED], RULE] += more

    def set_alarms(self, rules: Any) -> None:
        """Set all alarms anew: places of rules have changed, or cells."""
        set_alarms(self.array, rules, self.heap, self.status)

    @property
    def earliest(self) -> int:
        """A time before which no alarm is due."""
        return int(self.heap[1, 0]) if self.status[ALARMS] else FAR

    def next_due(self) -> int | None:
        due = int(next_alarm(self.array, self.heap, self.status))
        return None if due == FAR else due

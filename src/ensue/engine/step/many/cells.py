"""The cells of a group: of all rules and keys in one array, with their alarms in a heap.

In comes how many registers, places and timers a cell is to have room for; the compiled loops of
`kernels` read and write what is here, and take cells as rules leave their start and give them back
as rules return to it. Which rule has which cell under which key is for `group`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import taller
from ensue.engine.step.many.cell_step import DUE
from ensue.engine.step.many.kernels import (
    ALARMS,
    CONTROL_WORDS,
    FREE,
    HEAP_AT,
    OWNER_AT,
    PLACES,
    PLACES_AT,
    RULE_SHIFT,
    SIZE,
    TIMED_AT,
    USED,
    free_cells,
    free_expired,
    mark_bound,
    next_alarm,
    set_alarms,
)
from ensue.engine.step.many.packed_table import PackedTables

FEWEST_CELLS = 64


class Cells:
    """`arrays` is what loops take: the cells, the moves, the rules and the control words.

    `alarms` is the heap, the earliest alarm of all groups, the place of each rule in the library
    and how many instances each has had; None while no rule has timers. The cell 0 is nobody's.
    """

    def __init__(self, tables: PackedTables, earliest: array[int]) -> None:
        self.tables = tables
        self.control = np.zeros(CONTROL_WORDS, np.int64)
        self.control[USED] = 1
        self.arrays: tuple[Any, ...] = ()
        self.alarms: tuple[Any, ...] | None = None
        self.places_in_library = np.zeros(0, np.int64)
        self.started = np.zeros(0, np.int64)
        self._earliest = np.frombuffer(earliest, np.int64)
        self._heap = np.zeros((1, 3), np.int64)
        self._words = np.zeros(0, np.int64)
        self.lay_out()

    @property
    def words(self) -> Any:
        return self._words

    def set_rules(self, places: Sequence[int], started: Sequence[int]) -> None:
        """Where the rules stand in the library, and how many instances each has had."""
        self.places_in_library = np.array(places, np.int64)
        self.started = np.array(started, np.int64)
        self.lay_out()

    # --- the words of a cell ----------------------------------------------------------------------

    def lay_out(self) -> None:
        """Have room in every cell for as many registers, places and timers as any rule has."""
        control, tables = self.control, self.tables
        before = control[[SIZE, PLACES_AT, TIMED_AT, OWNER_AT]].tolist()
        places_at = 1 + max(tables.registers, before[1] - 1)
        timed_at = places_at + max(tables.places, before[2] - before[1])
        timers = max(tables.timers, before[3] - before[2] - DUE)
        owner_at = timed_at + (DUE + timers if timers > 0 else 0)
        size = owner_at + (2 if timers > 0 else 1)
        control[[SIZE, PLACES_AT, PLACES, TIMED_AT, OWNER_AT, HEAP_AT]] = (
            size, places_at, timed_at - places_at, timed_at, owner_at, owner_at + 1,
        )  # fmt: skip
        if size != before[0]:
            self._move_words(before, [size, places_at, timed_at, owner_at])
        if timers > 0 and len(self._heap) < self.room + 1:
            self._heap = taller(self._heap, self.room + 1, 0)
        self.refresh()
        if size != before[0]:
            self.set_alarms()

    def _move_words(self, before: list[int], after: list[int]) -> None:
        """Bring all cells from one layout (size, places, timers, owner) into another."""
        had = self._words.reshape(-1, max(1, before[0]))
        has = np.zeros((max(FEWEST_CELLS, len(had)), after[0]), np.int64)
        ends = [*before[1:], before[0]]
        for begin, end, to in zip([0, *before[1:]], ends, [0, *after[1:]], strict=True):
            has[: len(had), to : to + end - begin] = had[:, begin:end]
        self._words = has.reshape(-1)

    @property
    def room(self) -> int:
        """For how many cells there is room."""
        return len(self._words) // int(self.control[SIZE])

    def grow(self) -> None:
        self._words = taller(self._words, 2 * len(self._words), 0)
        if self.tables.timers:
            self._heap = taller(self._heap, self.room + 1, 0)
        self.refresh()

    def refresh(self) -> None:
        """Hand loops the arrays as they are now."""
        self.arrays = (self._words, self.tables.moves, self.tables.rules, self.control)
        if self.tables.timers:
            self.alarms = (self._heap, self._earliest, self.places_in_library, self.started)

    # --- cells that come and go -------------------------------------------------------------------

    def new(self, rule: int, key: int) -> tuple[int, Any]:
        """A cell for a rule under a key: its number, and its words."""
        control = self.control
        cell, size = int(control[FREE]), int(control[SIZE])
        if cell:
            control[FREE] = self._words[cell * size]
        else:
            cell = int(control[USED])
            if cell == self.room:
                self.grow()
            control[USED] = cell + 1
        words = self._words[cell * size : (cell + 1) * size]
        words[:] = 0
        words[control[OWNER_AT]] = rule << RULE_SHIFT | key
        return cell, words

    def of(self, cell: int) -> list[int]:
        """The words of a cell."""
        size = int(self.control[SIZE])
        found: list[int] = self._words[cell * size : (cell + 1) * size].tolist()
        return found

    def free_expired(self, now: int) -> list[tuple[int, int]]:
        """Free cells whose rules are at their start by now: of which rules, under which keys."""
        owners = np.zeros(self.room, np.int64)
        count = free_expired(self.arrays, now, owners)
        found = owners[:count]
        keys = found & ((1 << RULE_SHIFT) - 1)
        return list(zip((found >> RULE_SHIFT).tolist(), keys.tolist(), strict=True))

    def free(self, where: Any, rules: Sequence[int]) -> None:
        """Free the cells of some rules under a key."""
        free_cells(where, np.array(rules, np.int64), self.arrays)

    def renumber(self, numbers: Any) -> None:
        """Rules have other numbers from now on: by their old numbers."""
        control = self.control
        words = self._words.reshape(-1, int(control[SIZE]))
        owners = words[1 : int(control[USED]), int(control[OWNER_AT])]
        held = owners >= 0
        keys = owners[held] & ((1 << RULE_SHIFT) - 1)
        owners[held] = numbers[owners[held] >> RULE_SHIFT] << RULE_SHIFT | keys

    def bound(self, where: Any, numbers: Any) -> Any:
        """Which of the sorted numbers of events are bound in a cell of a key."""
        found = np.zeros(len(numbers), np.bool_)
        mark_bound(where, self.arrays, numbers, found)
        return found

    # --- alarms -----------------------------------------------------------------------------------

    def set_alarms(self) -> None:
        """Set all alarms anew: places of rules have changed, or cells."""
        if self.alarms is not None:
            set_alarms(self.arrays, self.alarms)

    @property
    def earliest(self) -> int:
        """A time before which no alarm is due."""
        return int(self._heap[1, 0]) if self.control[ALARMS] else FAR

    def next_due(self) -> int | None:
        if self.alarms is None:
            return None
        due = int(next_alarm(self.arrays, self.alarms))
        return None if due == FAR else due

"""The cells of one or more rules under all keys, in one array.

The cell of a rule under a key has, side by side: the state of its table; its slots, each with the
number of an event that was read (0 for none) or, for a timer port, with the time of a firing; where
the rule has timers, when the next is due, which event was read last and the due time of each timer;
and last the registers, each with the time of a start. The cells of a key follow each other in the
order of the rules. Keys are numbers here; new keys have cells of zeros, which stand for a key that
has read nothing.

`Cells` owns the array, and makes it larger when keys or registers are added. `RuleCells` is the
part of one rule: snapshots, and rules that leave a group, read and write it.
`FiringRoom` has the arrays for firings. The loops of `cell_drivers` move cells and write firings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ensue.engine.core.cell_drivers import drop_expired
from ensue.engine.core.cell_step import CellArrays, FiringArrays
from ensue.engine.core.jit import FAR
from ensue.engine.core.machine_tables import ORIGIN
from ensue.engine.core.numbering import Instants, Mask, Numbers, Rows, taller
from ensue.engine.core.packed import CELL, DUE, LAST_READ, NEXT_DUE, TIMED, WINDOW, PackedTables
from ensue.engine.core.rule_table import NOT_STARTED, NOWHERE, RuleTable
from ensue.machine.model import Machine

BEFORE_ALL = 2**61
"""Events that were read before a snapshot come before all that are read after it."""


class Cells:
    """The cells of the rules of packed tables, under all keys."""

    def __init__(self, tables: PackedTables) -> None:
        self.tables = tables
        self._key_count = 0
        self._widths = np.zeros(0, np.int64)
        self._flat = np.zeros(0, np.int64)
        self._stride = 0
        self._nearest = np.full(0, FAR, np.int64)
        self._earliest = np.full(1, FAR, np.int64)
        self.fit()

    @property
    def arrays(self) -> CellArrays:
        """The cells as the loops of `cell_drivers` take them."""
        return CellArrays(self._flat, self._stride, self._nearest, self._earliest)

    @property
    def key_room(self) -> int:
        """The number of keys that have cells."""
        return self._flat.size // self._stride

    @property
    def stride(self) -> int:
        """How many numbers the cells of one key have."""
        return self._stride

    @property
    def size(self) -> int:
        """How many numbers the cells of all keys have."""
        return self._flat.size

    def grow(self, key_count: int) -> None:
        """Make cells for a number of keys."""
        self._key_count = max(self._key_count, key_count)
        before = self.key_room
        if key_count > before:
            room = max(key_count, 2 * before)
            self._flat = taller(self._flat, room * self._stride)
            if self.tables.has_timers:
                self._nearest = taller(self._nearest, room, FAR)

    def fit(self) -> None:
        """Lay the cells out anew if a table has come to use more registers."""
        wanted = self.tables.cell_widths()
        if np.array_equal(wanted, self._widths):
            return
        before, offsets = self._widths, np.cumsum(wanted) - wanted
        stride = int(wanted.sum())
        if self._flat.size:
            room = self.key_room
            held = self._flat.reshape(room, self._stride)
            flat = np.zeros((room, stride), np.int64)
            old = np.cumsum(before) - before
            for rule in range(len(wanted)):
                width = min(before[rule], wanted[rule])
                to, of = int(offsets[rule]), int(old[rule])
                flat[:, to : to + width] = held[:, of : of + width]
            self._flat = flat.reshape(-1)
        self._widths, self._stride = wanted, stride
        self.tables.rules[:, CELL] = offsets

    def of(self, rule: int) -> RuleCells:
        return RuleCells(self, rule)

    def numbers_of(self, rule: int) -> npt.NDArray[np.int64]:
        """The cells of a rule: a row for each key."""
        begin = int(self.tables.rules[rule, CELL])
        cells = self._flat.reshape(self.key_room, self._stride)
        return cells[:, begin : begin + int(self._widths[rule])]

    # --- timers -----------------------------------------------------------------------------------

    @property
    def earliest(self) -> int:
        """A time before which no alarm of any key is due."""
        return int(self._earliest[0])

    def next_due(self) -> int | None:
        """When the first timer of any key and rule is due."""
        if not self._nearest.size:
            return None
        first = int(self._nearest.argmin())
        if self._first_due(slice(first, first + 1))[0] != self._nearest[first]:
            # A timer that was to be the first has been stopped since.
            self._nearest = self._first_due(slice(None))
        nearest = int(self._nearest.min())
        return None if nearest == FAR else nearest

    def _first_due(self, keys: slice) -> Instants:
        """When the first timer of each key is due."""
        due = np.full(len(self._nearest[keys]), FAR, np.int64)
        for rule in np.flatnonzero(self.tables.facts[:, TIMED]).tolist():
            due = np.minimum(due, self.of(rule).first_due(keys))
        return due

    def set_earlier(self, at: Numbers, due: Instants) -> None:
        """Keys have timers that are due at these times, or later."""
        self._nearest[at] = np.minimum(self._nearest[at], due)
        self._earliest[0] = min(self._earliest[0], int(self._nearest.min(initial=FAR)))


class RuleCells:
    """The cells of one rule, a row for each key."""

    def __init__(self, cells: Cells, rule: int) -> None:
        self._cells = cells
        self._rule = rule

    @property
    def _numbers(self) -> npt.NDArray[np.int64]:
        return self._cells.numbers_of(self._rule)

    @property
    def _shape(self) -> int:
        return int(self._cells.tables.shape_of[self._rule])

    @property
    def table(self) -> RuleTable:
        return self._cells.tables.table_of(self._rule)

    @property
    def machine(self) -> Machine:
        return self.table.machine

    @property
    def slot_of(self) -> Sequence[int]:
        return self.table.slot_of

    @property
    def states(self) -> npt.NDArray[np.int64]:
        return np.asarray(self._numbers[:, 0])

    @property
    def slots(self) -> npt.NDArray[np.int64]:
        return np.asarray(self._numbers[:, 1 : 1 + self.table.slots])

    @property
    def _registers(self) -> Instants:
        return np.asarray(self._numbers[:, self._cells.tables.fixed_width(self._shape) :])

    @property
    def _timed(self) -> npt.NDArray[np.int64]:
        first = int(self._cells.tables.facts[self._rule, TIMED])
        return np.asarray(self._numbers[:, first : first + DUE + len(self.table.timers)])

    def clear(self) -> None:
        """Put the cells of all keys back to their first state."""
        self._numbers[:] = 0

    def is_busy(self) -> Mask:
        """Which keys are in another state than at their start.

        With timers that run from the start on: which keys have started.
        """
        if self.table.counts_from_start:
            return np.asarray(self.states != NOT_STARTED)
        return np.asarray(~self.table.is_idle()[self.states])

    def bound(self) -> Mask:
        """For each key and slot, whether the event in the slot still counts."""
        return np.asarray(self.table.bound()[self.states])

    def drop_expired(self, now: int) -> None:
        """Drop the registers that have left the window by now, for every key."""
        if self.table.has_window:
            tables = self._cells.tables
            edge = now - int(tables.rules[self._rule, WINDOW])
            key_room = self._cells.key_room
            drop_expired(edge, self._rule, key_room, tables.arrays, self._cells.arrays)

    # --- starts, as snapshots have them -----------------------------------------------------------

    def starts_of(self, chosen: Rows) -> Instants:
        """For each of the keys and each state of the machine its start.

        `FAR` needs no event, or has no window to count in; -`FAR` is not active.
        """
        at = self.table.registers_of_starts()[self.states[chosen]]
        registers = self._registers[chosen]
        if registers.shape[1]:
            starts = np.take_along_axis(registers, np.maximum(at, 0), axis=1)
        else:
            starts = np.zeros(at.shape, np.int64)
        starts[at == NOWHERE] = -FAR
        starts[at == ORIGIN] = FAR
        return starts

    def started_of(self, chosen: Rows) -> Mask:
        return np.asarray(self.states[chosen] != NOT_STARTED)

    def take_states(self, at: Numbers, states: Rows) -> None:
        """Go on from numbers of states of the table."""
        self._fit()
        self.states[at] = states

    def take_starts(self, at: Numbers, starts: Instants, started: Mask, most_states: int) -> bool:
        """Go on from starts. Returns whether they take few enough states of a table."""
        table = self.table
        ranks = _ranks(starts) if table.has_window else np.where(starts == -FAR, NOWHERE, 0)
        patterns, which = np.unique(ranks, axis=0, return_inverse=True)
        if len(patterns) > most_states:
            return False
        numbers = []
        for pattern in patterns.tolist():
            held = {state: rank for state, rank in enumerate(pattern) if rank != NOWHERE}
            numbers.append(
                table.number_of_order(held)
                if table.has_window
                else table.number_of_set(frozenset(held))
            )
        self._fit()
        states = np.array(numbers, np.int64)[which.reshape(-1)]
        self.states[at] = np.where(started, states, NOT_STARTED)
        if table.has_window:
            registers = self._registers
            for state in range(ranks.shape[1]):
                here = ranks[:, state] >= 0
                registers[at[here], ranks[here, state]] = starts[here, state]
        return True

    def _fit(self) -> None:
        """Make room for states that the table has come to know."""
        self._cells.tables.fit(self._shape)
        self._cells.fit()

    # --- timers -----------------------------------------------------------------------------------

    def first_due(self, keys: slice) -> Instants:
        """When the first timer of each of the keys is due; `FAR` for keys that have not started."""
        return np.where(self.states[keys] != NOT_STARTED, self._timed[keys, NEXT_DUE], FAR)

    def due_of(self, chosen: Rows, timer: int) -> Instants:
        """When a timer of these keys is due; `FAR` where it does not run."""
        table = self.table
        running = np.array([table.running(state) for state in range(len(table.known))], np.int64)
        runs = running[self.states[chosen]] >> timer & 1
        return np.where(runs == 1, self._timed[chosen, DUE + timer], FAR)

    def ranks_of(self, chosen: Rows) -> Rows:
        """In which order these keys have read their last events."""
        last = self._timed[chosen, LAST_READ]
        ranks = np.empty(len(last), np.int64)
        ranks[np.argsort(last, kind="stable")] = np.arange(len(last))
        return ranks

    def take_due(self, at: Numbers, due: Instants, ranks: Rows) -> None:
        """Go on from due times, by key and timer, and from the order of the keys' last events."""
        timed = self._timed
        timed[at, DUE:] = due
        timed[at, NEXT_DUE] = due.min(axis=1, initial=FAR)
        timed[at, LAST_READ] = ranks - BEFORE_ALL
        self._cells.set_earlier(at, timed[at, NEXT_DUE])


def _ranks(starts: Instants) -> npt.NDArray[np.int64]:
    """The rank of each start among the starts of its key, from 0; equal starts have one rank."""
    ranks = np.full(starts.shape, NOWHERE, np.int64)
    ranks[starts == FAR] = ORIGIN
    moving = (starts != FAR) & (starts != -FAR)
    order = np.argsort(np.where(moving, starts, FAR), axis=1, kind="stable")
    ordered = np.take_along_axis(starts, order, axis=1)
    steps = np.zeros(starts.shape, np.int64)
    steps[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    dense = np.empty_like(steps)
    np.put_along_axis(dense, order, np.cumsum(steps, axis=1), axis=1)
    return np.where(moving, dense, ranks)


class FiringRoom:
    """Arrays that drivers write firings to; `timed` ones with the time, start and key of each."""

    def __init__(self, size: int, slots: int, timed: bool = False) -> None:
        self.arrays = FiringArrays(
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty((size, slots), np.int64),
            np.empty((size if timed else 0, 3), np.int64),
        )

    def grow(self) -> None:
        held = self.arrays
        size = 2 * len(held.rows) + 1024
        rows, rules, actions, slots = (taller(each, size) for each in held[:4])
        when = taller(held.when, size) if len(held.when) else held.when
        self.arrays = FiringArrays(rows, rules, actions, slots, when)

    def written(self, fired: int) -> FiringArrays:
        """The firings that are there, in the order in which they were written."""
        return FiringArrays(*(each[:fired] for each in self.arrays))

"""The cells of a group in one array, and the packed tables by which loops move them.

In come rules with their shapes. `StepTables` packs the table of each shape as `core.packed` has it,
numbers the actions of all shapes, and finds the states of a table for instances that come into
cells. `GroupCells` has the cells of all rules and keys, with their alarms in a heap: a cell is laid
out as in `core.cells`, and all are of one length, so that a cell which one rule gives back can be
had by another. The loops of `kernels` read and write both, take cells as rules leave their start
and give them back as rules return to it. Which rule has which cell under which key is for `group`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from ensue.engine.core.cell_limits import event_atoms
from ensue.engine.core.effects import Action
from ensue.engine.core.instances.rules import Rule
from ensue.engine.core.jit import FAR
from ensue.engine.core.machine_tables import ORIGIN
from ensue.engine.core.numbering import taller
from ensue.engine.core.packed import PackedTables
from ensue.engine.core.rule_table import EVENTS_A_MOVE, RuleTable
from ensue.engine.core.shapes import lengths_of
from ensue.engine.sizes import sizes
from ensue.engine.step.many.kernels import (
    ALARM_COUNT,
    CELL_SIZE,
    CELL_WORDS,
    CONTROL_WORDS,
    FIRST_FREE,
    FIRST_UNUSED,
    OWNER_AT,
    RULE_SHIFT,
    SLOT_COUNT,
    WORDS_BEFORE,
    free_cells,
    free_expired,
    mark_bound,
    next_alarm,
    set_alarms,
)
from ensue.lang.syntax import Correlation
from ensue.machine.determinise import TableState
from ensue.machine.stepping import NOW, Starts


class StepTables(PackedTables):
    """The packed tables of a group of the step engine.

    `examples` has a rule of each shape; `actions` has, by number, a shape and what is put out.

    Action 0 puts out nothing.
    """

    def __init__(self) -> None:
        self.examples: list[Correlation] = []
        self.actions: list[tuple[int, Action]] = [(-1, ())]
        self._numbers: list[dict[int, int]] = []
        super().__init__([], [], [], [], [])

    @property
    def slots(self) -> int:
        """As many slots as any rule has."""
        return max((table.slots for table in self.tables), default=0)

    @property
    def width(self) -> int:
        """How many words the largest cell has."""
        return max(self.shape_widths(), default=1)

    def add_shape(self, example: Rule) -> int:
        """The number of a new shape, that of this rule."""
        correlation, machine = example.correlation, example.machine
        assert machine is not None, "a rule in cells has a machine"
        atoms = event_atoms(correlation, machine)
        bits: dict[Any, int] = {atom: bit for bit, atom in enumerate(atoms)}
        table = RuleTable(correlation, machine, bits)
        if example.forgets_idle_keys:
            table.merge_start()
        self.examples.append(correlation)
        self._numbers.append({0: 0})
        return self.add(table, len(atoms))

    def take_rules(self, rules: Sequence[Rule], shape_of: Sequence[int]) -> None:
        """Go on with these rules, numbered in this order, each of which has a shape."""
        windows = [rule.machine.window if rule.machine else None for rule in rules]
        durations = [
            lengths_of(rule.correlation, self.examples[shape], self.tables[shape])
            for rule, shape in zip(rules, shape_of, strict=True)
        ]
        self.set_rules(shape_of, windows, durations)

    def _action(self, shape: int, action: int) -> int:
        numbers = self._numbers[shape]
        if action not in numbers:
            numbers[action] = len(self.actions)
            self.actions.append((shape, self.tables[shape].actions[action]))
        return numbers[action]

    def outgrows(self, shape: int, events: int) -> bool:
        """Whether the table of a shape keeps growing, after so many events."""
        table = self.tables[shape]
        allowed = max(sizes().free_moves_of_cells, events // EVENTS_A_MOVE)
        return table.moves_made > allowed or len(table.known) > sizes().table_states

    def start_move(self, shape: int, letter: int) -> tuple[int, int]:
        """Where a letter leads a rule that has read nothing, and the action of the table."""
        move = self.tables[shape].move(0, self._symbol(shape, letter))
        self.fit(shape)
        return move.following, move.action

    # --- states, as the machine has them ----------------------------------------------------------

    def number_of(self, shape: int, active: frozenset[int]) -> int:
        """The state of a table without a window in which these states of the machine are active."""
        number = self.tables[shape].number(TableState(active))
        self.fit(shape)
        return number

    def number_of_starts(self, shape: int, starts: Starts) -> tuple[int, list[int]]:
        """The state of a table with a window, and what its registers hold."""
        times = sorted({int(start) for start in starts.values() if start != NOW})
        register: dict[float, int] = {time: at for at, time in enumerate(times)}
        held = {state: register.get(start, ORIGIN) for state, start in starts.items()}
        number = self.tables[shape].number_of_order(held)
        self.fit(shape)
        return number, times

    def state_of(self, shape: int, number: int) -> TableState:
        table = self.tables[shape]
        return table.known[number] or table.transitions.first


FEWEST_CELLS = 64


class GroupCells:
    """The cells of a group that are in use. A rule at its start has none.

    `arrays` is what loops take: the cells, the tables as `core.packed` has them, the control.

    `alarms` is the heap, the earliest alarm of all groups, the place of each rule in the library,
    and what the tables say of timers; None while no rule has timers. Cell 0 belongs to no rule.
    """

    def __init__(self, tables: StepTables, earliest: array[int]) -> None:
        self.tables = tables
        self.control = np.zeros(CONTROL_WORDS, np.int64)
        self.control[FIRST_UNUSED] = 1
        self.arrays: tuple[Any, ...] = ()
        self.alarms: tuple[Any, ...] | None = None
        self._places = np.zeros(0, np.int64)
        self._earliest = np.frombuffer(earliest, np.int64)
        self._heap = np.zeros((1, 3), np.int64)
        self._words = np.zeros(0, np.int64)
        self.fit()

    def set_rules(self, places: Sequence[int]) -> None:
        """Where the rules stand in the library."""
        self._places = np.array(places, np.int64)
        self.fit()

    # --- room -------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Have room in every cell for as much as any rule needs."""
        control, before = self.control, int(self.control[CELL_SIZE])
        size = max(WORDS_BEFORE + self.tables.width, before)
        control[[CELL_SIZE, CELL_WORDS, SLOT_COUNT]] = size, size - WORDS_BEFORE, self.tables.slots
        if size != before:
            had = self._words.reshape(-1, max(1, before))
            has = np.zeros((max(FEWEST_CELLS, len(had)), size), np.int64)
            has[: len(had), :before] = had[:, :before]
            self._words = has.reshape(-1)
        self.refresh()
        if size != before:
            self.set_alarms()

    @property
    def room(self) -> int:
        """The number of cells that there is room for."""
        return len(self._words) // int(self.control[CELL_SIZE])

    def grow(self) -> None:
        self._words = taller(self._words, 2 * len(self._words), 0)
        self.refresh()

    def refresh(self) -> None:
        """Hand loops the arrays as they are now."""
        tables = self.tables.arrays
        self.arrays = (
            self._words,
            tables.moves,
            tables.halves,
            tables.rules,
            tables.more_from,
            tables.more_at,
            self.control,
        )
        if self.tables.has_timers or self.alarms is not None:
            if len(self._heap) < self.room + 1:
                self._heap = taller(self._heap, self.room + 1, 0)
            self.alarms = (self._heap, self._earliest, self._places, tables.facts, tables.after)

    # --- cells that come and go -------------------------------------------------------------------

    def new(self, rule: int, key: int) -> tuple[int, Any]:
        """A cell for a rule under a key: its number, and its words."""
        control = self.control
        number = int(control[FIRST_FREE])
        if number:
            control[FIRST_FREE] = self._of(number)[0]
        else:
            number = int(control[FIRST_UNUSED])
            if number == self.room:
                self.grow()
            control[FIRST_UNUSED] = number + 1
        words = self._of(number)
        words[:] = 0
        first = number * int(control[CELL_SIZE]) + WORDS_BEFORE
        self._words[first + OWNER_AT] = rule << RULE_SHIFT | key
        return number, words

    def _of(self, number: int) -> Any:
        size = int(self.control[CELL_SIZE])
        return self._words[number * size + WORDS_BEFORE : (number + 1) * size]

    def of(self, number: int) -> list[int]:
        """The words of a cell."""
        found: list[int] = self._of(number).tolist()
        return found

    def free_expired(self, now: int) -> list[tuple[int, int]]:
        """Free cells whose rules are at their start by now: of which rules, under which keys."""
        owners = np.zeros(self.room, np.int64)
        count = free_expired(self.arrays, now, owners, self.alarms)
        found = owners[:count]
        keys = found & ((1 << RULE_SHIFT) - 1)
        return list(zip((found >> RULE_SHIFT).tolist(), keys.tolist(), strict=True))

    def free(self, where: Any, rules: Sequence[int]) -> None:
        """Free the cells of some rules under a key."""
        free_cells(where, np.array(rules, np.int64), self._words, self.control, self.alarms)

    def renumber(self, numbers: Any) -> None:
        """Rules have other numbers from now on: by their old numbers."""
        words = self._words.reshape(-1, int(self.control[CELL_SIZE]))
        owners = words[1 : int(self.control[FIRST_UNUSED]), WORDS_BEFORE + OWNER_AT]
        held = owners >= 0
        keys = owners[held] & ((1 << RULE_SHIFT) - 1)
        owners[held] = numbers[owners[held] >> RULE_SHIFT] << RULE_SHIFT | keys

    def bound(self, where: Any, numbers: Any) -> Any:
        """Which of the sorted numbers of events are bound in a cell of a key."""
        found = np.zeros(len(numbers), np.bool_)
        mark_bound(where, self._words, self.control, numbers, found)
        return found

    # --- alarms -----------------------------------------------------------------------------------

    def set_alarms(self) -> None:
        """Set all alarms anew: places of rules have changed, or cells."""
        if self.alarms is not None:
            set_alarms(self._words, self.control, self.alarms)

    @property
    def earliest(self) -> int:
        """A time before which no alarm is due."""
        return int(self._heap[1, 0]) if self.control[ALARM_COUNT] else FAR

    def next_due(self) -> int | None:
        if self.alarms is None:
            return None
        due = int(next_alarm(self._words, self.control, self.alarms))
        return None if due == FAR else due

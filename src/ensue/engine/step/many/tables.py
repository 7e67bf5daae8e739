"""The packed tables of a group: shapes are added and rules change, and actions are numbered.

In come rules with their shapes; out go the arrays that loops read, as `core.packed` has them, the
actions of all shapes by one numbering, and states of tables for instances that come into cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ensue.engine.core.effects import Action
from ensue.engine.core.instances.rules import Rule
from ensue.engine.core.packed import PackedTables
from ensue.engine.core.rule_table import TABLE_STATES, RuleTable
from ensue.engine.core.shapes import lengths_of
from ensue.engine.core.window_table import ALWAYS
from ensue.engine.step.many.shapes import event_atoms
from ensue.lang.syntax import Correlation
from ensue.machine.determinise import TableState
from ensue.machine.stepping import NOW, Starts

FREE_MOVES, EVENTS_A_MOVE = 8192, 64
"""How many moves a table may have, and for how many events one more; past that it is left."""


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
        """The number of a shape that is new, of which this is a rule."""
        correlation, machine = example.correlation, example.machine
        assert machine is not None, "a rule in cells has a machine"
        atoms = event_atoms(correlation, machine)
        bits: dict[Any, int] = {atom: bit for bit, atom in enumerate(atoms)}
        table = RuleTable(correlation, machine, bits)
        if example.forgets_idle_keys:
            table.forget_start()
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
        allowed = max(FREE_MOVES, events // EVENTS_A_MOVE)
        return table.moves_made > allowed or len(table.known) > TABLE_STATES

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
        held = {state: register.get(start, ALWAYS) for state, start in starts.items()}
        number = self.tables[shape].number_of_order(held)
        self.fit(shape)
        return number, times

    def state_of(self, shape: int, number: int) -> TableState:
        table = self.tables[shape]
        return table.known[number] or table.transitions.first

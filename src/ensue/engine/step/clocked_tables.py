"""The tables of rules with timers, in one array, as the loops that visit their cells read it.

`cell_tables` with what timers add: the head of a state says which of them run in it, and a move
which are set anew, as bits. After the letters of events come those of alarms: one for each timer
port, then one for each set of timeouts that are due together. How long a timer runs is said for
each rule, for a table does not depend on it. The state 0 is that of a rule that has not started: it
starts with the first event that it reads, whatever that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ensue.engine.core.table import FilledTable
from ensue.engine.core.timer_table import FilledTimed, Timers
from ensue.engine.core.window_table import ENDLESS
from ensue.engine.step.cell_tables import CellShape, CellTables
from ensue.engine.step.clocked_kernels import AFTER, ALARM, BASE, HEAD
from ensue.engine.step.port_tables import lengths_of
from ensue.engine.step.rules import Rule
from ensue.lang.syntax import Correlation, EventPort


class ClockedTables(CellTables):
    """`rules` has for each rule what `clocked_kernels` says."""

    head = HEAD

    @property
    def registers(self) -> int:
        return max(each.registers for each in self.shapes)

    @property
    def timers(self) -> int:
        """As many as any rule has."""
        return max(len(timers_of(each)) for each in self.shapes)

    @property
    def timer_ports(self) -> int:
        return max(len(timers_of(each).ports) for each in self.shapes)

    def set_clocked_rules(
        self,
        kinds: Mapping[int, int],
        rules: Mapping[int, Rule],
        started: Mapping[int, int],
    ) -> None:
        """Which rules there are, by their numbers, and how many instances each has had."""
        size = 1 + max(kinds, default=0)
        self.rules = np.zeros((size, AFTER + self.timers), np.int64)
        self.kinds = np.full(size, -1, np.int64)
        for number, kind in kinds.items():
            shape, rule = self.shapes[kind], rules[number]
            timers = timers_of(shape)
            window = rule.steps.window if rule.steps else ENDLESS
            self.kinds[number] = kind
            self.rules[number, BASE:ALARM] = (
                shape.base,
                shape.width,
                window,
                rule.place,
                started[number],
            )
            letters = 1 << _events_of(shape.correlation)
            self.rules[number, ALARM:AFTER] = letters, len(timers.ports), len(timers)
            lengths = lengths_of(rule.correlation, shape.correlation, shape.filled)
            self.rules[number, AFTER : AFTER + len(lengths)] = lengths

    def _begin(self, filled: FilledTable) -> None:
        """A rule that stands as at its start counts the time from there all the same."""

    def _letters_of(self, correlation: Correlation, filled: FilledTable) -> int:
        assert isinstance(filled, FilledTimed), "a rule in here has timers"
        return (1 << _events_of(correlation)) + filled.timers.alarms

    def _symbol(self, shape: CellShape, letter: int) -> int:
        table, alarm = shape.filled, letter - (1 << _events_of(shape.correlation))
        assert isinstance(table, FilledTimed), "a rule in here has timers"
        if alarm < 0:
            return super()._symbol(shape, letter)
        return table.symbol_of_alarm(alarm)

    def _set_anew(self, table: FilledTable, rest: Sequence[int]) -> int:
        assert isinstance(table, FilledTimed), "a rule in here has timers"
        return int(table.anew[rest[-1]])

    def _head(self, table: FilledTable, state: int) -> tuple[int, ...]:
        return (*super()._head(table, state), running_in(table, state))


def timers_of(shape: CellShape) -> Timers:
    assert isinstance(shape.filled, FilledTimed), "a rule in here has timers"
    return shape.filled.timers


def running_in(table: FilledTable, state: int) -> int:
    """The timers that run in a state, as bits."""
    assert isinstance(table, FilledTimed), "a rule in here has timers"
    return int(table.running[state])


def _events_of(correlation: Correlation) -> int:
    return sum(isinstance(port, EventPort) for port in correlation.ports)

"""The tables of rules with timers in one array, as a loop that visits them reads it.

`visit_tables` with what timers need: the head of a state says which of them run in it, and a move
which are set anew, as bits. After the letters of events come those of alarms: one for each timer
port, then one for each set of timeouts that are due together. How long a timer runs is said for
each rule, for a table does not depend on it: rules that differ in that share one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensue.engine.batch.visit_tables import VisitTables
from ensue.engine.core.table import FilledTable
from ensue.engine.core.timer_table import FilledTimed
from ensue.engine.core.window_table import ENDLESS, FilledWindow
from ensue.lang.syntax import Correlation, EventPort

MOST_TIMER_PORTS = 4
MOST_TIMEOUTS = 4
"""Each set of them has a letter, and a cell a number for each of them."""


class AlarmTables(VisitTables):
    """`durations` has for each rule how long its timers run, in the order of `Timers`."""

    def __init__(
        self,
        alike: Sequence[Correlation],
        filled: Sequence[FilledTable],
        shape_of: Sequence[int],
        windows: Sequence[int | None],
        durations: Sequence[Sequence[int]],
    ) -> None:
        self._timed = [each for each in filled if isinstance(each, FilledTimed)]
        super().__init__(alike, filled, shape_of, [each or ENDLESS for each in windows])
        self.longest = max(each or 0 for each in windows) if all(windows) else None
        self.timers = np.zeros((len(shape_of), 3), np.int64)
        """Of each rule the letter of its first alarm, how many timer ports and timers it has."""
        self.after = np.zeros((len(shape_of), max(len(each) for each in durations)), np.int64)
        for rule, (shape, lengths) in enumerate(zip(shape_of, durations, strict=True)):
            ports = len(self._timed[shape].timers.ports)
            self.timers[rule] = (self._event_letters(shape), ports, len(lengths))
            self.after[rule, : len(lengths)] = lengths

    @property
    def registers(self) -> int:
        return max(each.registers for each in self.filled if isinstance(each, FilledWindow))

    def _event_letters(self, shape: int) -> int:
        return 1 << sum(isinstance(port, EventPort) for port in self._alike[shape].ports)

    def _letters_of(self, shape: int) -> int:
        return self._event_letters(shape) + self._timed[shape].timers.alarms

    def _symbol(self, shape: int, letter: int) -> int:
        alarm = letter - self._event_letters(shape)
        if alarm < 0:
            return super()._symbol(shape, letter)
        return self._timed[shape].symbol_of_alarm(alarm)

    def _set_anew(self, shape: int, rest: Sequence[int]) -> int:
        return int(self._timed[shape].anew[rest[-1]])

    def _running(self, shape: int, state: int) -> int:
        return int(self._timed[shape].running[state])

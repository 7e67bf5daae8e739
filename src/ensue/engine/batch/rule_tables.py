"""The tables of many rules in one array, as a loop that runs all of them at once reads it.

In come rules, each with a table of its own that is filled as events ask for entries; out go moves:
of a rule, in a state, by a letter (which of its ports an event matches), the next state and what is
put out, numbered over all rules (`rule_actions`). Nothing is said of what is bound, since a port
that is bound is bound to the last event that it wants (`joint`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensue.engine.batch.rule_actions import RuleActions
from ensue.engine.core.numbering import taller
from ensue.engine.core.table import NOT_STARTED, FilledTable
from ensue.lang.syntax import Correlation

LETTERS = 256


class RuleTables:
    """`initial` has the state of each rule under a key that has read nothing."""

    def __init__(
        self, correlations: Sequence[Correlation], filled: Sequence[FilledTable], starts: Any
    ) -> None:
        count = len(filled)
        self.filled = list(filled)
        self.put_out = RuleActions(correlations)
        self.symbol_of = np.full((count, LETTERS), -1, np.int32)
        self.bases = np.zeros(count, np.int64)
        self.widths = np.zeros(count, np.int64)
        self.moves = np.full(1 << 12, -1, np.int32)
        # Without statements before the first case, a key that has not started is at its start.
        self.initial = np.array(
            [
                NOT_STARTED if has_start else table.number(table.machine_table.first)
                for table, has_start in zip(filled, starts, strict=True)
            ],
            np.int32,
        )
        self._shapes = [(0, 0)] * count
        self._used = 0

    def fill(self, rule: int, state: int, letter: int) -> None:
        """Work out a move that was asked for."""
        table = self.filled[rule]
        symbol = int(self.symbol_of[rule, letter])
        if symbol < 0:
            symbol = int(table.number_symbols(np.array([letter], np.uint8))[0])
            self.symbol_of[rule, letter] = symbol
        following, action, *_ = table.fill(state, symbol)
        shape = table.array.shape[:2]
        if shape != self._shapes[rule]:
            self._make_room(rule, *shape)
        place = int(self.bases[rule]) + (state * shape[1] + symbol) * 2
        self.moves[place] = following
        self.moves[place + 1] = self.put_out.number(rule, table.actions[action])

    def _make_room(self, rule: int, height: int, width: int) -> None:
        """Have a place for every state and symbol of a rule: its part moves to the end."""
        size = height * width * 2
        if self._used + size > len(self.moves):
            self.moves = taller(self.moves, 2 * (self._used + size), -1)
        old_height, old_width = self._shapes[rule]
        begin = int(self.bases[rule])
        old = self.moves[begin : begin + old_height * old_width * 2]
        new = self.moves[self._used : self._used + size].reshape(height, width, 2)
        new[:old_height, :old_width] = old.reshape(old_height, old_width, 2)
        self.bases[rule], self.widths[rule] = self._used, width
        self._shapes[rule] = (height, width)
        self._used += size

    def stop(self, rule: int) -> None:
        """Let a rule stand still from now on, in one state that every letter leads back to."""
        self.symbol_of[rule] = 0
        self.bases[rule], self.widths[rule] = self._used, 1
        if self._used + 2 > len(self.moves):
            self.moves = taller(self.moves, 2 * (self._used + 2), -1)
        self.moves[self._used : self._used + 2] = 0
        self._used += 2
        self.initial[rule] = 0

"""The tables of rules with windows in one array, as a loop that visits them reads it.

In come rules by their *shapes*: rules that differ in their names, in what their ports ask for and
in the length of their windows have one table, which is filled as events ask for entries. What a
table says does not depend on the window, for it only knows how starts are ordered (`ordered`). Out
go rows: of a shape and a state, which registers are oldest, what is left without them, and for each
letter (which of its ports an event matches) a move. Rules without a window have no registers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensue.engine.batch.rule_actions import RuleActions
from ensue.engine.core.numbering import taller
from ensue.engine.core.table import FilledTable
from ensue.engine.core.window_table import (
    ENDLESS_START,
    FIRST_REGISTER,
    FilledWindow,
    OrderedState,
)
from ensue.lang.syntax import Correlation

_HEAD, _MOVE = 8, 4
_OFFSET = FIRST_REGISTER - 1
"""In a cell the registers come after the state; in a table after two that are nobody's here."""
_BASE, _WIDTH, _WINDOW = 0, 1, 2
_LETTERS = 256


class VisitTables:
    """`shape_of` says for each rule which shape it is of; `alike` has a rule of each shape."""

    def __init__(
        self,
        alike: Sequence[Correlation],
        filled: Sequence[FilledTable],
        shape_of: Sequence[int],
        windows: Sequence[int | None],
    ) -> None:
        self.filled = list(filled)
        self.put_out = RuleActions(alike)
        self._alike = alike
        self.shape_of = np.array(shape_of, np.int64)
        self.longest = max(each or 0 for each in windows) if all(windows) else None
        """The longest window; None if there are rules without."""
        self.rules = np.zeros((len(shape_of), 4), np.int64)
        """Of each rule where its rows begin, their width, and its window."""
        self.rules[:, _WINDOW] = [each or 0 for each in windows]
        self.moves = np.zeros(1 << 12, np.int32)
        self._widths = [_HEAD + _MOVE * self._letters_of(each) for each in range(len(alike))]
        self._symbols: list[dict[int, int]] = [{} for _ in alike]
        self._action_numbers: list[dict[int, int]] = [{} for _ in alike]
        self._windows = [each for each in filled if isinstance(each, FilledWindow)]
        self._base_of = [0] * len(alike)
        self._room = [0] * len(alike)
        self._known = [0] * len(alike)
        self._used = 0
        for shape in range(len(alike)):
            self.fit(shape)

    @property
    def registers(self) -> int:
        """How many registers a rule has, at most; room for two costs less than moving all cells."""
        return max([2, *(each.registers for each in self._windows)])

    @property
    def entries_made(self) -> int:
        return sum(each.entries_made for each in self.filled)

    def table_of(self, rule: int) -> FilledTable:
        return self.filled[int(self.shape_of[rule])]

    def window_of(self, rule: int) -> int:
        return int(self.rules[rule, _WINDOW])

    def fill(self, rule: int, state: int, letter: int) -> None:
        """Work out a move that was asked for."""
        shape = int(self.shape_of[rule])
        table, symbols = self.filled[shape], self._symbols[shape]
        if letter not in symbols:
            symbols[letter] = self._symbol(shape, letter)
        following, action, _, _, *register = table.fill(state, symbols[letter])
        self.fit(shape)
        place = self._base_of[shape] + state * self._widths[shape] + _HEAD + _MOVE * letter
        numbers = self._action_numbers[shape]
        if action not in numbers:
            numbers[action] = self.put_out.number(shape, table.actions[action])
        number = numbers[action]
        written = register[0] - _OFFSET if register else 0
        anew = self._set_anew(shape, register)
        self.moves[place : place + _MOVE] = (following, number, written, anew)

    def _letters_of(self, shape: int) -> int:
        """How many letters the rules of a shape may read: any of their ports may match."""
        return 1 << len(self._alike[shape].ports)

    def _symbol(self, shape: int, letter: int) -> int:
        """What a letter is to the table of a shape."""
        return int(self.filled[shape].number_symbols(np.array([letter], np.uint8))[0])

    def _set_anew(self, shape: int, rest: Sequence[int]) -> int:  # noqa: ARG002
        """The last number of a move, from what is left of an entry: nothing without timers."""
        return 0

    def _running(self, shape: int, state: int) -> int:  # noqa: ARG002
        """The last number in the head of a state: nothing without timers."""
        return 0

    def fit(self, shape: int) -> None:
        """Have a row for every state that the table of a shape knows by now."""
        table, width = self.filled[shape], self._widths[shape]
        before = state = self._known[shape]
        while state < len(table.known):
            if isinstance(table, FilledWindow) and table.oldest[state] != ENDLESS_START:
                # What is left without its oldest register may be a state that nobody knew.
                table.fill_expired(state)
            state += 1
        if state > self._room[shape]:
            self._make_room(shape, max(state, 2 * self._room[shape]))
        for each in range(before, state):
            place = self._base_of[shape] + each * width
            self.moves[place : place + _HEAD] = (*_head(table, each), self._running(shape, each))
        self._known[shape] = state

    def _make_room(self, shape: int, states: int) -> None:
        """Have room for so many states of a shape: its part moves to the end."""
        width = self._widths[shape]
        base = self._take(states * width, -1)
        begin, used = self._base_of[shape], self._known[shape] * width
        self.moves[base : base + used] = self.moves[begin : begin + used]
        self.rules[self.shape_of == shape, _BASE] = base
        self.rules[self.shape_of == shape, _WIDTH] = width
        self._base_of[shape], self._room[shape] = base, states

    def _take(self, size: int, fill: int) -> int:
        """Where there are so many numbers that nobody uses."""
        begin = self._used
        self._used += size
        if self._used > len(self.moves):
            self.moves = taller(self.moves, 2 * self._used, 0)
        self.moves[begin : self._used] = fill
        return begin

    def stop(self, rule: int) -> None:
        """Let a rule stand still from now on, in one state that every letter leads back to."""
        self.shape_of[rule] = -1
        self.rules[rule, _BASE] = self._take(_HEAD + _MOVE * _LETTERS, 0)
        self.rules[rule, _WIDTH] = 0


def _head(table: FilledTable, state: int) -> tuple[int, ...]:
    """The two oldest registers of a state; what it is with both, without one, the other, both.

    The second is not older than the first. Where one is lacking, it does not count what is looked
    at instead.
    """
    held = table.known[state]
    order = held.order if isinstance(held, OrderedState) else ()
    if not order or not isinstance(table, FilledWindow):
        return 0, 0, state, state, state, state, 0
    without = int(table.expired[state])
    if len(order) == 1:
        return 1 + order[0], 0, state, without, state, without, 0
    both = int(table.expired[without])
    return 1 + order[0], 1 + order[1], state, without, state, both, int(len(order) > 2)

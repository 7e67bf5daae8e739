"""The tables of one or more rules in one array of words, as kernels read it.

In come rules, each of a *shape*; rules of one shape share a table (`rule_table`), whose entries are
worked out when a kernel asks for them. Out goes, for each shape and state, a row:

- the head: the two oldest registers of the state (0 for none), the state with both, without the
  first, without the second, without both, whether there are more registers, which timers run;
- for each letter a move: the next state and the action, the place that is bound and a set of more
  places, the register that takes the present time and the timers that are set anew.

Two numbers of 32 bits are one word. A register or a place is given by its offset in a cell
(`cells`); offset 0 is the state itself, which a kernel writes last, so that a move which binds
nothing needs no branch. A *letter* is what an event is to a rule: the bits of the ports that it
matches or, in the table of a single rule, a symbol. Letters from `ALARMS` on stand for alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.core.machine_tables import ENDLESS_WINDOW
from ensue.engine.core.numbering import taller
from ensue.engine.core.rule_table import RuleTable

HEAD, MOVE = 4, 3
"""Words of the head of a row, and of a move."""
BASE, WIDTH, WINDOW, CELL = range(4)
"""What every visit asks of a rule: where its rows begin, their width in words, its window, and
where its cell begins among the cells of a key."""
SLOTS, TIMED, ALARMS, PORTS, TIMERS = range(5)
"""What firings and alarms ask of a rule: how many slots it has, where its timers are in its cell (0
for none), the letter of its first alarm, its timer ports, its timers."""
NEXT_DUE, LAST_READ, DUE = 0, 1, 2
"""In the timed part of a cell: when the next timer is due, the last event that was read, then the
due time of each timer."""
_UNKNOWN = np.int32(-1)


class TableArrays(NamedTuple):
    """What kernels read of the tables; `halves` are the moves, half a word each."""

    moves: npt.NDArray[np.uint64]
    halves: npt.NDArray[np.int32]
    rules: npt.NDArray[np.int64]
    facts: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    more_from: npt.NDArray[np.int32]
    more_at: npt.NDArray[np.int32]


class PackedTables:
    """The packed tables of some rules; `shape_of` says which of the tables each rule has.

    With `event_ports`, which has their number for each shape, a letter has a bit for each event
    port of the rule; without, there is one rule and letters are symbols of its table.
    """

    def __init__(
        self,
        tables: Sequence[RuleTable],
        shape_of: Sequence[int],
        windows: Sequence[int | None],
        durations: Sequence[Sequence[int]],
        event_ports: Sequence[int] | None = None,
    ) -> None:
        self.tables: list[RuleTable] = []
        self.shape_of = np.zeros(0, np.int64)
        self.longest: int | None = None
        """The longest window; None if there are rules without."""
        self.rules = np.zeros((0, 4), np.int64)
        self.facts = np.zeros((0, 5), np.int64)
        self.after = np.zeros((0, 1), np.int64)
        self.moves = np.zeros(1 << 10, np.int32)
        self.more_from = np.zeros(2, np.int32)
        self.more_at = np.zeros(0, np.int32)
        self._hand_out()
        self._event_ports: list[int] | None = None if event_ports is None else []
        self._more_of: dict[tuple[int, ...], int] = {(): 0}
        self._symbol_of: list[dict[int, int]] = []
        self._letters: list[int] = []
        self._base: list[int] = []
        self._room: list[int] = []
        self._written: list[int] = []
        self._used = 0
        for shape, table in enumerate(tables):
            self.add(table, 0 if event_ports is None else event_ports[shape])
        self.set_rules(shape_of, windows, durations)

    def add(self, table: RuleTable, event_ports: int) -> int:
        """Add the table of a new shape, whose letters have so many bits; returns its number."""
        shape = len(self.tables)
        self.tables.append(table)
        if self._event_ports is not None:
            self._event_ports.append(event_ports)
        self._symbol_of.append({})
        self._letters.append(self._letters_of(shape))
        self._base.append(0)
        self._room.append(0)
        self._written.append(0)
        self.fit(shape)
        return shape

    def set_rules(
        self,
        shape_of: Sequence[int],
        windows: Sequence[int | None],
        durations: Sequence[Sequence[int]],
    ) -> None:
        """Read the tables for these rules from now on, numbered in this order."""
        self.shape_of = np.array(shape_of, np.int64)
        self.longest = max((each or 0 for each in windows), default=0) if all(windows) else None
        self.rules = np.zeros((len(shape_of), 4), np.int64)
        self.facts = np.zeros((len(shape_of), 5), np.int64)
        self.rules[:, WINDOW] = [ENDLESS_WINDOW if each is None else each for each in windows]
        self.after = np.zeros((len(shape_of), max([1, *map(len, durations)])), np.int64)
        for rule, lengths in enumerate(durations):
            self.after[rule, : len(lengths)] = lengths
        for shape, table in enumerate(self.tables):
            here = self.shape_of == shape
            self.rules[here, BASE] = self._base[shape] // 2
            self.rules[here, WIDTH] = self._width(shape)
            self.facts[here, SLOTS] = table.slots
            self.facts[here, TIMED] = 1 + table.slots if len(table.timers) else 0
            if self._event_ports is not None:
                self.facts[here, ALARMS] = 1 << self._event_ports[shape]
            self.facts[here, PORTS] = len(table.timers.ports)
            self.facts[here, TIMERS] = len(table.timers)
        self._hand_out()

    def _hand_out(self) -> None:
        """Hand kernels the arrays as they are now; called wherever one of them is replaced."""
        self.arrays = TableArrays(
            self.moves.view(np.uint64),
            self.moves,
            self.rules,
            self.facts,
            self.after,
            self.more_from,
            self.more_at,
        )

    @property
    def moves_made(self) -> int:
        return sum(each.moves_made for each in self.tables)

    @property
    def has_timers(self) -> bool:
        return bool(self.facts[:, TIMERS].any())

    def table_of(self, rule: int) -> RuleTable:
        return self.tables[int(self.shape_of[rule])]

    def fixed_width(self, shape: int) -> int:
        """How many numbers a cell has before its registers: state, places, timers."""
        table = self.tables[shape]
        return 1 + table.slots + (DUE + len(table.timers) if len(table.timers) else 0)

    def shape_widths(self) -> list[int]:
        """How many numbers the cell of a rule of each shape has at least."""
        return [
            # Room for two registers costs less than laying all cells out anew.
            self.fixed_width(shape) + (max(2, table.registers) if table.has_window else 0)
            for shape, table in enumerate(self.tables)
        ]

    def cell_widths(self) -> npt.NDArray[np.int64]:
        """How many numbers the cell of each rule has at least."""
        # A rule that has been stopped keeps no more than its state.
        return np.array([*self.shape_widths(), 1], np.int64)[self.shape_of]

    def _letters_of(self, shape: int) -> int:
        table = self.tables[shape]
        if self._event_ports is None:
            return max(8, 2 * len(table.symbols.atoms))
        return (1 << self._event_ports[shape]) + len(table.alarm_symbols)

    # --- filling ----------------------------------------------------------------------------------

    def fill(self, rule: int, state: int, letter: int) -> None:
        """Work out a move that a kernel asked for."""
        shape = int(self.shape_of[rule])
        table = self.tables[shape]
        move = table.move(state, self._symbol(shape, letter))
        self.fit(shape)
        at = self._base[shape] + 2 * (state * self._width(shape) + HEAD + MOVE * letter)
        one, *more = move.binds or (-1,)
        register = 0 if move.register < 0 else self.fixed_width(shape) + move.register
        self.moves[at : at + 2 * MOVE] = (
            move.following,
            self._action(shape, move.action),
            1 + one,
            self._more_places(tuple(1 + place for place in more)),
            register,
            move.timers,
        )

    def _action(self, shape: int, action: int) -> int:  # noqa: ARG002
        """The number by which kernels know an action."""
        return action

    def _symbol(self, shape: int, letter: int) -> int:
        """What a letter is to the table of a shape."""
        if self._event_ports is None:
            return letter
        table, known = self.tables[shape], self._symbol_of[shape]
        if letter not in known:
            alarm = letter - (1 << self._event_ports[shape])
            known[letter] = (
                table.alarm_symbols[alarm] if alarm >= 0 else table.symbols.number(letter)
            )
        return known[letter]

    def _more_places(self, places: tuple[int, ...]) -> int:
        number = self._more_of.get(places)
        if number is None:
            number = self._more_of[places] = len(self._more_of)
            self.more_at = np.append(self.more_at, np.array(places, np.int32))
            self.more_from = np.append(self.more_from, np.int32(len(self.more_at)))
            self._hand_out()
        return number

    def fit_letters(self) -> None:
        """Widen the rows to one letter for each symbol of the only rule."""
        (table,) = self.tables
        if len(table.symbols.atoms) > self._letters[0]:
            self._letters[0] = 2 * len(table.symbols.atoms)
            self._forget(0)

    def _forget(self, shape: int) -> None:
        """Lay the rows of a shape out anew; its moves are worked out when they are asked for."""
        self._room[shape] = self._written[shape] = 0
        self.fit(shape)

    def fit(self, shape: int) -> None:
        """Add rows for all states that the table of a shape knows by now."""
        table, width = self.tables[shape], self._width(shape)
        before = state = self._written[shape]
        heads = []
        while state < len(table.known):
            # What is left without the oldest registers may be a state that is new.
            heads.append(self._head(shape, state))
            state += 1
        if state > self._room[shape]:
            self._make_room(shape, max(state, 2 * self._room[shape], 4))
        for each, head in enumerate(heads, before):
            at = self._base[shape] + 2 * each * width
            self.moves[at : at + 2 * HEAD] = head
        self._written[shape] = state

    def _head(self, shape: int, state: int) -> tuple[int, ...]:
        table, first = self.tables[shape], self.fixed_width(shape)
        running = table.running(state)
        order = table.order_of(state)
        if not order:
            return 0, 0, state, state, state, state, 0, running
        without = table.expired(state)
        if len(order) == 1:
            return first + order[0], 0, state, without, state, without, 0, running
        both, more = table.expired(without), int(len(order) > 2)
        # The second register is never older than the first.
        return first + order[0], first + order[1], state, without, state, both, more, running

    def _width(self, shape: int) -> int:
        return HEAD + MOVE * self._letters[shape]

    def _make_room(self, shape: int, states: int) -> None:
        """Have room for so many states of a shape: its rows move to the end of the array."""
        size = 2 * self._width(shape)
        base = self._take(states * size, _UNKNOWN)
        begin, used = self._base[shape], self._written[shape] * size
        self.moves[base : base + used] = self.moves[begin : begin + used]
        here = self.shape_of == shape
        self.rules[here, BASE] = base // 2
        self.rules[here, WIDTH] = size // 2
        self._base[shape], self._room[shape] = base, states

    def _take(self, size: int, fill: Any) -> int:
        begin = self._used
        self._used += size
        if self._used > len(self.moves):
            self.moves = taller(self.moves, 2 * self._used)
            self._hand_out()
        self.moves[begin : self._used] = fill
        return begin

    def stop(self, rule: int) -> None:
        """Leave a rule out: no event visits it any more."""
        self.shape_of[rule] = -1
        self.facts[rule] = 0

"""The tables of many rules in one array, as the loops over cells read them (`cell_step`).

In come shapes of rules (`shapes`), each with one rule as an example: rules of one shape differ in
what their ports ask for, in the length of their window and in how long their timers run, and share
a table. Out go rows: for a state its head (what is left of it when registers leave the window,
which timers run in it), and for each letter a move. A letter says which ports and predicates of its
rule an event matches, as bits; after the letters of events come those of alarms: one for each timer
port, then one for each set of timeouts that are due together.

Moves are worked out when a loop asks for them, by the table of the shape's machine, and each shape
has its part of the array, which moves to the end when it outgrows its room. A shape whose table
keeps growing with its events is better run without a table: `outgrows` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensue.engine.core.bit_table import BitTable
from ensue.engine.core.effects import Action, EclActions, FilterActions
from ensue.engine.core.numbering import taller
from ensue.engine.core.table import FilledTable
from ensue.engine.core.timer_table import FilledTimed, Timers
from ensue.engine.core.window_table import (
    ALWAYS,
    ENDLESS,
    ENDLESS_START,
    FIRST_REGISTER,
    FilledWindow,
    OrderedState,
    OrderedTable,
)
from ensue.engine.step.many.cell_step import (
    AFTER,
    BASE,
    FIRST_ALARM,
    HEAD,
    LOW_BITS,
    MOVE,
    PLACE_SHIFT,
)
from ensue.engine.step.many.shapes import durations_in, event_atoms
from ensue.lang.syntax import Correlation, FilterCorrelation
from ensue.machine.determinise import TableState
from ensue.machine.model import Machine
from ensue.machine.stepping import NOW, Starts

TABLE_STATES = 20_000
"""Past so many states a table is given up."""

FREE_ENTRIES, EVENTS_AN_ENTRY = 8192, 64
"""So many entries a table may have, and one more for so many events each; past that it is given
up."""

_OFFSET = FIRST_REGISTER - 1
"""A cell has its registers right after the state, a table counts them from `FIRST_REGISTER`."""


@dataclass
class PackedShape:
    """The table of a shape, and which part of the array is its own.

    `event_letters` is how many letters events have; those of alarms come after them.
    """

    filled: FilledTable
    correlation: Correlation
    machine: Machine
    event_letters: int
    width: int
    base: int = 0
    room: int = 0
    packed: int = 0
    symbols: dict[int, int] = field(default_factory=dict)
    actions: dict[int, int] = field(default_factory=dict)

    @property
    def registers(self) -> int:
        return self.filled.registers if isinstance(self.filled, FilledWindow) else 0

    @property
    def places(self) -> int:
        return self.filled.places

    @property
    def timers(self) -> Timers | None:
        return self.filled.timers if isinstance(self.filled, FilledTimed) else None

    @property
    def timer_count(self) -> int:
        return len(self.timers) if self.timers else 0

    def running(self, state: int) -> int:
        """The timers that run in a state, as bits."""
        return int(self.filled.running[state]) if isinstance(self.filled, FilledTimed) else 0

    def outgrows(self, events: int) -> bool:
        """Whether the table keeps growing, after so many events."""
        entries = self.filled.entries_made
        allowed = max(FREE_ENTRIES, events // EVENTS_AN_ENTRY)
        return entries > allowed or len(self.filled.known) > TABLE_STATES


@dataclass(frozen=True, slots=True)
class PackedRule:
    """A rule that reads a packed table: the number of its shape, and what it has of its own."""

    shape: int
    correlation: Correlation
    window: int | None


class PackedTables:
    """`moves` is the array; `rules` has for each rule the columns of `cell_step`.

    `actions` has, for each action number, its shape and what is put out; 0 puts out nothing.
    """

    def __init__(self) -> None:
        self.shapes: list[PackedShape] = []
        self.moves = np.zeros(1 << 10, np.int32)
        self.rules = np.zeros((0, AFTER), np.int64)
        self.actions: list[tuple[int, Action]] = [(-1, ())]
        self._shape_of = np.zeros(0, np.int64)
        self._used = 0

    @property
    def registers(self) -> int:
        """How many registers a cell has; room for two costs less than making it later."""
        windows = [each.registers for each in self.shapes if each.machine.window is not None]
        return max([2, *windows]) if windows else 0

    @property
    def places(self) -> int:
        return max((each.places for each in self.shapes), default=0)

    @property
    def timers(self) -> int:
        """As many timers as any rule has."""
        return max((each.timer_count for each in self.shapes), default=0)

    # --- shapes and rules -------------------------------------------------------------------------

    def add(self, correlation: Correlation, machine: Machine, forgets_start: bool) -> int:
        """The number of a shape that is new, of which this is an example.

        `forgets_start`: a rule that is back in its first state is as one that has not started.
        """
        filled = table_of_letters(correlation, machine)
        if forgets_start:
            filled.begin_at_first()
        letters = 1 << len(event_atoms(correlation, machine))
        alarms = filled.timers.alarms if isinstance(filled, FilledTimed) else 0
        width = HEAD + MOVE * (letters + alarms)
        self.shapes.append(PackedShape(filled, correlation, machine, letters, width))
        self._pack(len(self.shapes) - 1)
        return len(self.shapes) - 1

    def set_rules(self, rules: Sequence[PackedRule]) -> None:
        """Read the tables for these rules from now on, numbered in this order."""
        self.rules = np.zeros((len(rules), AFTER + self.timers), np.int64)
        self._shape_of = np.array([rule.shape for rule in rules], np.int64)
        for number, rule in enumerate(rules):
            shape = self.shapes[rule.shape]
            window = ENDLESS if rule.window is None else rule.window
            self.rules[number, BASE:FIRST_ALARM] = shape.base, shape.width, window
            if shape.timers is not None:
                lengths = _lengths(rule.correlation, shape)
                ports = len(shape.timers.ports)
                self.rules[number, FIRST_ALARM:AFTER] = shape.event_letters, ports, len(lengths)
                self.rules[number, AFTER : AFTER + len(lengths)] = lengths

    # --- moves ------------------------------------------------------------------------------------

    def move(self, shape: int, state: int, letter: int) -> tuple[int, int]:
        """Where a letter leads, and the action."""
        of = self.shapes[shape]
        if self.moves[_place(of, state, letter)] < 0:
            self.fill(shape, state, letter)
        following, action = self.moves[_place(of, state, letter) :][:2].tolist()
        return following, action

    def fill(self, shape: int, state: int, letter: int) -> None:
        """Work out a move that was asked for."""
        of = self.shapes[shape]
        if letter not in of.symbols:
            of.symbols[letter] = self._symbol(of, letter)
        table = of.filled
        following, action, place, others, *rest = table.fill(state, of.symbols[letter])
        self._pack(shape)
        if action not in of.actions:
            of.actions[action] = len(self.actions) if action else 0
            if action:
                self.actions.append((shape, table.actions[action]))
        register = max(0, rest[0] - _OFFSET) if rest else 0
        assert register <= LOW_BITS, "a table with so many registers has long been given up"
        first = 0 if place == table.places else 1 + place
        anew = int(table.anew[rest[-1]]) if isinstance(table, FilledTimed) else 0
        also = sum(1 << each for each in _bound_too(table, others))
        at = _place(of, state, letter)
        self.moves[at : at + MOVE] = (
            following,
            of.actions[action],
            register | first << PLACE_SHIFT,
            anew | also << PLACE_SHIFT,
        )

    def _symbol(self, of: PackedShape, letter: int) -> int:
        """What a letter is to the table of a shape."""
        if letter < of.event_letters:
            return int(of.filled.number_symbols(np.array([letter], np.uint8))[0])
        assert isinstance(of.filled, FilledTimed), "alarms are of timers"
        return of.filled.symbol_of_alarm(letter - of.event_letters)

    def _pack(self, shape: int) -> None:
        """Have a row for every state that the table of a shape knows by now."""
        of = self.shapes[shape]
        table = of.filled
        state = of.packed
        while state < len(table.known):
            if isinstance(table, FilledWindow) and table.oldest[state] != ENDLESS_START:
                # A state without its oldest register may be one that the table did not know.
                table.fill_expired(state)
            state += 1
        if state > of.room:
            self._make_room(shape, max(state, 2 * of.room))
        for each in range(of.packed, state):
            at = of.base + each * of.width
            self.moves[at : at + HEAD] = (*_head(table, each), of.running(each))
        of.packed = state

    def _make_room(self, shape: int, states: int) -> None:
        """Have room for so many states of a shape: its part moves to the end."""
        of = self.shapes[shape]
        base = self._used
        self._used += states * of.width
        if self._used > len(self.moves):
            self.moves = taller(self.moves, 2 * self._used, 0)
        self.moves[base : self._used] = -1
        used = of.packed * of.width
        self.moves[base : base + used] = self.moves[of.base : of.base + used]
        of.base, of.room = base, states
        self.rules[self._shape_of == shape, BASE] = base

    # --- states, as the machine has them ----------------------------------------------------------

    def number_of(self, shape: int, active: frozenset[int]) -> int:
        """The state of a table without a window in which these states of the machine are active."""
        number = self.shapes[shape].filled.number(TableState(active))
        self._pack(shape)
        return number

    def number_of_starts(self, shape: int, starts: Starts) -> tuple[int, list[int]]:
        """The state of a table with a window, and what its registers hold."""
        times = sorted({int(start) for start in starts.values() if start != NOW})
        register: dict[float, int] = {time: at for at, time in enumerate(times)}
        held = {state: register.get(start, ALWAYS) for state, start in starts.items()}
        ordered = OrderedState.of(held, tuple(range(len(times))))
        number = self.shapes[shape].filled.number(ordered)
        self._pack(shape)
        return number, times

    def state_of(self, shape: int, number: int) -> TableState:
        table = self.shapes[shape].filled
        return table.known[number] or table.machine_table.first


def table_of_letters(correlation: Correlation, machine: Machine) -> FilledTable:
    """An empty table whose events are told by the ports and predicates that they match."""
    bits: dict[Any, int] = {a: bit for bit, a in enumerate(event_atoms(correlation, machine))}
    places = 1 + max((p for branch in machine.branches for p, _, _ in branch.places), default=-1)
    actions: FilterActions | EclActions
    if isinstance(correlation, FilterCorrelation):
        actions = FilterActions(correlation, machine)
    else:
        actions = EclActions(correlation, machine)
    timers = Timers(correlation, machine)
    table = OrderedTable(machine) if machine.window is not None else BitTable(machine, TABLE_STATES)
    if len(timers):
        return FilledTimed(table, actions, bits, places, timers)
    kind = FilledTable if machine.window is None else FilledWindow
    return kind(table, actions, bits, places)


def _place(of: PackedShape, state: int, letter: int) -> int:
    return of.base + state * of.width + HEAD + MOVE * letter


def _bound_too(table: FilledTable, others: int) -> list[int]:
    """The places of a set that a table has numbered."""
    found: list[int] = table.bind_places[
        table.bind_from[others] : table.bind_from[others + 1]
    ].tolist()
    return found


def _head(table: FilledTable, state: int) -> tuple[int, ...]:
    """The two oldest registers of a state; the state with both, without one, the other, both.

    The second is not older than the first. Where a register is lacking, the word that is read in
    its place has no influence on the result.
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


def _lengths(correlation: Correlation, of: PackedShape) -> list[int]:
    """How long the timers of a rule run, in the order that they have in the table of its shape."""
    assert of.timers is not None
    own = dict(zip(durations_in(of.correlation), durations_in(correlation), strict=True))
    return [own[each] for each in of.timers.after.tolist()]

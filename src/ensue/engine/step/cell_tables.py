"""The tables of rules in cells, in one array, as a loop that visits them reads it.

In come shapes of rules (`cell_shapes`), each with one rule for an example; rules of one shape share
a table, which is filled as events ask for entries. It is the batch engine's: a state of it says
which register of a cell holds the start of which state of the machine, and in which order they are
(`ensue.engine.core.window_table`), and an entry what is put out, played through once with the
transformer itself (`ensue.engine.core.effects`). A row has the oldest register of a state (0 for
none), the state without it, and for each letter (which ports of its rule an event matches) the next
state, the action and the register that the present time is written to (0 for none). The state 0 is
that of a rule at its start. `clocked_tables` has what timers add to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeGuard

import numpy as np

from ensue.engine.core.bit_table import BitTable
from ensue.engine.core.effects import Action, Emitted, FilterActions, Push, Sent
from ensue.engine.core.numbering import taller
from ensue.engine.core.rule_table import TABLE_STATES
from ensue.engine.core.table import FilledTable, atoms_of_bits
from ensue.engine.core.window_table import (
    ALWAYS,
    ENDLESS_START,
    FIRST_REGISTER,
    FilledWindow,
    OrderedState,
)
from ensue.engine.step.emitting import Recipe, recipe_for
from ensue.engine.step.port_tables import table_of_ports
from ensue.engine.step.rules import Rule
from ensue.engine.step.shapes import atoms_of
from ensue.events.types import TypeSystem
from ensue.lang.syntax import Correlation, FilterCorrelation, PushNew, PushPort
from ensue.machine.determinise import TableState
from ensue.machine.model import PortAtom
from ensue.machine.stepping import NOW, Starts

HEAD, MOVE = 2, 4
FREE_ENTRIES, EVENTS_AN_ENTRY = 8192, 64
"""So many entries a table may have, and more for so many events each; past that it is left."""

_OFFSET = FIRST_REGISTER - 1
"""In a cell the registers come after the state; in a table after two that are nobody's here."""


@dataclass
class CellShape:
    """The table of a shape, and which part of the array is its own."""

    filled: FilledTable
    width: int
    correlation: Correlation
    atoms: dict[str, int]
    base: int = 0
    room: int = 0
    known: int = 0
    symbols: dict[int, int] = field(default_factory=dict)
    actions: dict[int, int] = field(default_factory=dict)

    @property
    def registers(self) -> int:
        return self.filled.registers if isinstance(self.filled, FilledWindow) else 0

    def outgrows(self, events: int) -> bool:
        """Whether it keeps growing, so that its rules are better off elsewhere."""
        made = self.filled.entries_made
        return (made > FREE_ENTRIES and made > events // EVENTS_AN_ENTRY) or len(
            self.filled.known
        ) > TABLE_STATES


class CellTables:
    """`rules` has, for each rule by its number, where its rows begin, their width, its window.

    `kinds` has the number of its shape.
    """

    head = HEAD

    def __init__(self) -> None:
        self.shapes: list[CellShape] = []
        self.moves = np.zeros(1 << 10, np.int32)
        self.rules = np.zeros((1, 3), np.int64)
        self.actions: list[tuple[int, Action]] = [(-1, ())]
        """Of every action whose it is, and what is put out; 0 puts out nothing."""
        self.kinds = np.zeros(1, np.int64)
        self._used = 0

    @property
    def width(self) -> int:
        """How many numbers a cell has; room for two registers costs less than making it later."""
        return 1 + max(2, *(each.registers for each in self.shapes))

    def add(self, example: Rule) -> int:
        """The number of a shape that is new."""
        correlation, machine = example.correlation, example.machine
        assert machine is not None
        filled = table_of_ports(correlation, machine)
        self._begin(filled)
        width = self.head + MOVE * self._letters_of(correlation, filled)
        self.shapes.append(CellShape(filled, width, correlation, atoms_of(example)))
        self._fit(len(self.shapes) - 1)
        return len(self.shapes) - 1

    def _begin(self, filled: FilledTable) -> None:
        filled.begin_at_first()

    def _letters_of(self, correlation: Correlation, filled: FilledTable) -> int:  # noqa: ARG002
        return 1 << len(correlation.ports)

    def set_rules(self, kinds: dict[int, int], windows: dict[int, int]) -> None:
        """Which rules there are, by their numbers."""
        size = 1 + max(kinds, default=0)
        self.rules = np.zeros((size, 3), np.int64)
        self.kinds = np.full(size, -1, np.int64)
        for number, kind in kinds.items():
            shape = self.shapes[kind]
            self.kinds[number] = kind
            self.rules[number] = shape.base, shape.width, windows[number]

    def move(self, kind: int, state: int, letter: int) -> tuple[int, int]:
        """Where a letter leads, and the action."""
        shape = self.shapes[kind]
        place = shape.base + state * shape.width + self.head + MOVE * letter
        if self.moves[place] < 0:
            self.fill(kind, state, letter)
            place = shape.base + state * shape.width + self.head + MOVE * letter
        return int(self.moves[place]), int(self.moves[place + 1])

    def fill(self, kind: int, state: int, letter: int) -> None:
        """Work out a move that was asked for."""
        shape = self.shapes[kind]
        table, symbols = shape.filled, shape.symbols
        if letter not in symbols:
            symbols[letter] = self._symbol(shape, letter)
        following, action, _, _, *rest = table.fill(state, symbols[letter])
        self._fit(kind)
        if action not in shape.actions:
            shape.actions[action] = len(self.actions) if action else 0
            if action:
                self.actions.append((kind, table.actions[action]))
        written = max(0, rest[0] - _OFFSET) if rest else 0
        place = shape.base + state * shape.width + self.head + MOVE * letter
        self.moves[place : place + MOVE] = (
            following,
            shape.actions[action],
            written,
            self._set_anew(table, rest),
        )

    def _symbol(self, shape: CellShape, letter: int) -> int:
        return int(shape.filled.number_symbols(np.array([letter], np.uint8))[0])

    def _set_anew(self, table: FilledTable, rest: Sequence[int]) -> int:  # noqa: ARG002
        """Which timers are set by an entry, as bits."""
        return 0

    def _fit(self, kind: int) -> None:
        """Have a row for every state that the table of a shape knows by now."""
        shape = self.shapes[kind]
        table = shape.filled
        state = shape.known
        while state < len(table.known):
            if isinstance(table, FilledWindow) and table.oldest[state] != ENDLESS_START:
                # What is left without its oldest register may be a state that nobody knew.
                table.fill_expired(state)
            state += 1
        if state > shape.room:
            self._make_room(kind, max(state, 2 * shape.room))
        for each in range(shape.known, state):
            place = shape.base + each * shape.width
            self.moves[place : place + self.head] = self._head(table, each)
        shape.known = state

    def _head(self, table: FilledTable, state: int) -> tuple[int, ...]:
        """The oldest register of a state, and the state without it."""
        if not isinstance(table, FilledWindow) or table.oldest[state] == ENDLESS_START:
            return 0, state
        return int(table.oldest[state]) - _OFFSET, int(table.expired[state])

    def _make_room(self, kind: int, states: int) -> None:
        """Have room for so many states of a shape: its part moves to the end."""
        shape = self.shapes[kind]
        base = self._used
        self._used += states * shape.width
        if self._used > len(self.moves):
            self.moves = taller(self.moves, 2 * self._used, 0)
        self.moves[base : self._used] = -1
        used = shape.known * shape.width
        self.moves[base : base + used] = self.moves[shape.base : shape.base + used]
        shape.base, shape.room = base, states
        self.rules[self.kinds == kind, 0] = base

    # --- states of cells, as the machine has them -------------------------------------------------

    def number_of(self, kind: int, active: frozenset[int]) -> int:
        """The state of a table without a window."""
        number = self.shapes[kind].filled.number(TableState(active))
        self._fit(kind)
        return number

    def number_of_starts(self, kind: int, starts: Starts) -> tuple[int, list[int]]:
        """The state of a table with a window, and what its registers hold."""
        times = sorted({int(start) for start in starts.values() if start != NOW})
        place: dict[float, int] = {time: at for at, time in enumerate(times)}
        held = {state: place.get(start, ALWAYS) for state, start in starts.items()}
        ordered = OrderedState.of(held, tuple(range(len(times))))
        number = self.shapes[kind].filled.number(ordered)
        self._fit(kind)
        return number, times

    def state_of(self, kind: int, number: int) -> TableState:
        table = self.shapes[kind].filled
        return table.known[number] or table.machine_table.first

    # --- what is put out --------------------------------------------------------------------------

    def parts_of(self, action: int) -> int:
        """In how many parts an action puts out what it does: each with its own labels and ports."""
        return len(_parts(self.actions[action][1]))

    def recipe(self, action: int, part: int, types: TypeSystem) -> tuple[Recipe, list[int]]:
        """One part of an action, and the atoms of the ports that are bound in it."""
        kind, pushes = self.actions[action]
        shape, chosen = self.shapes[kind], _parts(pushes)[part]
        bound = tuple(port for port, _ in chosen[0].shape.bound)
        said = [_said(push) for push in chosen]
        labels = chosen[0].shape.labels
        recipe = recipe_for(shape.correlation, types, labels, bound, said)
        return recipe, [shape.atoms[port] for port in recipe.event_ports]


def _parts(pushes: Action) -> list[list[Push]]:
    return [list(each) for _, each in groupby(pushes, key=_shape)]


_shape = attrgetter("shape")


def _said(push: Push) -> PushPort | PushNew | str:
    match push.what:
        case Sent(port):
            return PushPort(port)
        case Emitted(type_name):
            return type_name
        case statement:
            return statement


def looks_for_last(rule: Rule, most: int) -> int | None:
    """How many looks show that all that a rule binds is the last event that its port has matched.

    Where labels change, each entry of its table is looked at: whether what is bound after it was
    bound by it, or was bound before and the event is none of its port. None if that does not hold,
    or would take more looks.
    """
    correlation, machine = rule.correlation, rule.machine
    if not isinstance(correlation, FilterCorrelation) or machine is None or not machine.switches:
        return 0
    actions, table = FilterActions(correlation, machine), BitTable(machine, TABLE_STATES)
    bits: dict[Any, int] = {PortAtom(port.name): bit for bit, port in enumerate(correlation.ports)}
    letters = [atoms_of_bits(machine, bits, each) for each in range(1, 1 << len(correlation.ports))]
    places = [each for branch in machine.branches for each in branch.places]
    ports, bound_in = {p: port for p, port, _ in places}, {p: state for p, _, state in places}
    seen, waiting, looked_at = {table.first.active}, [table.first], 0
    while waiting:
        state = waiting.pop()
        for atoms in letters:
            looked_at += 1
            if looked_at > most:
                return None
            entry = actions.entry(table, state, atoms)
            matched = {a.name for n, a in enumerate(machine.atoms) if n in atoms and _is_port(a)}
            after = [place for place, bound in bound_in.items() if bound in entry.to.active]
            used = [p for push in entry.action for _, each in push.shape.bound for p in each]
            for place in [*after, *used]:
                is_held = bound_in[place] in state.active and ports[place] not in matched
                if place not in entry.binds and not is_held:
                    return None
            if entry.to.active not in seen:
                seen.add(entry.to.active)
                waiting.append(entry.to)
    return looked_at


def _is_port(atom: object) -> TypeGuard[PortAtom]:
    return isinstance(atom, PortAtom)

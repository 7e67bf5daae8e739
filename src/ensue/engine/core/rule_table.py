"""The table of one rule: its machine as a transducer, worked out entry by entry when asked.

In come states and symbols by number; out go entries: the next state, the action, the places that
are bound, the register that takes the present time, the timers that are set. Nothing here belongs
to a key, so rules that differ only in what their ports ask for, in the length of their windows and
of their timers share one table. `packed` lays entries out for kernels.

A *symbol* is a set of atoms that an event satisfies, or the firing of timers. A *state* is a set of
states of the machine; with a window also which register holds which start, and in which order the
registers are (`machine_tables`). State 0 is that of a key that has read nothing. `Symbols` numbers
the bits of events (which ports and predicates of a rule they match) as they occur; `Patience` says
when a table that keeps growing is left, so that its rule goes on event by event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.core.effects import Action, EclActions, FilterActions, TableEntry
from ensue.engine.core.jit import FAR
from ensue.engine.core.machine_tables import (
    ORIGIN,
    BitTable,
    OrderedState,
    OrderedTable,
    RuleTimers,
    settled_state,
)
from ensue.engine.sizes import sizes
from ensue.lang.syntax import Correlation, FilterCorrelation
from ensue.machine.determinise import TableState
from ensue.machine.model import AnyAtom, Machine, State

NOT_STARTED = 0
"""The state of a key that has not read anything."""
NOWHERE = -3
"""In place of a register: the state of the machine is not active."""
EVENTS_A_MOVE = 64
"""How many events allow a table one move more than those that are free (`Patience`)."""


class Move(NamedTuple):
    """An entry of a table: `binds` are slots, `timers` has a bit for each timer that is set anew.

    `register` is -1 where no start begins.
    """

    following: int
    action: int
    binds: tuple[int, ...]
    register: int
    timers: int


class RuleTable:
    """The table of one rule, or of several rules of one shape.

    `bit_of` says which bit of an event stands for which atom of the machine.
    `slot_of` says in which slot of a cell each place of the machine is kept, if not in its own:
    rules of different shapes all have what their first port is bound to in slot 0, and so on.
    """

    def __init__(
        self,
        correlation: Correlation,
        machine: Machine,
        bit_of: dict[Any, int],
        slot_of: Sequence[int] | None = None,
    ) -> None:
        self.machine = machine
        self.timers = RuleTimers(correlation, machine)
        self.slot_of = list(range(place_count(machine)) if slot_of is None else slot_of)
        self.slots = 1 + max(self.slot_of, default=-1)
        timer_ports = {port.name for port in self.timers.ports}
        self.timer_slots = sorted(
            self.slot_of[place]
            for branch in machine.branches
            for place, port, _ in branch.places
            if port in timer_ports
        )
        """The slots that hold the time of a timer's firing, and not a reading."""
        self.is_filter = isinstance(correlation, FilterCorrelation)
        self.effects: FilterActions | EclActions = (
            FilterActions(correlation, machine)
            if isinstance(correlation, FilterCorrelation)
            else EclActions(correlation)
        )
        self.transitions = (
            BitTable(machine, sizes().table_states)
            if machine.window is None
            else OrderedTable(machine)
        )
        self.symbols = Symbols(machine, bit_of)
        self.known: list[TableState | None] = [None]
        self.actions: list[Action] = [()]
        self.registers = 0
        """The most registers that a known state uses."""
        self.moves_made = 0
        self._number_of: dict[object, int] = {}
        self._action_of: dict[Action, int] = {(): 0}
        self._due_in: dict[int, frozenset[State]] = {}
        self.alarm_symbols = [
            self.symbols.add(self.timers.atoms_of(port, machine)) for port in self.timers.ports
        ]
        if len(self.timers):
            for mask in range(1 << len(self.timers.timeouts)):
                symbol = self.symbols.add(frozenset())
                self._due_in[symbol] = self.timers.states_of(mask << len(self.timers.ports))
                self.alarm_symbols.append(symbol)

    @property
    def has_window(self) -> bool:
        return self.machine.window is not None

    @property
    def counts_from_start(self) -> bool:
        """Whether a timer runs from the first event on, so that a key which has started stays."""
        return bool(len(self.timers)) and self.timers.running(self.transitions.first.active) != 0

    # --- entries ----------------------------------------------------------------------------------

    def move(self, state: int, symbol: int) -> Move:
        """Work out where a symbol leads from a state."""
        self.moves_made += 1
        entry = self._entry(state, symbol)
        settled, register = settled_state(entry.to)
        timers = self.timers.set_anew(entry, state == NOT_STARTED) if len(self.timers) else 0
        following, action = self.number(settled), self._number_action(entry.action)
        binds = tuple(sorted(self.slot_of[place] for place in entry.binds))
        return Move(following, action, binds, register, timers)

    def _entry(self, state: int, symbol: int) -> TableEntry:
        due = self._due_in.get(symbol)
        if due is None:
            atoms = self.symbols.atoms[symbol]
            return self.effects.entry(self.transitions, self.known[state], atoms)
        assert isinstance(self.effects, EclActions), "only expressions have timeouts"
        return self.effects.entry(self.transitions, self.known[state], frozenset(), due)

    def expired(self, state: int) -> int:
        """The state without its oldest register."""
        held = self.known[state]
        assert isinstance(held, OrderedState)
        self.moves_made += 1
        return self.number(held.expired())

    def order_of(self, state: int) -> tuple[int, ...]:
        """The registers that a state uses, the oldest first."""
        held = self.known[state]
        return held.order if isinstance(held, OrderedState) else ()

    def running(self, state: int) -> int:
        """The timers that run in a state, as bits."""
        held = self.known[state]
        return 0 if held is None else self.timers.running(held.active)

    def _number_action(self, action: Action) -> int:
        number = self._action_of.get(action)
        if number is None:
            number = self._action_of[action] = len(self.actions)
            self.actions.append(action)
        return number

    # --- states -----------------------------------------------------------------------------------

    def number(self, state: TableState) -> int:
        """The number of a state; a state that is new gets the next."""
        identity = state.identity if isinstance(state, OrderedState) else state.active
        number = self._number_of.get(identity)
        if number is None:
            number = self._number_of[identity] = len(self.known)
            self.known.append(state)
            if isinstance(state, OrderedState) and state.order:
                self.registers = max(self.registers, 1 + max(state.order))
        return number

    def merge_start(self) -> None:
        """Give the first state the number of the state before any event: both behave alike."""
        first = self.transitions.first
        identity = first.identity if isinstance(first, OrderedState) else first.active
        self._number_of[identity] = NOT_STARTED

    def number_of_set(self, active: frozenset[State]) -> int:
        """The number of a set of states of the machine, without a window; {-1} has not started."""
        return NOT_STARTED if active == {-1} else self.number(TableState(active))

    def number_of_order(self, registers: dict[State, int]) -> int:
        """The number of a state by the ranks of its starts; `ORIGIN` ranks what needs no event."""
        order = tuple(range(1 + max(registers.values(), default=-1)))
        return self.number(OrderedState.of(registers, order))

    def is_idle(self) -> npt.NDArray[np.bool_]:
        """For each state, whether a key in it stands as at its start."""
        first = self.number(self.transitions.first)
        idle = np.zeros(len(self.known), np.bool_)
        idle[[NOT_STARTED, first]] = True
        return idle

    def bound(self) -> npt.NDArray[np.bool_]:
        """For each state and slot, whether the event in the slot still counts."""
        by_state = np.zeros((len(self.known), self.slots), np.bool_)
        for number, state in enumerate(self.known):
            if state is not None:
                for branch in self.machine.branches:
                    for place, _, bound in branch.places:
                        by_state[number, self.slot_of[place]] |= bound in state.active
        return by_state

    def registers_of_starts(self) -> npt.NDArray[np.int64]:
        """For each state, and each state of the machine, the register of its start.

        `NOWHERE` where it is not active, `ORIGIN` where it needs no event or there is no window.
        """
        registers = np.full((len(self.known), len(self.machine.names)), NOWHERE, np.int64)
        for number, state in enumerate(self.known):
            held = self.transitions.first if state is None else state
            if isinstance(held, OrderedState):
                for each, at in held.registers.items():
                    registers[number, each] = at
            else:
                registers[number, sorted(held.active)] = ORIGIN
        return registers


def place_count(machine: Machine) -> int:
    return max((p for branch in machine.branches for p, _, _ in branch.places), default=-1) + 1


def first_starts(machine: Machine) -> npt.NDArray[np.int64]:
    """The starts of a key that has read nothing."""
    starts = np.full(len(machine.names), -FAR, np.int64)
    starts[sorted(machine.initial)] = FAR
    return starts


def moving_states(machine: Machine) -> list[int]:
    """The states whose starts change: with labels that are aborted, their marks too."""
    fixed = frozenset[int]() if machine.switches else machine.constant
    return [state for state in range(len(machine.names)) if state not in fixed]


class Symbols:
    """Numbers the bit patterns that occur, each with the atoms that it stands for."""

    def __init__(self, machine: Machine, bit_of: dict[Any, int]) -> None:
        self.atoms: list[frozenset[int]] = []
        self._always = [n for n, atom in enumerate(machine.atoms) if isinstance(atom, AnyAtom)]
        self._atoms_of_bit: dict[int, list[int]] = {}
        for number, atom in enumerate(machine.atoms):
            if atom in bit_of and not isinstance(atom, AnyAtom):
                self._atoms_of_bit.setdefault(bit_of[atom], []).append(number)
        self._number_of: dict[int, int] = {}

    def number(self, pattern: int) -> int:
        """The symbol of the events that have these bits; a pattern that is new gets the next."""
        symbol = self._number_of.get(pattern)
        if symbol is None:
            symbol = self._number_of[pattern] = self.add(self._atoms_in(pattern))
        return symbol

    def add(self, atoms: frozenset[int]) -> int:
        """A symbol of its own for these atoms: that of a new pattern, or of a timer's firing."""
        self.atoms.append(atoms)
        return len(self.atoms) - 1

    def _atoms_in(self, pattern: int) -> frozenset[int]:
        """The atoms whose bits a pattern has; a machine may have many, a pattern has few."""
        found = set(self._always)
        while pattern:
            bit = pattern & -pattern
            pattern ^= bit
            found.update(self._atoms_of_bit.get(bit.bit_length() - 1, ()))
        return frozenset(found)


class Patience:
    """How many moves of a table may be worked out for the events that have been read.

    A move costs about as much as stepping the machine for some hundreds of events. A table that is
    still growing after its first moves is better left, if that is possible.
    """

    def __init__(self, free: int | None = None) -> None:
        self.free = sizes().free_moves if free is None else free
        self.events = 0

    def is_over(self, table: RuleTable, more: int) -> bool:
        """Whether the table has grown too much, `more` events after the last that was counted."""
        return table.moves_made > self.free + (self.events + more) // EVENTS_A_MOVE

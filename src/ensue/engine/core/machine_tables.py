"""The tables of machines: how a rule's table works out an entry, and what an entry does to timers.

In come states and what is read; out come moves, as from `ensue.machine.determinise`.

- `BitTable`, without a window: sets of states are bits of integers. It has the same states, moves
  and budget as the table of `ensue.machine.determinise`; only how a move is worked out differs
  (`ensue.machine.bitwise`), for a hundred rules have thousands of them.
- `OrderedTable`, with a window: the algebra of windows only compares starts with each other, and
  with the edge of the window. So a key needs no start for every state of its machine: it has a few
  *registers*, each with a time, and a state of the table says which register holds the start of
  which active state, and in which order their times are. What has left the window can complete
  nothing, make no label active and bind no place, now or later: it is dropped, register by
  register, before an event is read. What is left is a finite transducer. A wide `+` has as many
  orders as its parts have: past a budget the owner of the table gives it up.
- `RuleTimers`: a correlation has a timer for each timer port (`every`, `deadline`) and for each
  state of its machine that is a timeout. Which timers run follows from the state of the table; an
  entry says which are set anew, each to its own duration from that moment. The firing of a port is
  a symbol of its own, and so is each set of timeouts that are due together. Whether a predicate
  holds for the firing of a timer may depend on the time of the firing: `why_not_in_columns` refuses
  rules with such a predicate, and rules with more timers than a word has bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ensue.engine.core.effects import TableEntry
from ensue.engine.ports import Reading, asks_time, satisfies
from ensue.lang.syntax import Correlation, TimerPort
from ensue.machine.bitwise import BitStepper, bits_of, numbers_in
from ensue.machine.determinise import Input, MachineMove, MachineTable, TableState
from ensue.machine.model import Bind, Machine, State, Timer
from ensue.machine.stepping import NOW, PassResult, Starts, Stepper


class BitTable(MachineTable):
    """The moves of a machine without a window."""

    def __init__(self, machine: Machine, states: int) -> None:
        self._stepping = BitStepper(machine)
        self._bits: dict[TableState, int] = {}
        self._by_bits: dict[int, TableState] = {}
        self._atoms: dict[frozenset[int], int] = {}
        super().__init__(machine, states)

    def _make(self, state: TableState, given: Input) -> MachineMove:
        kind, what = given
        if isinstance(what, str):
            return super()._make(state, given)
        active = self._bits.get(state)
        if active is None:
            active = self._bits[state] = bits_of(state.active)
        if kind == "due":
            readers = self._stepping.due(what)
        else:
            atoms = self._atoms.get(what)
            if atoms is None:
                atoms = self._atoms[what] = bits_of(what)
            readers = self._stepping.readers(active, atoms)
        taken = self._stepping.take(active, readers)
        to = self._by_bits.get(taken.active)
        if to is None:
            to = self._by_bits[taken.active] = self._state(frozenset(numbers_in(taken.active)))
            self._bits[to] = taken.active
        binds = [Bind(place) for place in taken.binds]
        return MachineMove(to, (*binds, *taken.effects), taken.started)


ORIGIN = -2
"""In place of a register: the state needs no event, as an origin or the mark of a label."""
PRESENT = -1
"""In place of a register: the start is the event just read, which has no register yet."""
ENDLESS_WINDOW = 2**61
"""A window that nothing leaves."""


@dataclass(eq=False, slots=True)
class OrderedState(TableState):
    """A state of a table with a window: active states, and which register holds which start.

    `registers` has the register of each active state; `order` has the registers, oldest first.
    """

    registers: Mapping[State, int] = None  # type: ignore[assignment]
    order: tuple[int, ...] = ()

    @classmethod
    def of(cls, registers: Mapping[State, int], order: tuple[int, ...]) -> OrderedState:
        return cls(frozenset(registers), {}, registers, order)

    @property
    def identity(self) -> tuple[frozenset[tuple[State, int]], tuple[int, ...]]:
        return frozenset(self.registers.items()), self.order

    def settled(self) -> tuple[TableState, int]:
        """The state with a register for what begins now, and which that is; -1 if none does."""
        used = set(self.registers.values())
        order = tuple(each for each in self.order if each in used)
        if PRESENT not in used:
            return OrderedState.of(self.registers, order), -1
        free = next(each for each in range(len(order) + 1) if each not in used)
        registers = {s: free if at == PRESENT else at for s, at in self.registers.items()}
        return OrderedState.of(registers, (*order, free)), free

    def expired(self) -> OrderedState:
        """The state without its oldest register."""
        gone, *kept = self.order
        held = {state: at for state, at in self.registers.items() if at != gone}
        return OrderedState.of(held, tuple(kept))


class OrderedTable(MachineTable):
    """The moves of a machine with a window. All that a state holds lies inside of it."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        # Starts are ranks here, and what has left the window is dropped before.
        self._ranked = Stepper(replace(machine, window=ENDLESS_WINDOW))
        self.first = OrderedState.of(dict.fromkeys(machine.initial, ORIGIN), ())

    def _make(self, state: TableState, given: Input) -> MachineMove:
        assert isinstance(state, OrderedState)
        ranks: dict[int, float] = {at: float(rank) for rank, at in enumerate(state.order)}
        present = float(len(ranks))
        ranks |= {PRESENT: present, ORIGIN: NOW}
        active: Starts = {each: ranks[at] for each, at in state.registers.items()}
        kind, what = given
        taken = PassResult()
        if isinstance(what, str):
            switch = self._switches[kind, what]
            if switch.requires in active:
                for each in switch.clear:
                    active.pop(each, None)
                active.update(dict.fromkeys(switch.target, NOW))
        else:
            taken = self._ranked.take(active, atoms=what, now=present)
        places = {rank: at for at, rank in ranks.items()}
        registers = {each: places[rank] for each, rank in active.items()}
        return MachineMove(OrderedState.of(registers, state.order), tuple(taken.effects), ())


def settled_state(state: TableState) -> tuple[TableState, int]:
    return state.settled() if isinstance(state, OrderedState) else (state, -1)


MOST_TIMERS = 62
"""The most timers that have room in one word as bits."""


class RuleTimers:
    """Timer ports first, in their order; then timeouts. Masks have a bit for each."""

    def __init__(self, correlation: Correlation, machine: Machine) -> None:
        self.ports = [port for port in correlation.ports if isinstance(port, TimerPort)]
        found = [each.input for each in machine.transitions if isinstance(each.input, Timer)]
        self.timeouts = list(dict.fromkeys(found))
        durations = [port.period.microseconds for port in self.ports]
        durations += [timer.after for timer in self.timeouts]
        self.after = np.array(durations, np.int64)
        self._bit_of = {t.state: 1 << len(self.ports) + n for n, t in enumerate(self.timeouts)}
        self.port_mask = (1 << len(self.ports)) - 1
        kinds = [port.kind for port in self.ports]
        self.deadlines = sum(1 << n for n, kind in enumerate(kinds) if kind == "deadline")

    def __len__(self) -> int:
        return len(self.after)

    def running(self, active: frozenset[State]) -> int:
        """The timers that run in a state. An expression that is finished has none."""
        if not active:
            return 0
        return self.port_mask | sum(bit for state, bit in self._bit_of.items() if state in active)

    def set_anew(self, entry: TableEntry, begins: bool) -> int:
        mask = self.port_mask if begins else self.deadlines if entry.triggers else 0
        for timer in entry.started:
            mask |= self._bit_of[timer.state]
        return mask & self.running(entry.to.active)

    def states_of(self, mask: int) -> frozenset[State]:
        return frozenset(state for state, bit in self._bit_of.items() if mask & bit)

    def atoms_of(self, port: TimerPort, machine: Machine) -> frozenset[int]:
        """The atoms that the firing of a port satisfies, whenever it is."""
        firing = Reading(0, frozenset({port.name}))
        return frozenset(n for n, atom in enumerate(machine.atoms) if satisfies(firing, atom))


def why_not_in_columns(correlation: Correlation, machine: Machine) -> str | None:
    timers = RuleTimers(correlation, machine)
    if len(timers) > MOST_TIMERS:
        return f"it has more than {MOST_TIMERS} timers"
    if timers.ports and asks_time(machine):
        return "a predicate asks for the time at which a timer fires"
    return None

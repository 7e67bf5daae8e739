"""A machine with a window as a table: what counts of its starts is how they are ordered.

The algebra of windows only compares starts with each other, and with the edge of the window. So a
key needs no start for every state of its machine: it has a few *registers*, each with a time, and a
state of the table says which register holds the start of which active state, and in which order
their times are. What has left the window can complete nothing, make no label active and bind no
place, now or later: it is dropped, register by register, before an event is read. What is left is
a finite transducer, and every entry of it is worked out once, by the stepper of the machine.

In come states and what is read; out come moves, as from `ensue.machine.determinise`. A wide `+` has
as many orders as its parts have: past a budget the owner of the table gives it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ensue.machine.determinise import Input, MachineMove, MachineTable, TableState
from ensue.machine.model import Machine, State
from ensue.machine.stepping import NOW, Starts, Stepper, Taken

ALWAYS = -2
"""Where the start of what needs no event is said to be: an origin, the mark of a label."""
PRESENT = -1
"""The start of what begins with the event just read, until it is given a register."""
ENDLESS = 2**61
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
        self._ranked = Stepper(replace(machine, window=ENDLESS))
        self.first = OrderedState.of(dict.fromkeys(machine.initial, ALWAYS), ())

    def _make(self, state: TableState, given: Input) -> MachineMove:
        assert isinstance(state, OrderedState)
        ranks: dict[int, float] = {at: float(rank) for rank, at in enumerate(state.order)}
        present = float(len(ranks))
        ranks |= {PRESENT: present, ALWAYS: NOW}
        active: Starts = {each: ranks[at] for each, at in state.registers.items()}
        kind, what = given
        taken = Taken()
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

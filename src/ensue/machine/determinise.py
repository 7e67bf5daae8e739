"""Tables, made as they are needed: each set of active states becomes one state of a table.

In comes a machine without a window; out come moves, remembered by what was taken. Thirty
accumulated ports have 2^30 sets of states, but a stream visits few of them: only those are made,
and no more than a budget. Past it the machine is stepped directly: slower, and always possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ensue.machine.model import Bind, Emit, Machine, State, Switch, Timer
from ensue.machine.stepping import NOW, Fired, Stepper, Taken


@dataclass(eq=False, slots=True)
class TableState:
    """A set of active states; the moves that are known from it."""

    active: frozenset[State]
    moves: dict[Input, Move] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """Where an input leads, what it does on the way, and which timeouts it starts."""

    to: TableState
    effects: tuple[Emit | Bind | Fired, ...]
    started: tuple[Timer, ...]


Input = tuple[str, frozenset[int]] | tuple[str, str]
"""`("atoms", ...)` an event, `("due", ...)` a tick, `("abort", label)` and `("revive", label)`."""

SETTLE: Input = ("atoms", frozenset())


class Table:
    """A machine as a table that grows with what it is asked. Shared by all runs of the machine."""

    def __init__(self, machine: Machine, budget: int) -> None:
        self.machine = machine
        self._stepper = Stepper(machine)
        self._budget = budget
        self._states: dict[frozenset[State], TableState] = {}
        self._switches: dict[tuple[str, str], Switch] = {
            (each.kind, each.label): each for each in machine.switches
        }
        starts, self.first_timers = self._stepper.begin()
        self.first = self._state(frozenset(starts))

    def move(self, state: TableState, given: Input) -> Move:
        known = state.moves.get(given)
        return known if known is not None else self._make(state, given)

    def _make(self, state: TableState, given: Input) -> Move:
        active = dict.fromkeys(state.active, NOW)
        kind, what = given
        if isinstance(what, str):
            switch = self._switches[kind, what]
            if switch.requires in active:
                for each in switch.clear:
                    active.pop(each, None)
                active.update(dict.fromkeys(switch.target, NOW))
            taken = Taken()
        elif kind == "due":
            taken = self._stepper.take(active, due=what)
        else:
            taken = self._stepper.take(active, atoms=what)
        move = Move(self._state(frozenset(active)), tuple(taken.effects), tuple(taken.started))
        if len(state.moves) < self._budget:
            state.moves[given] = move
        return move

    def _state(self, active: frozenset[State]) -> TableState:
        known = self._states.get(active)
        if known is None:
            known = TableState(active)
            if len(self._states) < self._budget:
                self._states[active] = known
        return known

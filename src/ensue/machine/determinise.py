"""Lazy tables of machines: each set of active states that a stream visits is a state of the table.

In come a machine without a window and its inputs, one by one; out come moves, which are kept.
Thirty accumulated ports have 2^30 sets of states, but a stream visits few of them: only those are
made, within a budget of states, of moves, and of active states in all. Past the budget the machine
is stepped for each input, which is slower and always possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ensue.machine.limits import DEFAULT_MACHINE_LIMITS
from ensue.machine.model import Bind, Emit, Machine, State, Switch, Timer
from ensue.machine.stepping import NOW, Fired, PassResult, Stepper


@dataclass(eq=False, slots=True)
class TableState:
    """A set of active states, and the moves from it that are known."""

    active: frozenset[State]
    moves: dict[Input, MachineMove] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MachineMove:
    """A move of a table: the next state, the effects, and the timeouts that are started."""

    to: TableState
    effects: tuple[Emit | Bind | Fired, ...]
    started: tuple[Timer, ...]


Input = tuple[str, frozenset[int]] | tuple[str, str]
"""`("atoms", ...)` an event, `("due", ...)` a tick, `("abort", label)` and `("revive", label)`."""

SETTLE: Input = ("atoms", frozenset())
"""No event: only internal transitions are taken."""


class MachineTable:
    """The table of a machine, filled when it is asked. All runs of the machine share it."""

    def __init__(
        self,
        machine: Machine,
        states: int = DEFAULT_MACHINE_LIMITS.table_states,
        moves: int = DEFAULT_MACHINE_LIMITS.table_moves,
        marks: int = DEFAULT_MACHINE_LIMITS.table_marks,
    ) -> None:
        self.machine = machine
        self._stepper = Stepper(machine)
        self._states_left, self._moves_left, self._marks_left = states, moves, marks
        self._states: dict[frozenset[State], TableState] = {}
        self._switches: dict[tuple[str, str], Switch] = {
            (each.kind, each.label): each for each in machine.switches
        }
        starts, self.first_timers = self._stepper.begin()
        self.first = self._state(frozenset(starts))

    @property
    def states(self) -> tuple[TableState, ...]:
        """The states that have been made and kept so far, in the order of their first visit."""
        return tuple(self._states.values())

    def move(self, state: TableState, given: Input) -> MachineMove:
        known = state.moves.get(given)
        return known if known is not None else self._make(state, given)

    def _make(self, state: TableState, given: Input) -> MachineMove:
        active = dict.fromkeys(state.active, NOW)
        kind, what = given
        if isinstance(what, str):
            switch = self._switches[kind, what]
            if switch.requires in active:
                for each in switch.clear:
                    active.pop(each, None)
                active.update(dict.fromkeys(switch.target, NOW))
            taken = PassResult()
        elif kind == "due":
            taken = self._stepper.take(active, due=what)
        else:
            taken = self._stepper.take(active, atoms=what)
        move = MachineMove(
            self._state(frozenset(active)), tuple(taken.effects), tuple(taken.started)
        )
        # Past the budget a state is not kept and never found again: neither are its moves.
        if self._moves_left > 0 and self._states.get(state.active) is state:
            self._moves_left -= 1
            state.moves[given] = move
        return move

    def _state(self, active: frozenset[State]) -> TableState:
        known = self._states.get(active)
        if known is None:
            known = TableState(active)
            if self._states_left > 0 and self._marks_left >= len(active):
                self._states_left -= 1
                self._marks_left -= len(active)
                self._states[active] = known
        return known

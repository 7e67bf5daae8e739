"""Tables, made as they are needed: each set of active states becomes one state of a table.

In comes a machine without a window; out come moves, remembered by what was taken. Thirty
accumulated ports have 2^30 sets of states, but a stream visits few of them: only those are made,
and no more than a budget of states, of moves, and of active states in all. Past it the machine is
stepped directly: slower, and always possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ensue.machine.limits import DEFAULT_MACHINE_LIMITS
from ensue.machine.model import Bind, Emit, Machine, State, Switch, Timer
from ensue.machine.stepping import NOW, Fired, PassResult, Stepper


@dataclass(eq=False, slots=True)
class TableState:
    """A set of active states; the moves that are known from it."""

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


class MachineTable:
    """A machine as a table that grows with what it is asked. Shared by all runs of the machine."""

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
        # A move is worth keeping only from a state that can be come to again.
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

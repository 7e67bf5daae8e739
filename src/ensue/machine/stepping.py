"""The step of a machine: one pass over its transitions, for an event or for timeouts that are due.

The cost is linear in the size of the expression; there may be a window, and no table is needed.
Lazy tables ask a `Stepper` for their moves (`determinise`).

A pass goes over the transitions in their order. Where few of them wait for an input, each of these
is tested. Else there is an index by *pivots*: a transition is enabled only if a state of its pivot,
one of its enabling sets, is active. So a pass tests the transitions whose pivot was active at its
beginning, and those whose pivot it has set itself. All others are disabled at their turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ensue.machine.model import Bind, Branch, Emit, Fire, Machine, State, Timer, Transition

NOW = float("inf")
"""The start of a state that needs no event before the present one."""

Starts = dict[State, float]
"""The active states, each with its start (always NOW in a machine without a window)."""

SMALL_MACHINE = 24
"""Up to so many transitions that an input may take, testing all is quicker than an index."""
INPUTS_REMEMBERED = 1024
"""The most sets of atoms whose transitions are remembered."""


@dataclass(frozen=True, slots=True)
class Fired:
    """A branch that has triggered, with its active labels and its bound places."""

    branch: int
    labels: frozenset[str]
    places: tuple[int, ...]


@dataclass(slots=True)
class PassResult:
    """The effects of one pass in their order, and the timeouts that it has started."""

    effects: list[Emit | Bind | Fired] = field(default_factory=list)
    started: list[Timer] = field(default_factory=list)


class _Prepared(NamedTuple):
    """A transition, ready to be tried: enabling sets of one state apart from the others."""

    reads: bool
    singles: tuple[State, ...]
    others: tuple[frozenset[State], ...]
    effect: Emit | Bind | Fire | None
    clear: tuple[State, ...]
    target: tuple[tuple[State, bool], ...]
    """The states that are set, and whether each needs no earlier event than the present one."""
    started: tuple[Timer, ...]


class Stepper:
    """The step of one machine. Callers hold the state of a run."""

    def __init__(self, machine: Machine, small: int = SMALL_MACHINE) -> None:
        self.machine = machine
        self._timers = {
            transition.input.state: transition.input
            for transition in machine.transitions
            if isinstance(transition.input, Timer)
        }
        self._prepared = [self._prepare(each) for each in machine.transitions]
        self._small = small
        self._of_atoms: dict[frozenset[int], list[_Prepared] | None] = {}

    @cached_property
    def _index(self) -> TransitionIndex:
        return TransitionIndex(self.machine)

    def _prepare(self, x: Transition) -> _Prepared:
        return _Prepared(
            x.input is not None,
            tuple(state for states in x.enabling if len(states) == 1 for state in states),
            tuple(states for states in x.enabling if len(states) != 1),
            x.effect,
            tuple(x.clear),
            tuple((state, state in self.machine.constant) for state in x.target),
            tuple(self._timers[state] for state in x.target if state in self._timers),
        )

    def begin(self) -> tuple[Starts, list[Timer]]:
        """The active states at the start, and the timeouts that run from there."""
        starts = dict.fromkeys(self.machine.initial, NOW)
        return starts, [self._timers[state] for state in starts if state in self._timers]

    def take(
        self,
        active: Starts,
        atoms: frozenset[int] = frozenset(),
        due: frozenset[State] = frozenset(),
        now: float = NOW,
    ) -> PassResult:
        """Change `active` by one event (its atoms), one tick (the timeouts due) or neither."""
        present = dict(active)
        taken = PassResult()
        few = self._few_that_read(atoms, due)
        if few is not None:
            for transition in few:
                self._try(transition, now, active, present, taken)
            return taken
        index, transitions = self._index, self.machine.transitions
        waiting = index.candidates(present, atoms, due)
        known = set(waiting)
        heapify(waiting)
        while waiting:
            number = heappop(waiting)
            if self._try(self._prepared[number], now, active, present, taken):
                for state in transitions[number].target:
                    for other in index.internal.get(state, ()):
                        if other > number and other not in known:
                            known.add(other)
                            heappush(waiting, other)
        return taken

    def _few_that_read(
        self, atoms: frozenset[int], due: frozenset[State]
    ) -> list[_Prepared] | None:
        """The transitions that wait for this input or for none; None if they are many."""
        if due or atoms not in self._of_atoms:
            found = [
                prepared
                for x, prepared in zip(self.machine.transitions, self._prepared, strict=True)
                if x.input is None
                or x.input in atoms
                or (isinstance(x.input, Timer) and x.input.state in due)
            ]
            few = found if len(found) <= self._small else None
            if due or len(self._of_atoms) >= INPUTS_REMEMBERED:
                return few
            self._of_atoms[atoms] = few
        return self._of_atoms[atoms]

    def _try(
        self, x: _Prepared, now: float, active: Starts, present: Starts, taken: PassResult
    ) -> bool:
        """Take a transition if it is enabled.

        `present` has the states from before the pass, `active` the states now.
        """
        source = present if x.reads else active
        # The start of a transition is the earliest of the latest starts of its sets.
        start = now
        for state in x.singles:
            held = source.get(state)
            if held is None:
                return False
            if held < start:
                start = held
        for states in x.others:
            latest = max([source[each] for each in states if each in source], default=None)
            if latest is None:
                return False
            if latest < start:
                start = latest
        effect = x.effect
        if effect is not None:
            if isinstance(effect, Fire):
                oldest = now - (self.machine.window or 0)
                if start < oldest:
                    return False
                branch = self.machine.branches[effect.branch]
                taken.effects.append(_fired(effect.branch, branch, active, oldest))
            elif not (
                isinstance(effect, Bind)
                and effect.first
                and all(state in active for state, _ in x.target)
            ):
                taken.effects.append(effect)
        for state in x.clear:
            active.pop(state, None)
            present.pop(state, None)
        for state, is_constant in x.target:
            active[state] = NOW if is_constant else start
        taken.started += x.started
        return True


class TransitionIndex:
    """Transitions by the states of their pivot, the enabling set that is active most rarely."""

    def __init__(self, machine: Machine) -> None:
        self.internal: dict[State, list[int]] = {}
        self._read: dict[State, dict[int, list[int]]] = {}
        self._ticked: dict[State, list[int]] = {}
        self._by_atom: dict[int, list[int]] = {}
        for number, transition in enumerate(machine.transitions):
            pivot = pivot_of(transition, machine.constant)
            if transition.input is None:
                for state in pivot:
                    self.internal.setdefault(state, []).append(number)
            elif isinstance(transition.input, Timer):
                self._ticked.setdefault(transition.input.state, []).append(number)
            else:
                self._by_atom.setdefault(transition.input, []).append(number)
                for state in pivot:
                    by_atom = self._read.setdefault(state, {})
                    by_atom.setdefault(transition.input, []).append(number)

    def candidates(
        self, present: Mapping[State, float], atoms: Iterable[int], due: Iterable[State]
    ) -> list[int]:
        """The transitions that the states at the beginning of a pass may enable."""
        found = {number for state in due for number in self._ticked.get(state, ())}
        reading = [self._by_atom[atom] for atom in atoms if atom in self._by_atom]
        if sum(map(len, reading)) <= len(present):
            found.update(*reading)
        else:
            for state in present:
                by_atom = self._read.get(state)
                if by_atom is not None:
                    found.update(*(by_atom[atom] for atom in atoms if atom in by_atom))
        internal = self.internal
        for state in present:
            if state in internal:
                found.update(internal[state])
        return list(found)


def pivot_of(transition: Transition, constant: frozenset[State]) -> frozenset[State]:
    """The enabling set that is active most rarely: without a constant state, small, and late."""

    def rarity(states: frozenset[State]) -> tuple[bool, int]:
        return bool(states & constant), len(states)

    return min(reversed(transition.enabling), key=rarity, default=frozenset())


def _fired(number: int, branch: Branch, active: Starts, oldest: float) -> Fired:
    def counts(state: State) -> bool:
        return active.get(state, -NOW) >= oldest

    labels = frozenset(label for label, state in branch.labels if counts(state))
    places = tuple(place for place, _, state in branch.places if counts(state))
    return Fired(number, labels, places)

"""The step of a machine: one pass over its transitions, for an event or for timeouts that are due.

The cost is linear in the size of the expression; there may be a window, and no table is needed.
Lazy tables ask a `Stepper` for their moves (`determinise`).

A pass goes over the transitions in their order. In a small machine each transition is tested. A
large machine has an index by *pivots*: a transition is enabled only if a state of its pivot, one of
its enabling sets, is active. So a pass tests the transitions whose pivot was active at its
beginning, and those whose pivot it has set itself. All others are disabled at their turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from ensue.machine.model import Bind, Branch, Emit, Fire, Machine, State, Timer, Transition

NOW = float("inf")
"""The start of a state that needs no event before the present one."""

Starts = dict[State, float]
"""The active states, each with its start (always NOW in a machine without a window)."""

SMALL_MACHINE = 24
"""Up to so many transitions, testing all of them is quicker than an index."""


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


class Stepper:
    """The step of one machine. Callers hold the state of a run."""

    def __init__(self, machine: Machine, small: int = SMALL_MACHINE) -> None:
        self.machine = machine
        self._timers = {
            transition.input.state: transition.input
            for transition in machine.transitions
            if isinstance(transition.input, Timer)
        }
        self._index = TransitionIndex(machine) if len(machine.transitions) > small else None

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
        if self._index is None:
            for transition in self.machine.transitions:
                self._try(transition, atoms, due, now, active, present, taken)
            return taken
        index, transitions = self._index, self.machine.transitions
        waiting = index.candidates(present, atoms, due)
        known = set(waiting)
        heapify(waiting)
        while waiting:
            number = heappop(waiting)
            transition = transitions[number]
            if self._try(transition, atoms, due, now, active, present, taken):
                for state in transition.target:
                    for other in index.internal.get(state, ()):
                        if other > number and other not in known:
                            known.add(other)
                            heappush(waiting, other)
        return taken

    def _try(
        self,
        transition: Transition,
        atoms: frozenset[int],
        due: frozenset[State],
        now: float,
        active: Starts,
        present: Starts,
        taken: PassResult,
    ) -> bool:
        """Take a transition if it waits for this input and is enabled.

        `present` has the states from before the pass, `active` the states now.
        """
        wanted = transition.input
        if wanted is None:
            start = _enabled(transition, active)
        elif wanted in atoms or (isinstance(wanted, Timer) and wanted.state in due):
            start = _enabled(transition, present)
        else:
            return False
        if start is None:
            return False
        start = min(start, now)
        match transition.effect:
            case Fire(branch):
                oldest = now - (self.machine.window or 0)
                if start < oldest:
                    return False
                taken.effects.append(_fired(branch, self.machine.branches[branch], active, oldest))
            case Bind(_, first) if first and transition.target <= active.keys():
                pass
            case Emit() | Bind() as effect:
                taken.effects.append(effect)
        for state in transition.clear:
            active.pop(state, None)
            present.pop(state, None)
        for state in transition.target:
            active[state] = NOW if state in self.machine.constant else start
            if state in self._timers:
                taken.started.append(self._timers[state])
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


def _enabled(transition: Transition, source: Mapping[State, float]) -> float | None:
    """The start of a transition: the earliest of its sets' latest starts; None if not enabled."""
    start = NOW
    for states in transition.enabling:
        latest: float | None = None
        for state in states:
            held = source.get(state)
            if held is not None and (latest is None or held > latest):
                latest = held
        if latest is None:
            return None
        if latest < start:
            start = latest
    return start


def _fired(number: int, branch: Branch, active: Starts, oldest: float) -> Fired:
    def counts(state: State) -> bool:
        return active.get(state, -NOW) >= oldest

    labels = frozenset(label for label, state in branch.labels if counts(state))
    places = tuple(place for place, _, state in branch.places if counts(state))
    return Fired(number, labels, places)

"""Takes a machine through a moment, directly from its transitions.

This is the form that is linear in the expression: no table is needed, and a window is no trouble.
Tables are made by asking it, state set by state set (`determinise`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ensue.machine.model import Bind, Branch, Emit, Fire, Machine, State, Timer, Transition

NOW = float("inf")
"""The start of what needs no earlier event than the present one."""

Starts = dict[State, float]
"""The active states, each with its start (always NOW in a machine without a window)."""


@dataclass(frozen=True, slots=True)
class Fired:
    """A branch that has triggered: its active labels, and the places that are bound."""

    branch: int
    labels: frozenset[str]
    places: tuple[int, ...]


@dataclass(slots=True)
class Taken:
    """What one pass did: effects in their order, and the timeouts that were started."""

    effects: list[Emit | Bind | Fired] = field(default_factory=list)
    started: list[Timer] = field(default_factory=list)


class Stepper:
    """One machine, ready to be stepped. It holds no state of a run: that is the caller's."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._timers = {
            transition.input.state: transition.input
            for transition in machine.transitions
            if isinstance(transition.input, Timer)
        }

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
    ) -> Taken:
        """Change `active` by one event (its atoms), one tick (the timeouts due) or neither."""
        present = dict(active)
        taken = Taken()
        for transition in self.machine.transitions:
            wanted = transition.input
            if wanted is None:
                start = _enabled(transition, active)
            elif wanted in atoms or (isinstance(wanted, Timer) and wanted.state in due):
                start = _enabled(transition, present)
            else:
                continue
            if start is not None:
                self._take(transition, min(start, now), now, active, present, taken)
        return taken

    def _take(
        self,
        transition: Transition,
        start: float,
        now: float,
        active: Starts,
        present: Starts,
        taken: Taken,
    ) -> None:
        match transition.effect:
            case Fire(branch):
                oldest = now - (self.machine.window or 0)
                if start < oldest:
                    return
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


def _enabled(transition: Transition, source: Mapping[State, float]) -> float | None:
    """The start of an enabled transition: the earliest, over its sets, of the latest in each."""
    start = NOW
    for states in transition.enabling:
        latest = max((source[state] for state in states if state in source), default=None)
        if latest is None:
            return None
        start = min(start, latest)
    return start


def _fired(number: int, branch: Branch, active: Starts, oldest: float) -> Fired:
    def counts(state: State) -> bool:
        return active.get(state, -NOW) >= oldest

    labels = frozenset(label for label, state in branch.labels if counts(state))
    places = tuple(place for place, _, state in branch.places if counts(state))
    return Fired(number, labels, places)

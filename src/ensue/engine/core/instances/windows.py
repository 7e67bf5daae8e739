"""Machines with a window as Python that is made for them: a list of starts, changed in place.

In comes a machine that is small enough (`is_written_out`); out goes, for each mask of atoms, a
function that takes the starts of its states through an event, as `ensue.machine.stepping` says it
(`window_text` writes it). A larger machine under a key is left to the `Stepper`, which looks only
at what is active.

The list holds the places of a rule first, then the starts: a number of microseconds for each state
that changes; NEVER stands for one that is not active, ALWAYS for the start of what needs no earlier
event than the present one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ensue.engine.core.instances.compiling import compiled
from ensue.engine.core.instances.firing import Noted
from ensue.engine.core.instances.window_text import ALWAYS, NEVER, WindowText, Written
from ensue.machine.model import Machine, State
from ensue.machine.stepping import NOW, Fired, Starts

__all__ = ["ALWAYS", "NEVER", "FirstMove", "Held", "HeldStarts", "WindowSteps", "is_written_out"]

MOST_TRANSITIONS = 160
"""Up to how many transitions a machine is written out, of which every key holds all states."""

MOST_OF_ONE_KEY = 2500
"""As `MOST_TRANSITIONS`, for a rule without keys."""

MOST_MASKS = 256
MOST_WRITTEN = 20_000
"""For how many masks of atoms a machine has a function of its own, and how many lines in all."""


def is_written_out(machine: Machine, keyed: bool) -> bool:
    """Whether a machine is small enough that holding all of its states pays."""
    return len(machine.transitions) <= (MOST_TRANSITIONS if keyed else MOST_OF_ONE_KEY)


HeldStarts = tuple[int, ...]

Held = list[Any]
"""The places, each with what is noted there or None, and then the starts."""

Take = Callable[[Held, Noted, int, int], list[tuple[int, int]] | None]
"""What is held, what is noted, the time, the oldest time in the window; out come the branches that
have fired: each with a mask of the labels and places that count."""


class FirstMove:
    """What an event does to a key that has not started, as far as it is to be known beforehand.

    It has what a move of `rows` has: either it is a no-op, or the key has to be begun and stepped.
    """

    is_quiet = False

    def __init__(self, is_noop: bool) -> None:
        self.is_noop = is_noop


NOTHING, BEGINS = FirstMove(is_noop=True), FirstMove(is_noop=False)


class WindowSteps:
    """One machine with a window. It holds no state of a run: that is the caller's."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.window = machine.window or 0
        changed: set[State] = set()
        for transition in machine.transitions:
            changed |= transition.clear | transition.target
        for switch in machine.switches:
            changed |= switch.clear | switch.target
        self._fixed = machine.initial - changed
        self._held = [s for s in range(len(machine.names)) if s in changed]
        numbers = [place for branch in machine.branches for place, _, _ in branch.places]
        self.place_count = max(numbers, default=-1) + 1
        self.first = self.from_starts(dict.fromkeys(machine.initial, NOW))
        self.begins_empty = not machine.initial & changed
        self.blank = self.held(self.first)
        slots = {state: self.place_count + at for at, state in enumerate(self._held)}
        self._text = WindowText(machine, slots, self._fixed)
        self._settle: Callable[..., Any] | None = None
        self.known: dict[int, Take] = {}
        self._lines_left = MOST_WRITTEN
        self._any: Callable[..., Any] | None = None
        self.first_steps: dict[int, FirstMove] = {}
        self._fired: dict[tuple[int, int], Fired] = {}

    def held(self, starts: HeldStarts) -> Held:
        """A list for functions to change, with nothing in its places."""
        return [*([None] * self.place_count), *starts]

    def from_starts(self, active: Starts) -> HeldStarts:
        return tuple(_number(active.get(state)) for state in self._held)

    def to_starts(self, starts: HeldStarts) -> Starts:
        active = dict.fromkeys(self._fixed, NOW)
        for state, start in zip(self._held, starts, strict=True):
            if start != NEVER:
                active[state] = NOW if start == ALWAYS else start
        return active

    def take(self, mask: int) -> Take:
        """The function for events with these atoms."""
        known = self.known.get(mask)
        if known is None:
            if self._lines_left <= 0 or len(self.known) >= MOST_MASKS:
                return partial(self._take_any(), mask)
            written = self._text.reading(mask)
            self._lines_left -= len(written.lines)
            known = self.known[mask] = self._compiled(written, "h, noted, now, oldest")
        return known

    def _take_any(self) -> Callable[..., Any]:
        if self._any is None:
            self._any = self._compiled(self._text.reading_any(), "mask, h, noted, now, oldest")
        return self._any

    def _compiled(self, written: Written, arguments: str) -> Callable[..., Any]:
        if self._text.settles_apart and self._settle is None:
            settling = self._text.settling()
            text = settling.text("settle", "h, noted, now, oldest, fired")
            self._settle = compiled(text, "settle", {**settling.names})
        scope = {**written.names, "settle": self._settle}
        take: Callable[..., Any] = compiled(written.text("take", arguments), "take", scope)
        return take

    def first_step(self, mask: int) -> FirstMove:
        """What an event does to a key that has not started."""
        known = self.first_steps.get(mask)
        if known is None:
            held = self.blank.copy()
            fired = self.take(mask)(held, (0, 0), 0, -self.window)
            known = NOTHING if fired is None and held == self.blank else BEGINS
            if len(self.first_steps) < 2 * MOST_MASKS:
                self.first_steps[mask] = known
        return known

    def fired(self, branch: int, counting: int) -> Fired:
        """The firing of a branch, with the labels and places that count for it."""
        known = self._fired.get((branch, counting))
        if known is None:
            about = self.machine.branches[branch]
            labels = frozenset(
                label for place, (label, _) in enumerate(about.labels) if counting >> place & 1
            )
            rest = counting >> len(about.labels)
            places = tuple(p for at, (p, _, _) in enumerate(about.places) if rest >> at & 1)
            known = self._fired[branch, counting] = Fired(branch, labels, places)
        return known


def _number(start: float | None) -> int:
    if start is None:
        return NEVER
    return ALWAYS if start == NOW else int(start)

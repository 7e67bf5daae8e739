"""Machines with a window as Python that is made for them: one pass, with a variable for each state.

In comes a machine that is small enough (`is_written_out`); out goes, for each mask of atoms, a
function that takes the starts of its states through an event, as `ensue.machine.stepping` says it:
the transitions that such an event can take, in their order, with their conditions and nothing else.
A larger machine is left to the `Stepper`, which looks only at what is active.

A start is a number of microseconds; NEVER stands for a state that is not active, ALWAYS for the
start of what needs no earlier event than the present one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ensue.engine.step.firing import Noted
from ensue.machine.model import Bind, Fire, Machine, State, Transition
from ensue.machine.stepping import NOW, Fired, Starts

MOST_TRANSITIONS = 160
"""Up to how many transitions a machine is written out."""

MOST_OF_ONE_KEY = 2500
"""The same where there is one key only, whose states may well all be active, and few atoms."""

FEW_ATOMS = 4
MOST_MASKS = 256
MOST_WRITTEN = 20_000
"""For how many masks of atoms a machine has a function of its own, and how long all of them are."""


def is_written_out(machine: Machine, keyed: bool) -> bool:
    """Whether a machine is small enough, or so often active as a whole, that it pays."""
    size = len(machine.transitions)
    if size <= MOST_TRANSITIONS:
        return True
    return not keyed and len(machine.atoms) <= FEW_ATOMS and size <= MOST_OF_ONE_KEY


NEVER = -(1 << 62)
ALWAYS = 1 << 62

HeldStarts = tuple[int, ...]
Take = Callable[
    [HeldStarts, list[Noted | None], Noted, int, int],
    tuple[HeldStarts, list[tuple[int, int]] | None],
]
"""Starts, places, what is noted, the time, the oldest time in the window; out come the new starts,
and which branches have fired: each with a mask of the labels and places that count."""


class Nothing:
    """A step that changes nothing, as `ensue.engine.step.rows` says it."""

    is_nothing = is_quiet = True


NOTHING = Nothing()


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
        self.first = self.from_starts(dict.fromkeys(machine.initial, NOW))
        self._known: dict[int, Take] = {}
        self._most_masks = min(MOST_MASKS, MOST_WRITTEN // max(1, len(machine.transitions)))
        self._any: Callable[..., Any] | None = None
        self.idle: dict[int, Nothing] = {}
        self._does_something: set[int] = set()
        numbers = [place for branch in machine.branches for place, _, _ in branch.places]
        self._places = max(numbers, default=-1) + 1
        self._fired: dict[tuple[int, int], Fired] = {}

    def from_starts(self, active: Starts) -> HeldStarts:
        return tuple(_number(active.get(state)) for state in self._held)

    def to_starts(self, held: HeldStarts) -> Starts:
        active = dict.fromkeys(self._fixed, NOW)
        for state, start in zip(self._held, held, strict=True):
            if start != NEVER:
                active[state] = NOW if start == ALWAYS else start
        return active

    def take(self, mask: int) -> Take:
        """The function for events with these atoms."""
        known = self._known.get(mask)
        if known is None:
            if len(self._known) >= self._most_masks:
                if self._any is None:
                    self._any = self._written(None)
                return partial(self._any, mask)
            known = self._known[mask] = partial(self._written(mask), mask)
        return known

    def first_step(self, mask: int) -> Nothing | None:
        """What an event does to a key that has not started, if it does nothing."""
        if mask in self._does_something:
            return None
        places: list[Noted | None] = [None] * self._places
        taken = self.take(mask)(self.first, places, (0, 0), 0, -self.window)
        if taken != (self.first, None) or any(places):
            if len(self._does_something) < MOST_MASKS:
                self._does_something.add(mask)
            return None
        if len(self.idle) < MOST_MASKS:
            self.idle[mask] = NOTHING
        return NOTHING

    def fired(self, branch: int, counting: int) -> Fired:
        """What has fired, of which these labels and places count."""
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

    # --- the text -------------------------------------------------------------------------------

    def _written(self, mask: int | None) -> Callable[..., Any]:
        """For one mask, or with a look at the mask before each transition that reads."""
        taken = [
            each
            for each in self.machine.transitions
            if each.input is None
            or (isinstance(each.input, int) and (mask is None or mask >> each.input & 1))
        ]
        read = {
            s for each in taken if each.input is not None for set_ in each.enabling for s in set_
        }
        held = "".join(f"s{state}, " for state in self._held)
        lines = [f"{held.rstrip(', ')}, = starts"] if held else []
        lines += [f"p{state} = s{state}" for state in self._held if state in read]
        lines += ["fired = None"]
        for each in taken:
            body = self._transition(each, read)
            if mask is None and isinstance(each.input, int) and body:
                lines += [f"if mask & {1 << each.input}:", *(f"    {line}" for line in body)]
            else:
                lines += body
        lines += [f"return ({held}), fired"]
        text = "def take(mask, starts, places, noted, now, oldest):\n    " + "\n    ".join(lines)
        scope: dict[str, Callable[..., Any]] = {}
        exec(compile(text, "<window>", "exec"), scope)
        return scope["take"]

    def _transition(self, x: Transition, read: Iterable[State]) -> list[str]:
        letter = "s" if x.input is None else "p"
        lines, starts = [], []
        for number, states in enumerate(x.enabling):
            if states & self._fixed:
                continue
            names = [f"{letter}{state}" for state in sorted(states) if state in self._held]
            if not names:
                return []
            latest = names[0] if len(names) == 1 else f"max({', '.join(names)})"
            if len(names) == 2:
                latest = f"{names[0]} if {names[0]} > {names[1]} else {names[1]}"
            lines.append(f"x{number} = {latest}")
            starts.append(f"x{number}")
        conditions = [f"{start} != {NEVER}" for start in starts]
        inner = [f"t = {starts[0]} if {starts[0]} < now else now" if starts else "t = now"]
        inner += [f"if {start} < t: t = {start}" for start in starts[1:]]
        body: list[str] = []
        match x.effect:
            case Bind(place):
                body.append(f"places[{place}] = noted")
            case Fire(branch):
                about = self.machine.branches[branch]
                counted = [s for _, s in about.labels] + [s for _, _, s in about.places]
                body.append("c = 0")
                body += [
                    f"c |= {1 << at}"
                    if state in self._fixed
                    else f"if s{state} >= oldest: c |= {1 << at}"
                    for at, state in enumerate(counted)
                    if state in self._fixed or state in self._held
                ]
                body += ["if fired is None: fired = []", f"fired.append(({branch}, c))"]
            case _:
                pass
        for state in sorted(x.clear):
            body.append(f"s{state} = {NEVER}")
            if state in read:
                body.append(f"p{state} = {NEVER}")
        for state in sorted(x.target):
            body.append(f"s{state} = {ALWAYS if state in self.machine.constant else 't'}")
        if isinstance(x.effect, Fire):
            body = [*inner, "if t >= oldest:", *(f"    {line}" for line in body)]
        else:
            body = [*inner, *body]
        if conditions:
            return [*lines, f"if {' and '.join(conditions)}:", *(f"    {line}" for line in body)]
        return [*lines, *body]


def _number(start: float | None) -> int:
    if start is None:
        return NEVER
    return ALWAYS if start == NOW else int(start)

"""Machines with a window as generated Python: functions that change a list of starts in place.

In comes a machine that is small enough (`is_generated`); out goes, for each mask of atoms, a
function that takes the starts of its states through an event, as `ensue.machine.stepping` defines
it (`WindowSteps`). A larger machine under a key is left to the `Stepper`, which looks only at
active states. The list holds the places of a rule first, then the starts: a number of microseconds
for each state that changes; NEVER stands for a state that is not active, ALWAYS for the start of a
state that needs no earlier event than the present one.

`WindowText` writes the functions: the transitions that an event with certain atoms can take, in
their order, with their conditions and nothing else, so that a text has the length of what its event
can change, not that of the machine. Internal transitions are the same for every mask; where there
are many, they are a function of their own, `settle`, which is written once. Slots of the list have
names in the order in which they are met, so that functions which do the same elsewhere in the list
have the same text, and are compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ensue.engine.core.instances.compiling import function_from
from ensue.engine.core.instances.firing import NumberedEvent
from ensue.engine.sizes import sizes
from ensue.machine.model import Bind, Fire, Machine, State, Transition
from ensue.machine.stepping import NOW, Fired, Starts

NEVER = -(1 << 62)
"""The start of a state that is not active: earlier than any window reaches."""

ALWAYS = 1 << 62
"""The start of what needs no earlier event than the present one."""


@dataclass
class FunctionText:
    """The text of a function, and the numbers of the slots that it names."""

    lines: list[str]
    names: dict[str, int] = field(default_factory=dict)

    def text(self, function: str, arguments: str) -> str:
        return "\n    ".join([f"def {function}({arguments}):", *self.lines])


class WindowText:
    """Writes the functions of one machine.

    `slots` says where the start of each state is kept; `fixed` are states that never change.
    """

    def __init__(
        self, machine: Machine, slots: Mapping[State, int], fixed: frozenset[State]
    ) -> None:
        self._machine = machine
        self._slots = slots
        self._fixed = fixed
        self._internal = [x for x in machine.transitions if x.input is None]
        length = len(self._written(self._internal, last=()).lines)
        self.settles_apart = length > sizes().settled_repetitions and self._can_settle_last()

    def settle(self) -> FunctionText:
        """`settle(h, numbered, now, oldest, fired)`: all internal transitions."""
        return self._written(self._internal, last=["return fired"])

    def take(self, mask: int) -> FunctionText:
        """`take(h, numbered, now, oldest)` for events with exactly these atoms."""
        taken = [x for x in self._machine.transitions if self._is_taken(x, mask)]
        written = self._written(taken, last=self._last())
        written.lines.insert(0, "fired = None")
        return written

    def take_any(self) -> FunctionText:
        """`take(mask, h, numbered, now, oldest)` for all events."""
        taken = [x for x in self._machine.transitions if self._is_taken(x, -1)]
        written = self._written(taken, last=self._last(), masked=True)
        written.lines.insert(0, "fired = None")
        return written

    def _is_taken(self, x: Transition, mask: int) -> bool:
        if x.input is None:
            return not self.settles_apart
        return isinstance(x.input, int) and bool(mask >> x.input & 1)

    def _last(self) -> list[str]:
        return [
            "return settle(h, numbered, now, oldest, fired)"
            if self.settles_apart
            else "return fired"
        ]

    def _can_settle_last(self) -> bool:
        """Whether input transitions may run before all internal ones, with the same outcome."""
        changed: set[State] = set()
        read: set[State] = set()
        fires = False
        for x in reversed(self._machine.transitions):
            if x.input is not None:
                changed |= x.target | x.clear
                read.update(*x.enabling)
                fires = fires or isinstance(x.effect, Fire)
                continue
            touched = x.target.union(x.clear, *x.enabling, self._counted(x))
            if touched & changed or x.clear & read or (fires and isinstance(x.effect, Fire)):
                return False
        return True

    def _counted(self, x: Transition) -> list[State]:
        """The labels and places of a branch that fires, in the order of their bits."""
        if not isinstance(x.effect, Fire):
            return []
        about = self._machine.branches[x.effect.branch]
        return [s for _, s in about.labels] + [s for _, _, s in about.places]

    # --- lines ----------------------------------------------------------------------------------

    def _written(
        self, taken: Sequence[Transition], last: Sequence[str], masked: bool = False
    ) -> FunctionText:
        writing = _SlotNames(self._slots)
        lines = writing.written.lines
        writing.copy(self._overtaken(taken))
        for x in taken:
            body = self._transition(x, writing)
            if masked and isinstance(x.input, int):
                lines += [f"if mask & {1 << x.input}:", *_indented(body or ["pass"])]
            else:
                lines += body
        lines += last
        return writing.written

    def _overtaken(self, taken: Sequence[Transition]) -> list[State]:
        """States that change before an input transition reads them: it needs their old starts."""
        found: dict[State, None] = {}
        changed: set[State] = set()
        for x in taken:
            if x.input is not None:
                read = frozenset().union(*x.enabling)
                found.update(dict.fromkeys(sorted(read & changed & self._slots.keys())))
            changed |= x.target
        return list(found)

    def _transition(self, x: Transition, writing: _SlotNames) -> list[str]:
        lines, starts = [], []
        for states in x.enabling:
            if states & self._fixed:
                continue
            held = [s for s in sorted(states) if s in self._slots]
            if not held:
                return []
            names = [writing.start(state, x.input is not None) for state in held]
            starts.append(names[0] if len(names) == 1 else f"max({', '.join(names)})")
        match starts:
            case []:
                lines.append("t = now")
            case [only]:
                lines.append(f"t = {only}")
            case [one, other]:
                lines += [f"t = {one}; x = {other}", "if x < t: t = x"]
            case _:
                lines.append(f"t = min({', '.join(starts)})")
        inner: list[str] = [] if not starts else ["if t > now: t = now"]
        match x.effect:
            case Bind(place):
                inner.append(f"h[{writing.name(place)}] = numbered")
            case Fire(branch):
                inner.append("c = 0")
                for at, state in enumerate(self._counted(x)):
                    if state in self._fixed:
                        inner.append(f"c |= {1 << at}")
                    elif state in self._slots:
                        inner.append(f"if {writing.slot(state)} >= oldest: c |= {1 << at}")
                inner += [f"fired = [*(fired or ()), ({branch}, c)]"]
            case _:
                pass
        for state in sorted(x.clear):
            inner += writing.set(state, str(NEVER), also_as_it_was=True)
        for state in sorted(x.target):
            inner += writing.set(state, str(ALWAYS) if state in self._machine.constant else "t")
        if isinstance(x.effect, Fire):
            # What is not active lies before every window.
            return [*lines, "if t >= oldest:", *_indented(inner)]
        if not starts:
            return [*lines, *inner]
        return [*lines, f"if t != {NEVER}:", *_indented(inner)]


class _SlotNames:
    """Names for slots, by the order in which they are asked for, and copies of overtaken ones."""

    def __init__(self, slots: Mapping[State, int]) -> None:
        self._slots = slots
        self._known: dict[int, str] = {}
        self._copied: dict[State, str] = {}
        self.written = FunctionText([])

    def name(self, number: int) -> str:
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = f"i{len(self._known)}"
            self.written.names[known] = number
        return known

    def slot(self, state: State) -> str:
        return f"h[{self.name(self._slots[state])}]"

    def copy(self, states: Iterable[State]) -> None:
        for state in states:
            self._copied[state] = f"p{len(self._copied)}"
            self.written.lines.append(f"{self._copied[state]} = {self.slot(state)}")

    def start(self, state: State, as_it_was: bool) -> str:
        if as_it_was and state in self._copied:
            return self._copied[state]
        return self.slot(state)

    def set(self, state: State, value: str, also_as_it_was: bool = False) -> list[str]:
        lines = [f"{self.slot(state)} = {value}"]
        if also_as_it_was and state in self._copied:
            lines.append(f"{self._copied[state]} = {value}")
        return lines


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


MOST_MASKS = 256
"""The most masks of a machine that have a function of their own."""


def is_generated(machine: Machine, keyed: bool) -> bool:
    """Whether a machine is small enough that holding all of its states pays."""
    most = sizes().transitions_of_a_window if keyed else sizes().transitions_without_keys
    return len(machine.transitions) <= most


HeldStarts = tuple[int, ...]

PlacesAndStarts = list[Any]
"""The places, each with its numbered event or None, and then the starts."""

Take = Callable[[PlacesAndStarts, NumberedEvent, int, int], list[tuple[int, int]] | None]
"""Takes places and starts, the event, its time and the oldest time in the window; returns the
branches that have fired, each with a mask of the labels and places that count."""


class FirstMove:
    """What an event does to a key that has not started: nothing, or it starts an instance.

    It has the attributes of a `RowMove`, as generated code reads them.
    """

    is_quiet = False

    def __init__(self, is_noop: bool) -> None:
        self.is_noop = is_noop


NO_MOVE, BEGINS = FirstMove(is_noop=True), FirstMove(is_noop=False)


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
        self._lines_left = sizes().lines_of_a_window
        self._any: Callable[..., Any] | None = None
        self.first_moves: dict[int, FirstMove] = {}
        self._fired: dict[tuple[int, int], Fired] = {}

    def held(self, starts: HeldStarts) -> PlacesAndStarts:
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
            written = self._text.take(mask)
            self._lines_left -= len(written.lines)
            known = self.known[mask] = self._compiled(written, "h, numbered, now, oldest")
        return known

    def _take_any(self) -> Callable[..., Any]:
        if self._any is None:
            self._any = self._compiled(self._text.take_any(), "mask, h, numbered, now, oldest")
        return self._any

    def _compiled(self, written: FunctionText, arguments: str) -> Callable[..., Any]:
        if self._text.settles_apart and self._settle is None:
            settle = self._text.settle()
            text = settle.text("settle", "h, numbered, now, oldest, fired")
            self._settle = function_from(text, "settle", {**settle.names})
        scope = {**written.names, "settle": self._settle}
        take: Callable[..., Any] = function_from(written.text("take", arguments), "take", scope)
        return take

    def first_move(self, mask: int) -> FirstMove:
        """What an event does to a key that has not started."""
        known = self.first_moves.get(mask)
        if known is None:
            held = self.blank.copy()
            fired = self.take(mask)(held, (0, 0), 0, -self.window)
            known = NO_MOVE if fired is None and held == self.blank else BEGINS
            if len(self.first_moves) < 2 * MOST_MASKS:
                self.first_moves[mask] = known
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

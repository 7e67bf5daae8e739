"""The text of a machine with a window: what an event with certain atoms does to a list of starts.

In comes a machine and where each of its states has its start in the list; out goes, for a mask of
atoms, the text of a function that takes the list through an event: the transitions that such an
event can take, in their order, with their conditions and nothing else. Internal transitions are
the same for every mask; where there are many, they are a function of their own, `settle`, which is
written once. A text so has the length of what its event can change, not that of the machine.

Slots of the list have names in the order in which they are met, so that functions which do the
same elsewhere in the list have the same text, and are compiled once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ensue.machine.model import Bind, Fire, Machine, State, Transition

NEVER = -(1 << 62)
"""The start of a state that is not active: earlier than any window reaches."""

ALWAYS = 1 << 62
"""The start of what needs no earlier event than the present one."""

MOST_REPEATED = 16
"""Up to how many lines of internal transitions are repeated for each mask."""


@dataclass
class Written:
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
        self.settles_apart = length > MOST_REPEATED and self._can_settle_last()

    def settling(self) -> Written:
        """`settle(h, noted, now, oldest, fired)`: all internal transitions."""
        return self._written(self._internal, last=["return fired"])

    def reading(self, mask: int) -> Written:
        """`take(h, noted, now, oldest)` for events with exactly these atoms."""
        taken = [x for x in self._machine.transitions if self._is_taken(x, mask)]
        written = self._written(taken, last=self._last())
        written.lines.insert(0, "fired = None")
        return written

    def reading_any(self) -> Written:
        """`take(mask, h, noted, now, oldest)` for all events."""
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
            "return settle(h, noted, now, oldest, fired)" if self.settles_apart else "return fired"
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
    ) -> Written:
        writing = _Writing(self._slots)
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

    def _transition(self, x: Transition, writing: _Writing) -> list[str]:
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
                inner.append(f"h[{writing.name(place)}] = noted")
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


class _Writing:
    """Names for slots, by the order in which they are asked for, and copies of overtaken ones."""

    def __init__(self, slots: Mapping[State, int]) -> None:
        self._slots = slots
        self._known: dict[int, str] = {}
        self._copied: dict[State, str] = {}
        self.written = Written([])

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

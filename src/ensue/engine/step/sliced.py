"""Machines of one structure, many at once: an integer for each state, with a bit for each machine.

In comes the structure of a machine without times; out goes, for the atoms that an event can be to
any of the machines, a function that takes all of them through the event, as
`ensue.machine.stepping` says it: the transitions in their order, each a few operations on long
integers. A transition that reads takes the machines that read the event as its atom; an internal
one those that read the event at all.

A state that is active at the start is kept as the machines in which it is *not*, so that machines
that stand at their start have no bit anywhere. With a window, a machine that would fire is only
named, and nothing is cleared: `candidates` finds out whether it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ensue.engine.step.compiling import compiled
from ensue.machine.model import Branch, Emit, Fire, Machine, State, Timer, Transition
from ensue.machine.stepping import Fired

MOST_TRANSITIONS = 400
"""Up to how many transitions machines are written out; a longer one is quicker by its table."""

MOST_FUNCTIONS = 64
"""For how many sets of atoms there is a function of its own; past that one function has all."""

Fires = tuple[int, int, int]
"""A branch, a mask of its labels and places that count (labels first), and who fires so."""

Take = Callable[..., Any]
"""`take(held, readers, *masks)` changes what is held; see `Sliced.take`."""


def is_sliced(machine: Machine) -> bool:
    """Whether a machine can be one of many: a filter whose labels do not change."""
    return (
        len(machine.transitions) <= MOST_TRANSITIONS
        and not machine.switches
        and not any(
            isinstance(each.input, Timer) or isinstance(each.effect, Emit)
            for each in machine.transitions
        )
        # What tells labels and places is not there at the start.
        and not any(machine.initial.intersection(counted_states(each)) for each in machine.branches)
    )


def only_grows(machine: Machine) -> bool:
    """Whether states only ever come, but for those of a branch that fires.

    Then what is active without times is never less than what is active with them.
    """
    return all(
        not each.target if isinstance(each.effect, Fire) else not each.clear
        for each in machine.transitions
    ) and not (machine.initial & changed_states(machine))


def counted_states(branch: Branch) -> list[State]:
    """The states that tell which labels and places of a branch count."""
    return [*(state for _, state in branch.labels), *(state for _, _, state in branch.places)]


def changed_states(machine: Machine) -> frozenset[State]:
    return frozenset[State]().union(*(each.clear | each.target for each in machine.transitions))


class Sliced:
    """One structure. It holds no state of a run: that is a list with an integer for each of `held`.

    `flipped` are the held states that are active at the start.
    """

    def __init__(self, machine: Machine, is_timed: bool) -> None:
        self.machine = machine
        self._is_timed = is_timed
        changed = changed_states(machine)
        self.held = sorted(changed)
        self.flipped = machine.initial & changed
        self.fixed = machine.initial - changed
        self._at = {state: at for at, state in enumerate(self.held)}
        self._functions: dict[int, tuple[Take, tuple[int, ...]]] = {}
        self._counted = [counted_states(each) for each in machine.branches]
        self._counted_at = [
            [(at, self._at[state]) for at, state in enumerate(each) if state in self._at]
            for each in self._counted
        ]
        self._always_counted = [
            sum(1 << at for at, state in enumerate(each) if state in self.fixed)
            for each in self._counted
        ]

    def bits(self, active: int, bit: int) -> list[int]:
        """What is held of the machine with this bit, if it stands in these states."""
        return [
            bit if (active >> state & 1) != (state in self.flipped) else 0 for state in self.held
        ]

    def active(self, held: list[int], bit: int) -> frozenset[State]:
        """The states in which the machine with this bit stands."""
        return self.fixed.union(
            state
            for state, mask in zip(self.held, held, strict=True)
            if bool(mask & bit) != (state in self.flipped)
        )

    def fired(self, branch: int, counting: int) -> Fired:
        """What has fired, of which these labels and places count (labels first)."""
        about = self.machine.branches[branch]
        on = [bool(counting >> at & 1) for at in range(len(self._counted[branch]))]
        labels = [label for (label, _), counts in zip(about.labels, on, strict=False) if counts]
        places = on[len(about.labels) :]
        bound = [
            place for (place, _, _), counts in zip(about.places, places, strict=True) if counts
        ]
        return Fired(branch, frozenset(labels), tuple(bound))

    def split(self, branch: int, who: int, held: Sequence[int]) -> list[tuple[int, int]]:
        """Those who fire, by which labels and places count for them: (who, what counts)."""
        counting = 0
        for at, where in self._counted_at[branch]:
            on = who & held[where]
            if on == who:
                counting |= 1 << at
            elif on:
                parts = self.split(branch, on, held)
                return parts + self.split(branch, who ^ on, held)
        return [(who, counting | self._always_counted[branch])]

    def take(self, atoms: int) -> tuple[Take, tuple[int, ...]]:
        """The function for events that are some of these atoms, and which masks it wants.

        It gives back a list of `Fires` or None; with a window, the mask of those that may fire.
        """
        known = self._functions.get(atoms)
        if known is None:
            if len(self._functions) >= MOST_FUNCTIONS:
                atoms = -1
                known = self._functions.get(atoms)
            if known is None:
                known = self._functions[atoms] = self._written(atoms)
        return known

    def _written(self, atoms: int) -> tuple[Take, tuple[int, ...]]:
        inputs = sorted(
            {each.input for each in self.machine.transitions if isinstance(each.input, int)}
        )
        wanted = tuple(atom for atom in inputs if atoms >> atom & 1)
        taken = [
            each for each in self.machine.transitions if each.input is None or each.input in wanted
        ]
        used: set[State] = set()
        for each in taken:
            used |= each.clear.union(each.target, *each.enabling)
        reading = [each for each in taken if each.input is not None]
        read = frozenset[State]().union(*(set_ for each in reading for set_ in each.enabling))
        result = "candidates" if self._is_timed else "fired"
        lines = [f"s{state} = held[{at}]" for state, at in self._at.items() if state in used]
        lines += [f"p{state} = s{state}" for state in self.held if state in read]
        lines += ["candidates = 0" if self._is_timed else "fired = None"]
        for each in taken:
            lines += self._transition(each, read)
        lines += [f"return {result}"]
        arguments = "".join(f", m{atom}" for atom in wanted)
        text = f"def take(held, readers{arguments}):\n    " + "\n    ".join(lines)
        return compiled(text, "take", {"split": self.split}), wanted

    def _transition(self, x: Transition, read: Iterable[State]) -> list[str]:
        hit = self._hit(x)
        if hit is None:
            return []
        is_plain = hit.isidentifier()
        if self._is_timed and isinstance(x.effect, Fire):
            return [f"candidates |= {hit}"]
        lines = [] if is_plain else [f"hit = {hit}"]
        hit = hit if is_plain else "hit"
        body = []
        if isinstance(x.effect, Fire):
            branch = x.effect.branch
            body += [
                "if fired is None: fired = []",
                f"fired += [({branch}, what, who) for who, what in split({branch}, {hit}, held)]",
            ]
        ends = {state: state in x.target for state in sorted(x.clear | x.target)}
        off = [state for state, is_set in ends.items() if is_set == (state in self.flipped)]
        # What is cleared and then set again was cleared for what this event still reads.
        unread = [state for state in sorted(x.clear) if state in read]
        if off or any(state not in self.flipped for state in unread):
            body.append(f"others = ~{hit}")
        for state in ends:
            after = "& others" if state in off else f"| {hit}"
            body.append(f"held[{self._at[state]}] = s{state} = s{state} {after}")
        for state in unread:
            body.append(f"p{state} |= {hit}" if state in self.flipped else f"p{state} &= others")
        return [*lines, f"if {hit}:", *(f"    {line}" for line in body)] if body else []

    def _hit(self, x: Transition) -> str | None:
        """Who takes a transition, as an expression; None if nobody ever can."""
        letter = "s" if x.input is None else "p"
        parts = ["readers" if x.input is None else f"m{x.input}"]
        for states in x.enabling:
            if states & self.fixed:
                continue
            some = [self._value(letter, state) for state in sorted(states) if state in self._at]
            if not some:
                return None
            parts.append(some[0] if len(some) == 1 else f"({' | '.join(some)})")
        return " & ".join(parts)

    def _value(self, letter: str, state: State) -> str:
        """The machines in which a state is active."""
        if state not in self._at:
            return "-1" if state in self.fixed else "0"
        return f"{'~' if state in self.flipped else ''}{letter}{state}"


def bits_of(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, counted from 1, the highest first."""
    while mask:
        bit = mask.bit_length()
        yield bit
        mask ^= 1 << (bit - 1)

"""Machines of a few structures, many at once: an integer for each state, a bit for each machine.

In come structures of machines without times; out goes, for what an event can be to any of the
machines, a function that takes all of them through the event, as `ensue.machine.stepping` says it:
the transitions in their order, each a few operations on long integers. Structures share the places
in which states are held, and a transition that several of them have in the same place of their
order is one `Step` for all. A step is taken with a mask of machines: those that read the event as
its atom, or, for an internal one, those that read the event at all.

A state that is active at the start is kept as the machines in which it is *not*, so that machines
that stand at their start have no bit anywhere. With a window, a machine that would fire is only
named, and nothing is cleared: `candidates` finds out whether it does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.engine.step.compiling import compiled
from ensue.machine.model import Branch, Emit, Fire, Machine, State, Timer, Transition
from ensue.machine.stepping import Fired

MOST_TRANSITIONS = 400
"""Up to how many transitions machines are written out; a longer one is quicker by its table."""

MOST_STEPS = 64
"""Up to how many steps structures are put together."""

MOST_FUNCTIONS = 128
"""For how many sets of steps there is a function of its own; past that one function has all."""

What = tuple[int, ...]
"""The number of a structure, a branch, and a mask of its labels and places that count: labels come
first."""

Fires = tuple[What, int]
"""What fires, and of whom."""

Take = Callable[..., Any]
"""`take(held, *masks)` changes what is held; see `Sliced.take`."""


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


class Structure:
    """One structure: `slots` says where each state that changes is held.

    `flipped` are the states that are active at the start and change.
    """

    def __init__(self, machine: Machine, slots: Mapping[State, int]) -> None:
        self.machine = machine
        self.slots = slots
        changed = changed_states(machine)
        self.held = sorted(changed)
        self.flipped = machine.initial & changed
        self.fixed = machine.initial - changed
        self._counted = [counted_states(each) for each in machine.branches]
        self._counted_at = [
            [(at, slots[state]) for at, state in enumerate(each) if state in slots]
            for each in self._counted
        ]
        self._always_counted = [
            sum(1 << at for at, state in enumerate(each) if state in self.fixed)
            for each in self._counted
        ]

    def slots_of(self, active: int) -> list[int]:
        """Where a machine has its bit if it stands in these states."""
        return [
            self.slots[state]
            for state in self.held
            if (active >> state & 1) != (state in self.flipped)
        ]

    def active(self, held: Sequence[int], bit: int) -> frozenset[State]:
        """The states in which the machine with this bit stands."""
        return self.fixed.union(
            state
            for state in self.held
            if bool(held[self.slots[state]] & bit) != (state in self.flipped)
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


@dataclass(frozen=True, slots=True)
class Action:
    """What a transition does, by slots. In every set of `enabling` one has to be active."""

    reads: bool
    enabling: tuple[tuple[int, ...], ...]
    clear: tuple[int, ...]
    target: tuple[int, ...]
    fires: int | None
    """The branch that fires, if one does."""


@dataclass(frozen=True, slots=True)
class Step:
    """An action of the structures in `atoms`, each with the atom as which it reads, if it does."""

    number: int
    action: Action
    atoms: dict[int, int | None]


class Sliced:
    """It holds no state of a run: that is a list of `size` integers.

    `masks` says which bits are machines of each structure, and is kept by the owner.
    """

    def __init__(self, is_timed: bool) -> None:
        self._is_timed = is_timed
        self.structures: list[Structure] = []
        self.masks: list[int] = []
        self._flipped: list[bool] = []
        self._steps: list[Step] = []
        self._by_number: list[Step] = []
        self._functions: dict[int, tuple[Take, tuple[int, ...]]] = {}
        self._taken: dict[tuple[int, int], list[int]] = {}

    @property
    def size(self) -> int:
        return len(self._flipped)

    # --- structures -----------------------------------------------------------------------------

    def has_room_for(self, machine: Machine) -> bool:
        """Whether it pays to step machines of this structure together with the others."""
        return len(self._steps) + len(machine.transitions) <= MOST_STEPS

    def add(self, machine: Machine) -> int:
        """The number of a structure that is new."""
        changed = changed_states(machine)
        slots: dict[State, int] = {}
        for flips in (False, True):
            states = [s for s in sorted(changed) if (s in machine.initial) is flips]
            known = [slot for slot, flipped in enumerate(self._flipped) if flipped is flips]
            while len(known) < len(states):
                known.append(len(self._flipped))
                self._flipped.append(flips)
            slots |= dict(zip(states, known, strict=False))
        kind = len(self.structures)
        self.structures.append(Structure(machine, slots))
        self.masks.append(0)
        self._taken.clear()
        self._functions.clear()
        at = 0
        for transition in machine.transitions:
            action = self._action(transition, self.structures[kind])
            if action is None:
                continue
            found = (n for n in range(at, len(self._steps)) if self._steps[n].action == action)
            place = next(found, None)
            if place is None:
                place = at
                step = Step(len(self._by_number), action, {})
                self._steps.insert(at, step)
                self._by_number.append(step)
            atom = transition.input
            assert atom is None or isinstance(atom, int)
            self._steps[place].atoms[kind] = atom
            at = place + 1
        return kind

    def _action(self, x: Transition, structure: Structure) -> Action | None:
        """What a transition does; None if that is nothing, or never."""
        slots = structure.slots
        enabling = []
        for states in x.enabling:
            if states & structure.fixed:
                continue
            some = tuple(sorted(slots[state] for state in states if state in slots))
            if not some:
                return None
            enabling.append(some)
        fires = x.effect.branch if isinstance(x.effect, Fire) else None
        clear = tuple(sorted(slots[state] for state in x.clear))
        target = tuple(sorted(slots[state] for state in x.target))
        if fires is not None and self._is_timed:
            clear = target = ()
        if fires is None and not clear and not target:
            return None
        return Action(x.input is not None, tuple(sorted(enabling)), clear, target, fires)

    def steps_of(self, kind: int, atom: int) -> list[int]:
        """The steps that machines of a structure may take which read an event as this atom."""
        known = self._taken.get((kind, atom))
        if known is None:
            known = self._taken[kind, atom] = [
                step.number
                for step in self._steps
                if kind in step.atoms and step.atoms[kind] in (None, atom)
            ]
        return known

    def split(
        self, branch: int, who: int, held: Sequence[int], kinds: Iterable[int] | None = None
    ) -> list[Fires]:
        """Those of whom a branch fires, by structure (of some, or of all) and by what counts."""
        found: list[Fires] = []
        for kind in range(len(self.masks)) if kinds is None else kinds:
            own = self.masks[kind] & who
            if own:
                for some, what in self.structures[kind].split(branch, own, held):
                    found.append(((kind, branch, what), some))
        return found

    # --- functions ------------------------------------------------------------------------------

    def take(self, steps: int) -> tuple[Take, tuple[int, ...]]:
        """The function for events with some of these steps (a mask), and which steps it has.

        It is called with a mask of machines for each step, in this order, and gives back a list of
        `Fires` or None; with a window, the mask of those that may fire.
        """
        known = self._functions.get(steps)
        if known is None:
            if len(self._functions) >= MOST_FUNCTIONS:
                steps = (1 << len(self._by_number)) - 1
                known = self._functions.get(steps)
            if known is None:
                known = self._functions[steps] = self._written(steps)
        return known

    def _written(self, steps: int) -> tuple[Take, tuple[int, ...]]:
        taken = [each for each in self._steps if steps >> each.number & 1]
        used: set[int] = set()
        read: set[int] = set()
        for step in taken:
            action = step.action
            enabling = {slot for some in action.enabling for slot in some}
            used |= enabling.union(action.clear, action.target)
            if action.reads:
                read |= enabling
        lines = [f"s{slot} = held[{slot}]" for slot in sorted(used)]
        lines += [f"p{slot} = s{slot}" for slot in sorted(read)]
        lines += ["candidates = 0" if self._is_timed else "fired = None"]
        for number, step in enumerate(taken):
            lines += self._step(f"m{number}", step, read)
        lines += ["return candidates" if self._is_timed else "return fired"]
        arguments = "".join(f", m{number}" for number in range(len(taken)))
        text = f"def take(held{arguments}):\n    " + "\n    ".join(lines)
        function = compiled(text, "take", {"split": self.split})
        return function, tuple(step.number for step in taken)

    def _step(self, mask: str, step: Step, read: Collection[int]) -> list[str]:
        action = step.action
        letter = "p" if action.reads else "s"
        parts = [mask]
        for some in action.enabling:
            names = [f"{'~' if self._flipped[slot] else ''}{letter}{slot}" for slot in some]
            parts.append(names[0] if len(names) == 1 else f"({' | '.join(names)})")
        hit = " & ".join(parts)
        if self._is_timed and action.fires is not None:
            return [f"candidates |= {hit}"]
        lines = [] if len(parts) == 1 else [f"hit = {hit}"]
        hit = mask if len(parts) == 1 else "hit"
        body = []
        if action.fires is not None:
            body += [
                "if fired is None: fired = []",
                f"fired += split({action.fires}, {hit}, held, {tuple(step.atoms)})",
            ]
        ends = {slot: slot in action.target for slot in sorted({*action.clear, *action.target})}
        off = [slot for slot, is_set in ends.items() if is_set == self._flipped[slot]]
        # What is cleared and then set again was cleared for what this event still reads.
        unread = [slot for slot in action.clear if slot in read]
        if off or any(not self._flipped[slot] for slot in unread):
            body.append(f"others = ~{hit}")
        for slot in ends:
            after = "& others" if slot in off else f"| {hit}"
            body.append(f"held[{slot}] = s{slot} = s{slot} {after}")
        for slot in unread:
            body.append(f"p{slot} |= {hit}" if self._flipped[slot] else f"p{slot} &= others")
        return [*lines, f"if {hit}:", *(f"    {line}" for line in body)]


def bits_of(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, counted from 1, the highest first."""
    while mask:
        bit = mask.bit_length()
        yield bit
        mask ^= 1 << (bit - 1)

"""The step of a machine without a window, with sets of states as bits of integers.

In come a machine and a set of active states (bit i: state i); out come the active states after one
pass and its effects, as in `ensue.machine.stepping`. Without a window it does not matter when a
state was set: a set of states is one integer, and one operation tests an enabling set, however many
states it has. Machines with a window are left to the `Stepper`.

The transitions that wait for their turn are an integer, too (bit i: transition i); the lowest bit
is next. A transition waits only if its *pivot* is active: the enabling set that is active most
rarely.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ensue.machine.model import Bind, Emit, Fire, Machine, State, Timer, Transition
from ensue.machine.stepping import Fired, pivot_of

FIRINGS_REMEMBERED = 4096
"""The size of the cache of firings, by branch and active states."""


class BitTaken(NamedTuple):
    """The result of a pass: active states, bound places, other effects, and timeouts started."""

    active: int
    binds: tuple[int, ...]
    effects: tuple[Emit | Fired, ...]
    started: tuple[Timer, ...]


class _Masks(NamedTuple):
    """A transition as bits: all states of `every` must be active, and one of each set in `some`.

    `reads` tells an input transition from an internal one; `kept` are the states that it does not
    clear.
    """

    reads: bool
    every: int
    some: tuple[int, ...]
    kept: int
    target: int
    follows: int
    """The internal transitions after it for which it sets a pivot."""
    effect: Emit | Bind | Fire | None
    timers: tuple[Timer, ...]


class _Readers(NamedTuple):
    """The transitions of one atom: all `numbers`, and `by_state` those with a state in the pivot.

    `pivots` has the states of all pivots; `free` are transitions without enabling sets.
    """

    numbers: tuple[int, ...]
    pivots: int
    by_state: dict[int, tuple[int, ...]]
    free: tuple[int, ...]


class BitStepper:
    """The step of one machine on bits. Callers hold the state of a run.

    Up to `few_readers` transitions of an atom are tested one by one, without their index by states.
    """

    def __init__(self, machine: Machine, few_readers: int = 4) -> None:
        self._machine = machine
        self._few_readers = few_readers
        timers = {x.input.state: x.input for x in machine.transitions if isinstance(x.input, Timer)}
        self.first = bits_of(machine.initial)
        self.first_timers = tuple(timers[s] for s in sorted(machine.initial) if s in timers)
        self._always = 0
        self._internal: dict[int, int] = defaultdict(int)
        self._ticked: dict[State, int] = defaultdict(int)
        readers: dict[int, list[int]] = defaultdict(list)
        for number, x in enumerate(machine.transitions):
            if isinstance(x.input, Timer):
                self._ticked[x.input.state] |= 1 << number
            elif x.input is not None:
                readers[x.input].append(number)
            elif not x.enabling:
                self._always |= 1 << number
            else:
                for state in pivot_of(x, machine.constant):
                    self._internal[1 << state] |= 1 << number
        self._pivots = sum(self._internal)
        self._readers = {atom: self._by_pivot(numbers) for atom, numbers in readers.items()}
        self._masks = [
            self._masks_of(number, x, timers) for number, x in enumerate(machine.transitions)
        ]
        self._counted = [
            bits_of([*(s for _, s in b.labels), *(s for _, _, s in b.places)])
            for b in machine.branches
        ]
        self._fired: dict[tuple[int, int], Fired] = {}

    def _by_pivot(self, numbers: list[int]) -> _Readers:
        transitions, constant = self._machine.transitions, self._machine.constant
        by_state: dict[int, list[int]] = defaultdict(list)
        for number in numbers:
            for state in pivot_of(transitions[number], constant):
                by_state[1 << state].append(number)
        return _Readers(
            tuple(numbers),
            sum(by_state),
            {state: tuple(found) for state, found in by_state.items()},
            tuple(number for number in numbers if not transitions[number].enabling),
        )

    def _masks_of(self, number: int, x: Transition, timers: dict[State, Timer]) -> _Masks:
        single = [states for states in x.enabling if len(states) == 1]
        later = -2 << number
        follows = 0
        for state in x.target:
            follows |= self._internal.get(1 << state, 0) & later
        return _Masks(
            x.input is not None,
            bits_of(state for states in single for state in states),
            tuple(bits_of(states) for states in x.enabling if len(states) != 1),
            ~bits_of(x.clear),
            bits_of(x.target),
            follows,
            x.effect,
            tuple(timers[state] for state in sorted(x.target) if state in timers),
        )

    # --- a moment -------------------------------------------------------------------------------

    def readers(self, active: int, atoms: int) -> int:
        """The input transitions that an event enables. Equal readers make equal passes."""
        found = 0
        while atoms:
            low = atoms & -atoms
            atoms ^= low
            known = self._readers.get(low.bit_length() - 1)
            if known is None:
                continue
            numbers: Iterable[int] = known.numbers
            if len(known.numbers) > self._few_readers:
                numbers = _found(known, active & known.pivots)
            for number in numbers:
                x = self._masks[number]
                if active & x.every == x.every and (not x.some or _has_each(active, x.some)):
                    found |= 1 << number
        return found

    def due(self, states: Iterable[State]) -> int:
        """The transitions of timeouts that are due."""
        found = 0
        for state in states:
            found |= self._ticked.get(state, 0)
        return found

    def take(self, active: int, readers: int) -> BitTaken:
        """One pass over the transitions that `readers` or `due` has found."""
        waiting = readers | self._always
        pivots = active & self._pivots
        while pivots:
            low = pivots & -pivots
            pivots ^= low
            waiting |= self._internal[low]
        masks = self._masks
        present = active
        binds: list[int] = []
        effects: list[Emit | Fired] = []
        started: list[Timer] = []
        while waiting:
            low = waiting & -waiting
            waiting ^= low
            reads, every, some, kept, target, follows, effect, timers = masks[low.bit_length() - 1]
            source = present if reads else active
            if source & every != every or (some and not _has_each(source, some)):
                continue
            if effect is None:
                pass
            elif isinstance(effect, Bind):
                if not effect.first or active & target != target:
                    binds.append(effect.place)
            elif isinstance(effect, Fire):
                effects.append(self._fire(effect.branch, active))
            else:
                effects.append(effect)
            if kept != -1:
                active &= kept
                present &= kept
            active |= target
            waiting |= follows
            if timers:
                started += timers
        return BitTaken(active, tuple(binds), tuple(effects), tuple(started))

    def _fire(self, branch: int, active: int) -> Fired:
        counting = active & self._counted[branch]
        known = self._fired.get((branch, counting))
        if known is None:
            about = self._machine.branches[branch]
            labels = frozenset(label for label, state in about.labels if counting >> state & 1)
            places = tuple(place for place, _, state in about.places if counting >> state & 1)
            known = Fired(branch, labels, places)
            if len(self._fired) < FIRINGS_REMEMBERED:
                self._fired[branch, counting] = known
        return known


def bits_of(numbers: Iterable[int]) -> int:
    """A set of numbers as an integer."""
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def numbers_in(bits: int) -> Iterator[int]:
    """The numbers of a set, the smallest first."""
    while bits:
        low = bits & -bits
        bits ^= low
        yield low.bit_length() - 1


def _has_each(active: int, sets: tuple[int, ...]) -> bool:
    for states in sets:  # noqa: SIM110 - a generator would take longer than the tests
        if not active & states:
            return False
    return True


def _found(known: _Readers, pivots: int) -> set[int]:
    found = set(known.free)
    while pivots:
        low = pivots & -pivots
        pivots ^= low
        found.update(known.by_state[low])
    return found

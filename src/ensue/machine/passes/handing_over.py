"""Merges an internal transition into transitions that do nothing but lead to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ensue.machine.model import Bind, Fire, Machine, State, Transition


def merge_handovers(machine: Machine) -> Machine:
    """Collapses chains in which a state is set only to be consumed later in the same pass.

    An internal transition `I` *consumes* its states if it has one enabling set, clears all of it,
    and no other transition tests these states. If every transition that sets one of them stands
    before `I`, they are never active at the end of a pass: to set one makes `I` happen in the same
    pass. So each such transition may do the work of `I` at once (first its own, then that of `I`),
    and `I` may go. The condition is that no transition between them can tell the difference: it
    neither tests nor changes a state that `I` clears or sets, nor has an effect that would then
    come after that of `I`. (An input transition tests the states before the event, so it cannot see
    what `I` sets.)

    With a window the states carry starts, which two merged transitions could set in another order;
    such machines are left as they are.
    """
    if machine.window is not None:
        return machine
    merging = _Merging(machine)
    for number in range(len(machine.transitions)):
        merging.try_merging(number)
    kept = tuple(each for each in merging.transitions if each is not None)
    return replace(machine, transitions=kept)


class _Merging:
    def __init__(self, machine: Machine) -> None:
        self.transitions: list[Transition | None] = list(machine.transitions)
        self._noticed = machine.initial.union(
            *(frozenset(state for _, state in each.labels) for each in machine.branches),
            *(frozenset(state for _, _, state in each.places) for each in machine.branches),
            *(each.target | each.clear | {each.requires} for each in machine.switches),
        )
        self._looking: dict[State, set[int]] = {}
        self._setting: dict[State, set[int]] = {}
        self._clearing: dict[State, set[int]] = {}
        self._effects = {n for n, each in enumerate(machine.transitions) if each.effect is not None}
        for number in range(len(self.transitions)):
            self._note(number)

    def try_merging(self, number: int) -> None:
        consuming = self.transitions[number]
        if consuming is None or not self._consumes(number, consuming):
            return
        (states,) = consuming.enabling
        setters = set[int]().union(*(self._setting.get(state, set()) for state in states))
        if not setters or not all(each < number for each in setters):
            return
        if not all(self._can_take_over(each, number, consuming, setters) for each in setters):
            return
        self._forget(number)
        self.transitions[number] = None
        self._effects.discard(number)
        for each in setters:
            setter = self.transitions[each]
            assert setter is not None
            self._forget(each)
            self.transitions[each] = replace(
                setter,
                clear=setter.clear | (consuming.clear - states),
                target=(setter.target - consuming.clear) | consuming.target,
                effect=setter.effect or consuming.effect,
            )
            if consuming.effect is not None:
                self._effects.add(each)
            self._note(each)

    def _consumes(self, number: int, transition: Transition) -> bool:
        if transition.input is not None or len(transition.enabling) != 1:
            return False
        (states,) = transition.enabling
        return (
            not isinstance(transition.effect, Fire)
            and states <= transition.clear
            and not states & transition.target
            and not states & self._noticed
            and all(self._looking[state] == {number} for state in states)
        )

    def _can_take_over(
        self, each: int, number: int, consuming: Transition, setters: set[int]
    ) -> bool:
        setter = self.transitions[each]
        assert setter is not None
        if isinstance(setter.effect, Fire) or (
            isinstance(setter.effect, Bind) and setter.effect.first
        ):
            return False
        if consuming.effect is not None and (setter.effect is not None or len(setters) > 1):
            return False
        if consuming.effect is not None and any(each < n < number for n in self._effects):
            return False
        (states,) = consuming.enabling
        return not any(self._in_the_way(each, number, consuming, states))

    def _in_the_way(
        self, first: int, last: int, consuming: Transition, states: frozenset[State]
    ) -> Iterator[int]:
        """Transitions in between that can tell whether the consuming one has happened yet."""

        def between(numbers: set[int]) -> Iterator[int]:
            return (number for number in numbers if first < number < last)

        for state in consuming.clear:
            if state not in states:
                yield from between(self._looking.get(state, set()))
                yield from between(self._setting.get(state, set()))
            yield from between(self._clearing.get(state, set()) if state in states else set())
        for state in consuming.target:
            yield from between(self._clearing.get(state, set()))
            for other in between(self._looking.get(state, set())):
                looker = self.transitions[other]
                if looker is not None and looker.input is None:
                    yield other

    def _note(self, number: int) -> None:
        for index, state in self._mentions(number):
            index.setdefault(state, set()).add(number)

    def _forget(self, number: int) -> None:
        for index, state in self._mentions(number):
            index[state].discard(number)

    def _mentions(self, number: int) -> Iterator[tuple[dict[State, set[int]], State]]:
        transition = self.transitions[number]
        if transition is not None:
            for states in transition.enabling:
                yield from ((self._looking, state) for state in states)
            yield from ((self._setting, state) for state in transition.target)
            yield from ((self._clearing, state) for state in transition.clear)

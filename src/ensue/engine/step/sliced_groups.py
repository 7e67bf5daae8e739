"""Rules of a few shapes, stepped together: thousands of them for a few operations on long integers.

In come rules with their shapes (`shapes`): rules of one shape differ in what their ports ask for.
Under a key (`boards`) a group has one integer for each state of their machines, with a bit for each
rule that is in it; an event has one integer for each step, of the rules that may take it
(`readings`). A function that is written for the shapes takes all rules through the event at once
(`sliced`). A rule that stands at its start has no bit anywhere, so that a rule that is added needs
no key to know it.

Rules with a window are in groups of their own kind: `candidates`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ensue.engine.step.boards import Board, KeyState
from ensue.engine.step.emitting import Recipe, recipe_of
from ensue.engine.step.filters import TabledFilter
from ensue.engine.step.groups import Group, Runner
from ensue.engine.step.readings import SlicedWant
from ensue.engine.step.rules import Rule
from ensue.engine.step.shapes import Shape, atoms_of, machine_of
from ensue.engine.step.sliced import Fires, Sliced, Structure, What
from ensue.engine.step.volleys import Gathered, Own
from ensue.events.types import TypeSystem
from ensue.lang.syntax import FilterCorrelation


class SlicedGroup(Group):
    """Rules without a window, as bits."""

    def __init__(self, board: Board, types: TypeSystem, numbers: Iterator[int]) -> None:
        super().__init__(board, types, numbers)
        self.sliced = Sliced(self.is_timed)
        self._has_branches = False

    # --- who belongs to it ----------------------------------------------------------------------

    def make_room_for(self, shape: Shape, first: Rule) -> None:
        if shape not in self._kinds:
            machine = machine_of(first)
            assert machine is not None, "a rule without a machine has no shape"
            self._kinds[shape] = self.sliced.add(machine)
            self._has_branches = self._has_branches or len(machine.branches) > 1
            for _, _, held in self.board.held_by(self):
                if held is not None:
                    held += [0] * (self.sliced.size - len(held))

    def _forget_held(self, held: list[int], gone: Sequence[int]) -> None:
        kept = ~sum(1 << (bit - 1) for bit in gone)
        held[:] = [mask & kept for mask in held]

    def _shift_held(self, held: list[int], more: int) -> None:
        held[:] = [mask << more for mask in held]

    def _look_at_members(self) -> None:
        self.sliced.masks = [0] * len(self.sliced.structures)
        for bit, rule in self.members.items():
            self.sliced.masks[self.kind_of(rule)] |= self._bits[bit]

    def _place(self, state: KeyState, held: list[int], instance: Runner, number: int) -> None:  # noqa: ARG002
        """Set the bits of a rule to where its instance stands."""
        assert isinstance(instance, TabledFilter)
        for slot in self._structure(number).slots_of(instance.row.bits):
            held[slot] |= self._bits[number]

    def _structure(self, number: int) -> Structure:
        return self.sliced.structures[self.kind_of(self.members[number])]

    def _is_under_way(self, held: list[int], number: int) -> bool:
        bit = self._bits[number]
        return any(mask & bit for mask in held)

    def _stand(self, state: KeyState, held: list[int], instance: Runner, number: int) -> None:  # noqa: ARG002
        assert isinstance(instance, TabledFilter)
        active = self._structure(number).active(held, self._bits[number])
        instance.row = instance.rows.row_of(active)

    # --- reading --------------------------------------------------------------------------------

    def want(self, key: int) -> SlicedWant:
        return SlicedWant(self, key)

    def new_list(self, state: KeyState) -> list[int]:  # noqa: ARG002
        return [0] * self.sliced.size

    def judged(
        self,
        fired: Any,
        state: KeyState,  # noqa: ARG002
        held: list[int],  # noqa: ARG002
        number: int,  # noqa: ARG002
        now: int,  # noqa: ARG002
    ) -> Sequence[Fires]:
        """Who fires, and how, when `take` has given something back."""
        found: Sequence[Fires] = fired
        return found

    def fires(self, found: Sequence[Fires]) -> Sequence[Fires]:
        return found

    def gather(self, found: Sequence[Fires], by_routine: Gathered, own: Own) -> bool | None:
        if self._has_branches and any(branch for (_, branch, _), _ in found):
            return None
        for what, who in found:
            volley = self.volley(what)
            if volley is None:
                continue
            count, routine, members = volley
            own.append((self.at, who, count))
            chosen = self.chosen(who, members)
            if routine in by_routine:
                by_routine[routine] += chosen
            else:
                by_routine[routine] = chosen
        return len(own) == 1

    def is_idle(self, state: KeyState, held: list[int], now: int) -> bool:  # noqa: ARG002
        return not any(held)

    def _recipe(self, what: What, example: Rule) -> tuple[Recipe, list[int]]:
        kind, branch, counting = what
        correlation, facts = example.correlation, example.facts
        assert isinstance(correlation, FilterCorrelation)
        assert facts is not None
        fired = self.sliced.structures[kind].fired(branch, counting)
        recipe = recipe_of(correlation, self._types, fired, facts.ports)
        assert recipe is not None, "a rule with such a firing is in no group"
        atoms = atoms_of(example)
        return recipe, [atoms[port] for port in recipe.ports]

"""Rules of any shape that are visited one by one, in compiled loops: what all such groups have.

In come rules with their shapes; rules of one shape share a table (`cell_tables`), and a rule under
a key has a *cell* with its state. An event is, to such a group, a list of the rules that want it,
each with what it is to that rule; one call takes it through their cells. `cell_groups` has rules
without timers, `clocked_groups` those with timers, whose cells are visited by alarms as well.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ensue.engine.core.window_table import ALWAYS, OrderedState
from ensue.engine.step.boards import Board
from ensue.engine.step.cell_tables import CellTables
from ensue.engine.step.ecl import EclRunner
from ensue.engine.step.emitting import Recipe
from ensue.engine.step.filters import QuickWindow, TabledFilter
from ensue.engine.step.groups import Group, Runner, Volley
from ensue.engine.step.readings import CellWant
from ensue.engine.step.rules import Rule
from ensue.engine.step.shapes import Shape
from ensue.engine.step.sliced import What
from ensue.events.types import TypeSystem
from ensue.machine.stepping import NOW


class VisitedGroup(Group):
    """`outgrown` is told the shapes whose tables keep growing: their rules are to leave."""

    _tables: CellTables

    def __init__(
        self,
        board: Board,
        types: TypeSystem,
        numbers: Iterator[int],
        outgrown: Callable[[Shape], None],
    ) -> None:
        super().__init__(board, types, numbers)
        self._outgrown = outgrown
        self._by_action: dict[int, Volley | None] = {}

    def make_room_for(self, shape: Shape, first: Rule) -> None:
        if shape not in self._kinds:
            self._kinds[shape] = self._tables.add(first)

    def _place_of(self, instance: Runner, number: int) -> tuple[int, list[int]]:
        """The state of an instance in the table of its rule, and what the registers hold."""
        kind = self.kind_of(self.members[number])
        if isinstance(instance, QuickWindow):
            return self._tables.number_of_starts(kind, instance.active)
        assert isinstance(instance, TabledFilter | EclRunner)
        return self._tables.number_of(kind, instance.row.active), []

    def _put(self, instance: Runner, number: int, state: int, registers: Sequence[int]) -> None:
        """Put an instance into a state of the table of its rule."""
        at = self._tables.state_of(self.kind_of(self.members[number]), state)
        if isinstance(at, OrderedState):
            assert isinstance(instance, QuickWindow)
            instance.active = {
                each: NOW if register == ALWAYS else registers[register]
                for each, register in at.registers.items()
            }
        else:
            assert isinstance(instance, TabledFilter | EclRunner)
            instance.row = instance.rows.row_of(at.active)

    # --- reading --------------------------------------------------------------------------------

    def want(self, key: int) -> CellWant:
        return CellWant(self, key)

    def part_of(self, ports: Mapping[int, int]) -> tuple[Any, Any]:
        """Rules with the ports that match, as arrays."""
        return np.array([*ports], np.int64), np.array([*ports.values()], np.uint32)

    def visits_of(self, parts: Iterable[tuple[Any, Any]]) -> Any:
        """Rules with the ports that match in any part, for the loop; the first come first."""
        letters = np.zeros(len(self._tables.rules), np.uint32)
        for numbers, ports in parts:
            letters[numbers] |= ports
        wanting = np.flatnonzero(letters)[::-1]
        return wanting.astype(np.uint32) << np.uint32(8) | letters[wanting]

    @abstractmethod
    def is_nothing(self, visits: Any) -> bool:
        """Whether no rule leaves its start when it is visited so."""

    @abstractmethod
    def visit(self, held: Any, visits: Any, now: int) -> Sequence[Any]:
        """Let the rules that want an event read it; says who fires, and the action of each."""

    def _fill(self, rule: int, state: int, letter: int, events: int) -> None:
        """Work out a move that a loop has asked for; so many events there were until now."""
        kind = self.kind_of(self.members[rule])
        self._tables.fill(kind, state, letter)
        if self._tables.shapes[kind].outgrows(events):
            self._outgrown(next(shape for shape, each in self._kinds.items() if each == kind))

    def _of_action(self, action: int) -> Volley | None:
        """How an action is put out; None if it takes several volleys."""
        kind, _ = self._tables.actions[action]
        volley = self.volley((kind, 0, action)) if self._tables.parts_of(action) == 1 else None
        self._by_action[action] = volley
        return volley

    def _recipe(self, what: What, example: Rule) -> tuple[Recipe, list[int]]:  # noqa: ARG002
        _, part, action = what
        return self._tables.recipe(action, part, self._types)

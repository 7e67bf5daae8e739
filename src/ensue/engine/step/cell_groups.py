"""Rules of any shape, each with a cell of its own: an event visits those that want it.

In come rules with windows, with labels that change, and expressions (`cell_shapes`). Under a key a
rule that has left its start has a *cell*: its state in the table of its shape (`cell_tables`), and
registers with the times of its starts. An event goes through the cells of the rules that want it in
one call of a compiled loop (`cell_kernels`), some ten nanoseconds a rule. What a rule is bound to
is not in its cell: it is the last event of a letter, as for all groups.

A rule at its start has no cell. `where` says for each rule which of the key's cells is its own, so
a key costs two bytes a rule and a cell for each rule that is in the middle of something. Before a
key gets more cells, those of which all has left its window are let go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ensue.engine.step.boards import Board, KeyState
from ensue.engine.step.cell_kernels import (
    EVENTS,
    LACKS_A_CELL,
    LACKS_A_MOVE,
    NEXT,
    RULE,
    STATE,
    let_go,
    visit,
)
from ensue.engine.step.cell_tables import CellTables
from ensue.engine.step.groups import Runner
from ensue.engine.step.shapes import Shape
from ensue.engine.step.visited_groups import VisitedGroup
from ensue.engine.step.volleys import Fires, Gathered, Own, What
from ensue.events.types import TypeSystem

FEWEST_CELLS, MANY_CELLS = 16, 64


class Cells:
    """What a key holds: `where` each rule has its cell (0: nowhere), and the cells.

    The first cell is nobody's. It says which is the first that was used and is free, which says
    which is the next of those, and how many cells were ever used.
    """

    __slots__ = ("cells", "where")

    def __init__(self, rules: int, width: int) -> None:
        self.where = np.zeros(rules, np.uint16 if rules < 1 << 16 else np.uint32)
        self.cells = np.zeros((FEWEST_CELLS, width), np.int64)
        self.cells[0, 1] = 1

    def grow(self) -> None:
        before = self.cells
        self.cells = np.zeros((2 * len(before), before.shape[1]), np.int64)
        self.cells[: len(before)] = before

    def widen(self, width: int) -> None:
        before = self.cells
        self.cells = np.zeros((len(before), width), np.int64)
        self.cells[:, : before.shape[1]] = before

    def take(self, rule: int, width: int) -> Any:
        """The cell of a rule; a new one if it has none."""
        if self.cells.shape[1] < width:
            self.widen(width)
        if not self.where[rule]:
            free, used = self.cells[0, :2].tolist()
            if free:
                self.cells[0, 0] = self.cells[free, 0]
            else:
                free = used
                if free == len(self.cells):
                    self.grow()
                self.cells[0, 1] = used + 1
            self.where[rule] = free
        return self.cells[self.where[rule]]

    def free(self, rule: int) -> None:
        cell = self.where[rule]
        if cell:
            self.cells[cell, 0] = self.cells[0, 0]
            self.cells[0, 0] = cell
            self.where[rule] = 0


class CellGroup(VisitedGroup):
    """Rules without timers. Those that stand at their start have no cell."""

    is_in_cells = True

    def __init__(
        self,
        board: Board,
        types: TypeSystem,
        numbers: Iterator[int],
        outgrown: Callable[[Shape], None],
    ) -> None:
        super().__init__(board, types, numbers, outgrown)
        self._tables = CellTables()
        self._fired = np.zeros((1, 2), np.int64)
        self._status = np.zeros(5, np.int64)

    # --- who belongs to it ----------------------------------------------------------------------

    def _forget_held(self, held: Cells, gone: Sequence[int]) -> None:
        for number in gone:
            held.free(number)

    def _shift_held(self, held: Cells, more: int) -> None:
        shifted = Cells(len(held.where) + more, held.cells.shape[1])
        shifted.where[more:] = held.where
        held.where = shifted.where

    def _look_at_members(self) -> None:
        kinds = {number: self.kind_of(rule) for number, rule in self.members.items()}
        windows = {n: r.steps.window if r.steps else 0 for n, r in self.members.items()}
        self._tables.set_rules(kinds, windows)
        self._by_action = {}
        self._fired = np.zeros((len(kinds), 2), np.int64)
        # Compiled loops are loaded now, and not when the first event waits for its answer.
        nobody = self.new_list()
        self.visit(nobody, self.visits_of(()), 0)
        self._let_go(nobody, 0)

    def _place(self, state: KeyState, held: Cells, instance: Runner, number: int) -> None:  # noqa: ARG002
        at, times = self._place_of(instance, number)
        if at:
            cell = held.take(number, self._tables.width)
            cell[0], cell[1 : 1 + len(times)] = at, times

    def _is_under_way(self, held: Cells, number: int) -> bool:
        return bool(held.where[number])

    def _stand(self, state: KeyState, held: Cells, instance: Runner, number: int) -> None:  # noqa: ARG002
        cell = held.cells[held.where[number]].tolist() if held.where[number] else [0]
        self._put(instance, number, cell[0], cell[1:])

    # --- reading --------------------------------------------------------------------------------

    def is_nothing(self, visits: Any) -> bool:
        letters = visits.astype(np.int64) & 255
        asked = np.unique(self._tables.kinds[visits >> np.uint32(8)] << 8 | letters)
        return all(self._tables.move(each >> 8, 0, each & 255) == (0, 0) for each in asked.tolist())

    def new_list(self, state: KeyState | None = None) -> Cells:  # noqa: ARG002
        return Cells(len(self._tables.rules), self._tables.width)

    def visit(self, held: Cells, visits: Any, now: int) -> Sequence[tuple[int, int]]:
        tables, fired = self._tables, self._fired
        while True:
            count = visit(
                held.where, held.cells, visits, tables.rules, tables.moves, now, fired, self._status
            )
            if count >= 0:
                break
            self._mend(count, held, visits, now)
        said: list[tuple[int, int]] = fired[:count].tolist() if count else []
        return said

    def fires(self, found: Sequence[tuple[int, int]]) -> Sequence[Fires]:
        who: dict[What, int] = {}
        for number, action in found:
            kind, _ = self._tables.actions[action]
            for part in range(self._tables.parts_of(action)):
                what = kind, part, action
                who[what] = who.get(what, 0) | self._bits[number]
        return list(who.items())

    def gather(
        self, found: Sequence[tuple[int, int]], by_routine: Gathered, own: Own
    ) -> bool | None:
        bits, known = self._bits, self._by_action
        counts: dict[int, int] = {}
        for number, action in found:
            volley = known[action] if action in known else self._of_action(action)
            if volley is None:
                return None
            count, routine, members = volley
            counts[count] = counts.get(count, 0) | bits[number]
            if routine in by_routine:
                by_routine[routine].append(members[number])
            else:
                by_routine[routine] = [members[number]]
        own += [(self.at, who, count) for count, who in counts.items()]
        return self.is_in_order

    def _mend(self, lacks: int, held: Cells, visits: Any, now: int) -> None:
        """Provide what the loop could not go on without."""
        status, tables = self._status, self._tables
        if lacks == LACKS_A_MOVE:
            letter = int(visits[status[NEXT]]) & 255
            self._fill(int(status[RULE]), int(status[STATE]), letter, int(status[EVENTS]))
        elif lacks == LACKS_A_CELL:
            count = len(held.cells)
            # Looking for what has aged costs about as much as a few cells do.
            if count < MANY_CELLS or 2 * self._let_go(held, now) >= count:
                held.grow()
        else:
            held.widen(tables.width)

    def is_idle(self, state: KeyState, held: Cells, now: int) -> bool:  # noqa: ARG002
        return not self._let_go(held, now)

    def _let_go(self, held: Cells, now: int) -> int:
        """Free the cells of which all has left its window; says how many are left."""
        tables = self._tables
        left: int = let_go(held.where, held.cells, tables.rules, tables.moves, now)
        return left

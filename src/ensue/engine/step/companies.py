"""Which rules are stepped together, and in which kind of group.

In come the rules of a library that neither feed others nor are fed; out go those that are stepped
together, by their shapes, and the group that each shape belongs to. Where enough rules of a key can
have cells, they have cells (`cell_shapes`); where enough rules of a key have timers, those have
cells that alarms visit (`clocked_shapes`). All others stay on their own.
Compiled loops are loaded only by a library that has enough rules for cells.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ensue.engine.step.boards import Board
from ensue.engine.step.cell_shapes import (
    FEWEST_IN_CELLS,
    can_have_cells,
    cell_shape_of,
)
from ensue.engine.step.clocked_shapes import (
    can_have_alarms,
    clocked_shape_of,
    is_clocked_shape,
)
from ensue.engine.step.groups import Group
from ensue.engine.step.rules import Rule
from ensue.engine.step.shapes import Shape
from ensue.events.types import TypeSystem

LOOKS_AT_A_SHAPE, LOOKS_IN_ALL = 1024, 20_000
"""How many entries of tables are looked at to find out whether bindings can be told by letters: of
one shape, and of all of a library, for which that is a second or two."""

NO_ALARM = 2**62
"""Later than all times."""

Order = tuple[int, int, int]
"""Where an alarm belongs: its time, the place of the rule, the number of the instance."""


class Companies:
    """`has_outgrown` says that rules of some shape had better leave their cells.

    `earliest` is shared by all groups with alarms: a time before which none of those is due.
    """

    def __init__(self) -> None:
        self.has_outgrown = False
        self.earliest = array("q", [NO_ALARM])
        self._fitting: dict[Shape, bool] = {}
        self._looks_left = LOOKS_IN_ALL

    def chosen(
        self, rules: Sequence[Rule], known: Mapping[Shape, Group]
    ) -> dict[Shape, list[Rule]]:
        """The rules that are stepped together, by their shapes; `known` has the groups so far."""
        shapes: dict[Shape, list[Rule]] = {}
        in_cells = self._in_cells(rules, known) | self._with_alarms(rules, known)
        for rule in rules:
            if rule in in_cells:
                shapes.setdefault(in_cells[rule], []).append(rule)
        return shapes

    def _in_cells(self, rules: Sequence[Rule], known: Mapping[Shape, Group]) -> dict[Rule, Shape]:
        """The rules that have cells, with their shapes."""
        by_key = _by_key(rule for rule in rules if can_have_cells(rule))
        had = {group.board.key_names for group in known.values() if group.is_in_cells}
        found: dict[Rule, Shape] = {}
        for names, chosen in by_key.items():
            if names in had or len(chosen) >= FEWEST_IN_CELLS:
                for rule in chosen:
                    shape = cell_shape_of(rule)
                    if self._fits(shape, rule):
                        found[rule] = shape
        return found

    def _with_alarms(
        self, rules: Sequence[Rule], known: Mapping[Shape, Group]
    ) -> dict[Rule, Shape]:
        """The rules that have cells which alarms visit, with their shapes."""
        by_key = _by_key(rule for rule in rules if can_have_alarms(rule))
        had = {group.board.key_names for group in known.values() if group.has_alarms}
        found: dict[Rule, Shape] = {}
        for names, chosen in by_key.items():
            if names in had or len(chosen) >= FEWEST_IN_CELLS:
                shapes = {rule: clocked_shape_of(rule) for rule in chosen}
                found |= {r: s for r, s in shapes.items() if s and self._fitting.get(s, True)}
        return found

    def _fits(self, shape: Shape, rule: Rule) -> bool:
        """Whether rules of a shape can have cells, as far as their tables say."""
        fits = self._fitting.get(shape)
        if fits is None:
            from ensue.engine.step.cell_tables import looks_for_last

            looks = looks_for_last(rule, min(LOOKS_AT_A_SHAPE, self._looks_left))
            self._looks_left -= looks if looks is not None else LOOKS_AT_A_SHAPE
            fits = self._fitting[shape] = looks is not None
        return fits

    def _outgrown(self, shape: Shape) -> None:
        self._fitting[shape] = False
        self.has_outgrown = True

    def group_for(
        self,
        shape: Shape,
        board: Board,
        known: Iterable[Group],
        types: TypeSystem,
        numbers: Iterator[int],
    ) -> Group:
        """A group that rules of a new shape can join: one of those that are known, or another."""
        if is_clocked_shape(shape):
            from ensue.engine.step.clocked_groups import ClockedGroup

            with_alarms = (each for each in known if each.board is board and each.has_alarms)
            return next(with_alarms, None) or ClockedGroup(
                board, types, numbers, self._outgrown, self.earliest
            )
        from ensue.engine.step.cell_groups import CellGroup

        held = (each for each in known if each.board is board and each.is_in_cells)
        return next(held, None) or CellGroup(board, types, numbers, self._outgrown)


def _by_key(rules: Iterable[Rule]) -> dict[tuple[str, ...], list[Rule]]:
    """Rules by the names of the key that all ports of each ask for."""
    by_key: dict[tuple[str, ...], list[Rule]] = {}
    for rule in rules:
        by_key.setdefault(next(iter(rule.ports.key_names.values())), []).append(rule)
    return by_key

"""Which rules of a library run in cells, and in which group.

In come the rules that neither feed other rules nor are fed by them; out go the rules that run in
cells, with their shapes: one group for each key by which enough rules read. All other rules run by
themselves. Compiled loops are loaded only when a group is made.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from ensue.engine.core.instances.rules import Rule
from ensue.engine.step.many.shapes import Shape, shape_of, why_no_cells

if TYPE_CHECKING:
    from ensue.engine.step.many.group import CellGroup

FEWEST_IN_CELLS = 16
"""From how many rules on under one key cells are quicker than stepping each rule by itself.

A call of the compiled loop costs some two microseconds, a rule that is stepped by itself half a
microsecond: of eight rules `a ; b` that half of all events concern it is quicker to step each, of
sixteen it is quicker to visit their cells. Compiled loops also take half a second to load.
"""

NO_ALARM = 2**62
"""Later than all times."""

KeyNames = tuple[str, ...]


class Grouping:
    """Decides which rules run in cells; `has_outgrown` says that some rules should leave theirs.

    `earliest` is shared by all groups: a time before which none of their alarms is due.
    """

    def __init__(self) -> None:
        self.has_outgrown = False
        self.earliest = array("q", [NO_ALARM])
        self._too_large: set[Shape] = set()

    def in_cells(
        self, rules: Iterable[Rule], had: Container[KeyNames]
    ) -> dict[KeyNames, dict[Rule, Shape]]:
        """The rules that have cells, with their shapes; `had` are the keys that have a group."""
        by_key: dict[KeyNames, list[Rule]] = {}
        for rule in rules:
            names = set(rule.ports.key_names.values())
            if len(names) == 1 and _can_have_cells(rule):
                by_key.setdefault(names.pop(), []).append(rule)
        found: dict[KeyNames, dict[Rule, Shape]] = {}
        for key, chosen in by_key.items():
            if key in had or len(chosen) >= FEWEST_IN_CELLS:
                shapes = {rule: _shape_of(rule) for rule in chosen}
                kept = {r: s for r, s in shapes.items() if s and s not in self._too_large}
                if kept:
                    found[key] = kept
        return found

    def new_group(self, key_names: KeyNames) -> CellGroup:
        from ensue.engine.step.many.group import CellGroup

        return CellGroup(key_names, self._leave, self.earliest)

    def _leave(self, shape: Shape) -> None:
        """The table of a shape keeps growing: its rules are to run by themselves."""
        self._too_large.add(shape)
        self.has_outgrown = True


def _can_have_cells(rule: Rule) -> bool:
    has_table = rule.rows is not None or rule.steps is not None
    return (
        has_table
        and rule.machine is not None
        and why_no_cells(rule.correlation, rule.machine) is None
    )


def _shape_of(rule: Rule) -> Shape | None:
    assert rule.machine is not None
    return shape_of(rule.correlation, rule.machine)

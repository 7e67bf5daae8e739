"""Which rules of a library run in cells, in which group, and which of them share a table.

In come the rules that neither feed other rules nor are fed by them; out go the rules that run in
cells, with their shapes: one group for each key by which enough rules read (`Grouping`). All other
rules run by themselves; `core.cell_limits` says which rules can have cells at all.

A *shape* is equal for rules that share a table. It is the shape of `core.shapes` together with what
may differ here: the machine, which may come from a snapshot, and the types of ports, which decide
whether a value is handed on as it is. Nothing here needs compiled loops: these are loaded only when
a group is made, so that a library of few rules does not load them.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable
from dataclasses import replace

from ensue.engine.core.cell_limits import STEP_CELLS, timeouts_of, why_no_cells
from ensue.engine.core.instances.rows import structure
from ensue.engine.core.instances.rules import Rule
from ensue.engine.instance import ENDLESS
from ensue.engine.ports import KeyNames
from ensue.engine.sizes import sizes
from ensue.lang.syntax import Correlation, EventPort
from ensue.machine.model import Machine, PortAtom, Timer

CellShape = tuple[object, ...]
"""Equal for rules that share a table."""

AlarmOrder = tuple[int, int, int]
"""What orders outputs of alarms: time, place of the rule in the library, last event of the key."""


def cell_shape_of(correlation: Correlation, machine: Machine) -> CellShape | None:
    """The shape of rules that share a table; None where the machine is not of the rule."""
    # Loaded only for a library that has enough rules for cells.
    from ensue.engine.core.shapes import durations_in, shape_of

    ranks = {length: rank for rank, length in enumerate(durations_in(correlation))}
    if not {timer.after for timer in timeouts_of(machine)} <= ranks.keys():
        # As above, of a damaged snapshot.
        return None
    numbers = {port.name: number for number, port in enumerate(correlation.ports)}
    transitions = tuple(
        replace(each, input=Timer(each.input.state, ranks[each.input.after]))
        if isinstance(each.input, Timer)
        else each
        for each in machine.transitions
    )
    bare = replace(structure(machine), window=None, transitions=transitions)
    atoms = tuple(
        numbers[atom.name] if isinstance(atom, PortAtom) else atom for atom in machine.atoms
    )
    places = tuple((place, numbers[port]) for b in machine.branches for place, port, _ in b.places)
    types = tuple(port.type for port in correlation.ports if isinstance(port, EventPort))
    return (*shape_of(correlation), types, bare, atoms, places)


class Grouping:
    """Decides which rules run in cells; `has_outgrown` says that some rules should leave theirs.

    `earliest` is shared by all groups: a time before which none of their alarms is due.
    """

    def __init__(self) -> None:
        self.has_outgrown = False
        self.earliest = array("q", [ENDLESS])
        self._too_large: set[CellShape] = set()

    def in_cells(
        self, rules: Iterable[Rule], had: Container[KeyNames]
    ) -> dict[KeyNames, dict[Rule, CellShape]]:
        """The rules that have cells, with their shapes; `had` are the keys that have a group."""
        by_key: dict[KeyNames, list[Rule]] = {}
        for rule in rules:
            names = set(rule.ports.key_names.values())
            if len(names) == 1 and _can_have_cells(rule):
                by_key.setdefault(names.pop(), []).append(rule)
        found: dict[KeyNames, dict[Rule, CellShape]] = {}
        for key, chosen in by_key.items():
            if key in had or len(chosen) >= sizes().rules_in_cells:
                shapes = {rule: _shape_of(rule) for rule in chosen}
                kept = {r: s for r, s in shapes.items() if s and s not in self._too_large}
                if kept:
                    found[key] = kept
        return found

    def leave(self, shape: CellShape) -> None:
        """The table of a shape keeps growing: its rules are to run by themselves."""
        self._too_large.add(shape)
        self.has_outgrown = True


def _can_have_cells(rule: Rule) -> bool:
    return (
        rule.machine is not None
        and why_no_cells(rule.correlation, rule.machine, STEP_CELLS) is None
    )


def _shape_of(rule: Rule) -> CellShape | None:
    assert rule.machine is not None
    return cell_shape_of(rule.correlation, rule.machine)

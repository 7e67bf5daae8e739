"""Which rules can be visited in cells: those of any shape whose bindings can be told by letters.

In comes a rule; out goes whether it can have cells, and its shape, the same for rules that differ
only in what their ports ask for and in how long their windows are: those share one table. Rules
with timers are for `clocked_shapes`. Statements before the first case, `bind first`, predicates
inside an expression, keys that differ from port to port and machines of many transitions are not
for cells. Whether what is bound can be told where labels change is for `cell_tables` to find out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ensue.engine.renaming import numbered_ports, with_ports
from ensue.engine.step.rules import Rule
from ensue.engine.step.shapes import Shape, atoms_of, machine_of
from ensue.lang.syntax import EventPort, FilterCorrelation
from ensue.machine.model import PortAtom, PredicateAtom

FEWEST_IN_CELLS = 16
"""From how many rules on under one key cells are quicker than stepping each rule by itself.

A call of the compiled loop costs some two microseconds, a rule that is stepped by itself half a
microsecond: of eight rules `a ; b` that half of all events concern it is quicker to step each, of
sixteen it is quicker to visit their cells. Compiled loops also take half a second to load.
"""

MOST_PORTS = 8
"""A letter of a cell has a bit for each port of its rule."""

MOST_TRANSITIONS = 160
"""A larger machine mostly has a larger table than pays."""


def can_have_cells(rule: Rule) -> bool:
    """Whether the states of a rule can be held in cells, as far as its text says."""
    correlation, machine = rule.correlation, rule.machine
    if machine is None or machine_of(rule) is None or not rule.lets_keys_go:
        return False
    return (
        all(isinstance(port, EventPort) for port in correlation.ports)
        and not (machine.switches and machine.window is not None)
        and are_ports_for_cells(rule)
    )


def are_ports_for_cells(rule: Rule) -> bool:
    """Whether events can be told by the ports that they match, and bound events by those ports."""
    correlation, machine, atoms = rule.correlation, rule.machine, atoms_of(rule)
    assert machine is not None
    ports = {port.name for port in correlation.ports}
    return (
        len(rule.ports.key_names) <= MOST_PORTS
        and len(set(rule.ports.key_names.values())) == 1
        and len(machine.transitions) <= MOST_TRANSITIONS
        and not any(isinstance(atom, PredicateAtom) for atom in machine.atoms)
        and not (isinstance(correlation, FilterCorrelation) and correlation.clauses.bind == "first")
        # A machine from a damaged snapshot has others: whoever reads the rest of it says so.
        and atoms.keys() <= ports
        and all(port in atoms for branch in machine.branches for _, port, _ in branch.places)
    )


def cell_shape_of(rule: Rule) -> Shape:
    """The same for rules of one table."""
    correlation, machine = rule.correlation, machine_of(rule)
    assert machine is not None
    assert rule.machine is not None
    numbered = numbered_ports(correlation)
    clauses = replace(correlation.clauses, within=None)
    bare: Any = replace(correlation, name="", ports=(), clauses=clauses)
    said = with_ports(bare, numbered)
    atoms = tuple(
        numbered[atom.name] if isinstance(atom, PortAtom) else "" for atom in rule.machine.atoms
    )
    places = tuple(
        (place, numbered[port]) for b in rule.machine.branches for place, port, _ in b.places
    )
    has_window = rule.steps is not None
    key = next(iter(rule.ports.key_names.values()))
    types = types_of_ports(rule)
    return ("cells", has_window, key, said, types, replace(machine, window=None), atoms, places)


def types_of_ports(rule: Rule) -> tuple[str, ...]:
    """Whether a value is handed on as it is depends on these."""
    return tuple(port.type for port in rule.correlation.ports if isinstance(port, EventPort))

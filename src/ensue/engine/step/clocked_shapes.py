"""Which rules with timers can be visited in cells, and which of them share a table.

In comes a rule; out goes whether it can have cells that alarms visit, and its shape, the same for
rules that differ only in what their ports ask for, in how long their windows are, and in how long
their timers run, as long as those are ordered alike. What cells are not for (`cell_shapes`) is not
for these either; nor are labels that are aborted, and more than a few timers.
"""

from __future__ import annotations

from dataclasses import replace

from ensue.engine.step.cell_shapes import are_ports_for_cells, types_of_ports
from ensue.engine.step.rules import Rule
from ensue.engine.step.shapes import Shape, machine_of
from ensue.machine.model import Machine, PortAtom, Timer

MOST_TIMER_PORTS = 4
MOST_TIMEOUTS = 4
"""Each set of them has a letter, and a cell a number for each of them."""


def can_have_alarms(rule: Rule) -> bool:
    """Whether a rule has timers, and its states can be held in cells."""
    machine = rule.machine
    if machine is None or machine_of(rule) is None or not rule.has_clock or machine.switches:
        return False
    timeouts = {each.input for each in machine.transitions if isinstance(each.input, Timer)}
    return (
        len(rule.ports.timers) <= MOST_TIMER_PORTS
        and len(timeouts) <= MOST_TIMEOUTS
        and are_ports_for_cells(rule)
    )


def clocked_shape_of(rule: Rule) -> Shape | None:
    """The same for rules of one table; None for one that cannot have cells after all."""
    # Loaded only by a library that has enough rules for cells.
    from ensue.engine.core.shapes import durations_in, shape_of

    machine = machine_of(rule)
    assert machine is not None
    assert rule.machine is not None
    said, lengths = shape_of(rule.correlation), durations_in(rule.correlation)
    run = {each.input.after for each in machine.transitions if isinstance(each.input, Timer)}
    if not lengths or not run <= {*lengths}:
        # A machine from a damaged snapshot has others: whoever reads the rest of it says so.
        return None
    names = {port.name: number for number, port in enumerate(rule.correlation.ports)}
    ranks = {length: rank for rank, length in enumerate(lengths)}
    atoms = tuple(
        names[atom.name] if isinstance(atom, PortAtom) else -1 for atom in rule.machine.atoms
    )
    places = tuple(
        (place, names[port]) for b in rule.machine.branches for place, port, _ in b.places
    )
    key = next(iter(rule.ports.key_names.values()))
    types = types_of_ports(rule)
    return ("clocked", key, said, types, _with_ranks(machine, ranks), atoms, places)


def is_clocked_shape(shape: Shape) -> bool:
    return shape[0] == "clocked"


def _with_ranks(machine: Machine, ranks: dict[int, int]) -> Machine:
    """The machine with the places of its timeouts among all lengths, instead of their lengths."""
    transitions = tuple(
        replace(each, input=Timer(each.input.state, ranks[each.input.after]))
        if isinstance(each.input, Timer)
        else each
        for each in machine.transitions
    )
    return replace(machine, window=None, transitions=transitions)

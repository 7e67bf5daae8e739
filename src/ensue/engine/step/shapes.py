"""Which rules can be stepped together: those of a shape, and with them those of other shapes.

In comes a rule; out goes its shape, the same for rules whose machines have the same structure and
whose statements are the same but for the names of ports. They differ in what their ports ask for,
and in how long their windows are. Rules with timers, statements before the first case, changes of
labels, `bind first`, keys that differ from port to port, or a machine that is too long to be
written out have no shape; some of those can have cells (`cell_shapes`), and the others stay on
their own. Whether enough rules share a shape is for `companies` to decide, and running them for
`sliced_groups`.
"""

from __future__ import annotations

from dataclasses import replace

from ensue.engine.step.emitting import values_of
from ensue.engine.step.rules import Rule
from ensue.engine.step.sliced import is_sliced, only_grows
from ensue.events.types import TypeSystem
from ensue.lang.expressions import Expression
from ensue.lang.syntax import EventPort, FilterCorrelation, PushNew, PushPort
from ensue.machine.model import Machine, PortAtom

SMALLEST_GROUP = 8
"""From how many rules of one shape on it pays to step them together."""

Shape = tuple[object, ...]

Letter = tuple[str, str | None, Expression | None]
"""What a port asks for: a type, a source, a predicate."""


def shape_of(rule: Rule, types: TypeSystem) -> Shape | None:
    """The same for rules that can be stepped together; None for one that stays on its own."""
    correlation = rule.correlation
    machine = machine_of(rule)
    if (
        not isinstance(correlation, FilterCorrelation)
        or rule.machine is None
        or machine is None
        or not is_sliced(machine)
        or (rule.steps is not None and not only_grows(machine))
        or not rule.lets_keys_go
        or correlation.clauses.bind == "first"
    ):
        return None
    names = set(rule.ports.key_names.values())
    atoms = atoms_of(rule)
    called = {port: str(number) for port, number in atoms.items()}
    statements = [s for case in correlation.cases for s in case.statements]
    if len(names) != 1 or not all(isinstance(each, PushPort | PushNew) for each in statements):
        return None
    said: list[object] = []
    for case in correlation.cases:
        said.append(case.condition)
        for statement in case.statements:
            if isinstance(statement, PushPort):
                said.append(("on", atoms.get(statement.port)))
            elif isinstance(statement, PushNew):
                said.append(statement.type)
                for value in values_of(statement, correlation, types):
                    # As text, for in Python `1`, `1.0` and `True` would be one constant.
                    fixed = repr(value.constant)
                    port = None if value.port is None else atoms.get(value.port)
                    computed = value.computed_from(called)
                    said += [value.name, port, value.port is None, value.attribute, fixed, computed]
    placed = [(place, port) for branch in rule.machine.branches for place, port, _ in branch.places]
    if any(port not in atoms for _, port in placed):
        return None  # a machine from a damaged snapshot: whoever reads the rest of it says so
    places = tuple((place, atoms[port]) for place, port in placed)
    return (rule.steps is not None, machine, *names, *said, places)


def machine_of(rule: Rule) -> Machine | None:
    """The structure of a rule's machine, however long its window is."""
    if rule.form == "table" and rule.rows is not None:
        return rule.rows.machine
    if rule.steps is not None:
        return replace(rule.steps.machine, window=None)
    return None


def atoms_of(rule: Rule) -> dict[str, int]:
    """The number of each port among the atoms of its machine."""
    atoms = rule.machine.atoms if rule.machine else ()
    return {atom.name: number for number, atom in enumerate(atoms) if isinstance(atom, PortAtom)}


def letter_of(port: EventPort) -> Letter:
    return port.type, port.source, port.where

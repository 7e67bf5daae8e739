"""What the rules of a group have in common: their machines, atoms and what their ports ask for.

In comes a rule; out go the structure of its machine, the numbers of its ports among the atoms of
that machine, and the letters of its ports. Which rules share a table is for `cell_shapes` and
`clocked_shapes` to say.
"""

from __future__ import annotations

from dataclasses import replace

from ensue.engine.step.rules import Rule
from ensue.lang.expressions import Expression
from ensue.lang.syntax import EventPort
from ensue.machine.model import Machine, PortAtom

Shape = tuple[object, ...]

Letter = tuple[str, str | None, Expression | None]
"""What a port asks for: a type, a source, a predicate."""


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

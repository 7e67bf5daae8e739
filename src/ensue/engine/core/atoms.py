"""What a reading is to a machine: the atoms that it satisfies, as a mask (bit i: atom i)."""

from __future__ import annotations

from ensue.engine.ports import Reading
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import TimerScope, evaluate, holds
from ensue.lang.expressions.names import names_in
from ensue.machine.model import AnyAtom, Atom, Machine, PortAtom, PredicateAtom


def mask_of(machine: Machine, reading: Reading) -> int:
    mask = 0
    for number, atom in enumerate(machine.atoms):
        if satisfies(reading, atom):
            mask |= 1 << number
    return mask


def timer_mask(machine: Machine, port: str) -> int | None:
    """The mask of the firing of a timer port, whenever it is; None if its time matters."""
    for atom in machine.atoms:
        if isinstance(atom, PredicateAtom):
            names = names_in(atom.predicate)
            if any(parts[0].lower() == "time" for parts in names):
                return None
    return mask_of(machine, Reading(0, frozenset({port})))


def satisfies(reading: Reading, atom: Atom) -> bool:
    match atom:
        case PortAtom(name):
            return name in reading.ports
        case PredicateAtom(predicate):
            return predicate_holds(predicate, reading)
        case AnyAtom():
            return True


def predicate_holds(predicate: Expression, reading: Reading) -> bool:
    if reading.event is not None:
        return holds(predicate, reading.event)
    outcome = evaluate(predicate, TimerScope(reading.time))
    return outcome.value is True and not outcome.errors

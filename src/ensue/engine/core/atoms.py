"""What a reading is to a machine: the atoms that it satisfies, as a mask (bit i: atom i)."""

from __future__ import annotations

from ensue.engine.ports import Reading
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import TimerScope, evaluate, holds
from ensue.machine.model import AnyAtom, Atom, Machine, PortAtom, PredicateAtom


def mask_of(machine: Machine, reading: Reading) -> int:
    mask = 0
    for number, atom in enumerate(machine.atoms):
        if satisfies(reading, atom):
            mask |= 1 << number
    return mask


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

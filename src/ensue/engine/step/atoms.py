"""What a reading is to a machine: the atoms that it satisfies."""

from __future__ import annotations

from ensue.engine.ports import Reading
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import TimerScope, evaluate, holds
from ensue.machine.model import AnyAtom, Machine, PortAtom, PredicateAtom


def atoms_of(machine: Machine, reading: Reading) -> frozenset[int]:
    found = []
    for number, atom in enumerate(machine.atoms):
        match atom:
            case PortAtom(name):
                if name in reading.ports:
                    found.append(number)
            case PredicateAtom(predicate):
                if predicate_holds(predicate, reading):
                    found.append(number)
            case AnyAtom():
                found.append(number)
    return frozenset(found)


def predicate_holds(predicate: Expression, reading: Reading) -> bool:
    if reading.event is not None:
        return holds(predicate, reading.event)
    outcome = evaluate(predicate, TimerScope(reading.time))
    return outcome.value is True and not outcome.errors

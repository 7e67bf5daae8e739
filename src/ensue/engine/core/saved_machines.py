"""The machines of a snapshot.

A snapshot holds the machine on which its rules ran: a later version may build a better one for the
same text, and the states that were saved mean something on the old one only. The form is that of
`ensue.machine.records`, less the names of states. What comes back is checked there, and must fit
the rule it is for: its predicates are the rule's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue.errors import SnapshotError
from ensue.lang.expressions import Expression
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.syntax import (
    Correlation,
    Ecl,
    EclCorrelation,
    Fail,
    Group,
    Holds,
    Modes,
    Push,
    Round,
    Unless,
)
from ensue.machine.model import Machine
from ensue.machine.records import MachineRecord as PlainMachine
from ensue.machine.records import machine_of_record, record_of_machine

__all__ = ["PlainMachine", "from_plain", "to_plain"]


def to_plain(machine: Machine) -> PlainMachine:
    return record_of_machine(machine, print_expression, with_names=False)


def from_plain(plain: PlainMachine, correlation: Correlation) -> Machine:
    """The machine again, for the correlation that it was built from."""
    predicates = {print_expression(each): each for each in _predicates(correlation)}

    def own(text: str) -> Expression:
        if text not in predicates:
            raise ValueError(f"`{text}` is no predicate of `{correlation.name}`")
        return predicates[text]

    try:
        return machine_of_record(plain, own)
    except ValueError as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from None


def _predicates(correlation: Correlation) -> Iterator[Expression]:
    if isinstance(correlation, EclCorrelation):
        yield from _held(correlation.body)


def _held(x: Ecl) -> Iterator[Expression]:
    match x:
        case Holds(predicate):
            yield predicate
        case Group(_, parts):
            for part in parts:
                yield from _held(part)
        case Unless(body, stop):
            yield from _held(body)
            yield from _held(stop)
        case Fail(body) | Push(_, body) | Round(_, body):
            yield from _held(body)
        case Modes(modes):
            for mode in modes:
                yield from _held(mode.guard)
                yield from _held(mode.body)
        case _:
            return

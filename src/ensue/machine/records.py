"""The records in the body of tables (`ensue.machine.tables`), version 1.

Each is an array in MessagePack: its fields in the order below; a record that is one of several
kinds begins with the name of its kind. Sets of states are arrays in ascending order. Times are
microseconds. Predicates are CESQL text, expressions and transformers library text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from ensue.lang.expressions import Expression
from ensue.machine.model import (
    AnyAtom,
    Atom,
    Bind,
    Branch,
    Effect,
    Emit,
    Fire,
    Machine,
    PortAtom,
    PredicateAtom,
    State,
    Switch,
    Timer,
    Transition,
)


class Record(msgspec.Struct, array_like=True, frozen=True):
    """An array, for a library may have very many of them."""


class TypeRecord(Record, frozen=True, tag="type"):
    name: str
    parent: str | None
    attributes: list[tuple[str, str]]


class EventPortRecord(Record, frozen=True, tag="event"):
    name: str
    event_type: str
    source: str | None
    where: str | None


class TimerPortRecord(Record, frozen=True, tag="timer"):
    name: str
    kind: Literal["every", "deadline"]
    period: int


PortRecord = EventPortRecord | TimerPortRecord


class PortAtomRecord(Record, frozen=True, tag="port"):
    name: str


class PredicateAtomRecord(Record, frozen=True, tag="predicate"):
    text: str


class AnyAtomRecord(Record, frozen=True, tag="any"):
    pass


AtomRecord = PortAtomRecord | PredicateAtomRecord | AnyAtomRecord


class AtomInputRecord(Record, frozen=True, tag="atom"):
    number: int


class TimeoutInputRecord(Record, frozen=True, tag="timeout"):
    state: State
    after: int


class EmitRecord(Record, frozen=True, tag="emit"):
    event_type: str | None


class FireRecord(Record, frozen=True, tag="fire"):
    branch: int


class BindRecord(Record, frozen=True, tag="bind"):
    place: int
    first: bool


EffectRecord = EmitRecord | FireRecord | BindRecord


class TransitionRecord(Record, frozen=True):
    enabling: list[list[State]]
    input: AtomInputRecord | TimeoutInputRecord | None
    clear: list[State]
    target: list[State]
    effect: EffectRecord | None


class SwitchRecord(Record, frozen=True):
    label: str
    kind: Literal["abort", "revive"]
    requires: State
    clear: list[State]
    target: list[State]


class BranchRecord(Record, frozen=True):
    root: State
    labels: list[tuple[str, State]]
    places: list[tuple[int, str, State]]


class MachineRecord(Record, frozen=True):
    names: list[str]
    initial: list[State]
    transitions: list[TransitionRecord]
    atoms: list[AtomRecord]
    branches: list[BranchRecord]
    switches: list[SwitchRecord]
    window: int | None
    constant: list[State]


class CorrelationRecord(Record, frozen=True, tag="correlation"):
    name: str
    output: str
    ports: list[PortRecord]
    within: int | None
    by: list[str | list[tuple[str, str]]]
    bind: Literal["first", "last"] | None
    expression: str
    transformer: list[str] | None
    form: Literal["table", "linear", "memory"]
    why: str
    machine: MachineRecord | None


class BodyRecord(Record, frozen=True):
    made_by: str
    definitions: list[TypeRecord | CorrelationRecord]


# --- machines to records ----------------------------------------------------------------------


def record_of_machine(
    machine: Machine, print_predicate: Callable[[Expression], str]
) -> MachineRecord:
    def atom_record(atom: Atom) -> AtomRecord:
        match atom:
            case PortAtom(name):
                return PortAtomRecord(name)
            case PredicateAtom(predicate):
                return PredicateAtomRecord(print_predicate(predicate))
            case AnyAtom():
                return AnyAtomRecord()

    return MachineRecord(
        list(machine.names),
        sorted(machine.initial),
        [_transition_record(each) for each in machine.transitions],
        [atom_record(each) for each in machine.atoms],
        [BranchRecord(b.root, list(b.labels), list(b.places)) for b in machine.branches],
        [
            SwitchRecord(s.label, s.kind, s.requires, sorted(s.clear), sorted(s.target))
            for s in machine.switches
        ],
        machine.window,
        sorted(machine.constant),
    )


def _transition_record(transition: Transition) -> TransitionRecord:
    wanted: AtomInputRecord | TimeoutInputRecord | None = None
    if isinstance(transition.input, Timer):
        wanted = TimeoutInputRecord(transition.input.state, transition.input.after)
    elif transition.input is not None:
        wanted = AtomInputRecord(transition.input)
    return TransitionRecord(
        [sorted(states) for states in transition.enabling],
        wanted,
        sorted(transition.clear),
        sorted(transition.target),
        _effect_record(transition.effect),
    )


def _effect_record(effect: Effect | None) -> EffectRecord | None:
    match effect:
        case Emit(type_):
            return EmitRecord(type_)
        case Fire(branch):
            return FireRecord(branch)
        case Bind(place, first):
            return BindRecord(place, first)
        case None:
            return None


# --- and back ---------------------------------------------------------------------------------


def machine_of_record(
    record: MachineRecord, parse_predicate: Callable[[str], Expression]
) -> Machine:
    """The machine. Raises `ValueError` where a number names nothing."""
    size = len(record.names)

    def states(numbers: Iterable[int]) -> frozenset[State]:
        found = frozenset(numbers)
        for number in found:
            _check_number(number, size, "state")
        return found

    def atom(each: AtomRecord) -> Atom:
        match each:
            case PortAtomRecord(name):
                return PortAtom(name)
            case PredicateAtomRecord(text):
                return PredicateAtom(parse_predicate(text))
            case AnyAtomRecord():
                return AnyAtom()

    def transition(each: TransitionRecord) -> Transition:
        wanted: int | Timer | None = None
        if isinstance(each.input, TimeoutInputRecord):
            states([each.input.state])
            wanted = Timer(each.input.state, each.input.after)
        elif each.input is not None:
            _check_number(each.input.number, len(record.atoms), "atom")
            wanted = each.input.number
        if not each.enabling or not all(each.enabling):
            raise ValueError("a transition is enabled by nothing")
        return Transition(
            tuple(states(part) for part in each.enabling),
            wanted,
            states(each.clear),
            states(each.target),
            _effect(each.effect, len(record.branches), places),
        )

    places = {place for branch in record.branches for place, _, _ in branch.places}
    for branch in record.branches:
        states(state for _, state in branch.labels)
        states(state for _, _, state in branch.places)
    for switch in record.switches:
        states([switch.requires])
    return Machine(
        tuple(record.names),
        states(record.initial),
        tuple(transition(each) for each in record.transitions),
        tuple(atom(each) for each in record.atoms),
        tuple(Branch(b.root, tuple(b.labels), tuple(b.places)) for b in record.branches),
        tuple(
            Switch(s.label, s.kind, s.requires, states(s.clear), states(s.target))
            for s in record.switches
        ),
        record.window,
        states(record.constant),
    )


def _effect(record: EffectRecord | None, branches: int, places: set[int]) -> Effect | None:
    match record:
        case EmitRecord(type_):
            return Emit(type_)
        case FireRecord(branch):
            _check_number(branch, branches, "branch")
            return Fire(branch)
        case BindRecord(place, first):
            if place not in places:
                raise ValueError(f"there is no place {place}")
            return Bind(place, first)
        case None:
            return None


def _check_number(number: int, count: int, what: str) -> None:
    if not 0 <= number < count:
        raise ValueError(f"there is no {what} {number}: there are {count}")

"""The saved form of machines, and the records of tables (`ensue.machine.tables`) around them.

Each record is an array in MessagePack: its fields in the order below; a record that is one of
several kinds begins with the name of its kind. Sets of states are arrays in ascending order. Times
are microseconds. Predicates are CESQL text.

Snapshots hold machines in the same form, without the names of states. A record is checked when it
becomes a machine again: the number of a state, atom, branch or place that does not exist is a
`ValueError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from ensue.lang.expressions import Expression
from ensue.machine.limits import DEFAULT_MACHINE_LIMITS
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


class SavedRecord(msgspec.Struct, array_like=True, frozen=True):
    """A record is an array without field names, since a library may have very many records."""


InputRecord = int | tuple[State, int] | None
EffectRecord = tuple[str, str | int | None] | None


class TransitionRecord(SavedRecord, frozen=True):
    """`input` is the number of an atom, [state, microseconds] for a timeout, or nothing.

    `effect` is a word and its object: `emit` and a type or nothing, `fire` and a branch, `bind` and
    a place, or `first` and a place that keeps its first event.
    """

    enabling: tuple[tuple[State, ...], ...]
    input: InputRecord
    clear: tuple[State, ...]
    target: tuple[State, ...]
    effect: EffectRecord


class SwitchRecord(SavedRecord, frozen=True):
    label: str
    kind: Literal["abort", "revive"]
    requires: State
    clear: tuple[State, ...]
    target: tuple[State, ...]


class BranchRecord(SavedRecord, frozen=True):
    root: State
    labels: tuple[tuple[str, State], ...]
    places: tuple[tuple[int, str, State], ...]


class MachineRecord(SavedRecord, frozen=True):
    """`names` has the names of the states, or their number.

    An atom is `port` and its name, `predicate` and its text, or `any` and an empty text.
    """

    names: tuple[str, ...] | int
    initial: tuple[State, ...]
    transitions: tuple[TransitionRecord, ...]
    atoms: tuple[tuple[str, str], ...]
    branches: tuple[BranchRecord, ...]
    switches: tuple[SwitchRecord, ...]
    window: int | None
    constant: tuple[State, ...]


class PlanRecord(SavedRecord, frozen=True):
    """How a correlation runs: its form, why it has that one, and its machine if it has one."""

    form: Literal["table", "linear", "memory"]
    why: str
    machine: MachineRecord | None


class BodyRecord(SavedRecord, frozen=True):
    """`text` is the library, and `plans` has one record for each correlation, in their order."""

    made_by: str
    text: str
    plans: list[PlanRecord]


# --- machines to records ----------------------------------------------------------------------


def record_of_machine(
    machine: Machine, print_predicate: Callable[[Expression], str], *, with_names: bool = True
) -> MachineRecord:
    def atom_record(atom: Atom) -> tuple[str, str]:
        match atom:
            case PortAtom(name):
                return "port", name
            case PredicateAtom(predicate):
                return "predicate", print_predicate(predicate)
            case AnyAtom():
                return "any", ""

    return MachineRecord(
        machine.names if with_names else len(machine.names),
        _sorted(machine.initial),
        tuple(_transition_record(each) for each in machine.transitions),
        tuple(atom_record(each) for each in machine.atoms),
        tuple(BranchRecord(b.root, b.labels, b.places) for b in machine.branches),
        tuple(
            SwitchRecord(s.label, s.kind, s.requires, _sorted(s.clear), _sorted(s.target))
            for s in machine.switches
        ),
        machine.window,
        _sorted(machine.constant),
    )


def _transition_record(transition: Transition) -> TransitionRecord:
    given = transition.input
    return TransitionRecord(
        tuple(_sorted(states) for states in transition.enabling),
        (given.state, given.after) if isinstance(given, Timer) else given,
        _sorted(transition.clear),
        _sorted(transition.target),
        _effect_record(transition.effect),
    )


def _effect_record(effect: Effect | None) -> EffectRecord:
    match effect:
        case Emit(type_):
            return "emit", type_
        case Fire(branch):
            return "fire", branch
        case Bind(place, first):
            return "first" if first else "bind", place
        case None:
            return None


def _sorted(states: Iterable[State]) -> tuple[State, ...]:
    return tuple(sorted(states))


# --- and back ---------------------------------------------------------------------------------


def machine_of_record(
    record: MachineRecord, parse_predicate: Callable[[str], Expression]
) -> Machine:
    """The machine of a record. Raises `ValueError` for a number that stands for nothing."""
    count = record.names if isinstance(record.names, int) else len(record.names)
    if not 0 <= count <= DEFAULT_MACHINE_LIMITS.states:
        raise ValueError(f"a machine has {count} states: up to {DEFAULT_MACHINE_LIMITS.states} fit")
    names = (
        tuple(f"state {number}" for number in range(count))
        if isinstance(record.names, int)
        else record.names
    )

    def states(numbers: Iterable[int]) -> frozenset[State]:
        found = frozenset(numbers)
        for number in found:
            _check_number(number, len(names), "state")
        return found

    def atom(each: tuple[str, str]) -> Atom:
        match each:
            case ("port", name):
                return PortAtom(name)
            case ("predicate", text):
                return PredicateAtom(parse_predicate(text))
            case ("any", _):
                return AnyAtom()
        raise ValueError(f"`{each}` is no atom of a machine")

    def transition(each: TransitionRecord) -> Transition:
        wanted = Timer(*each.input) if isinstance(each.input, tuple) else each.input
        if isinstance(wanted, Timer):
            states([wanted.state])
        elif wanted is not None:
            _check_number(wanted, len(record.atoms), "atom")
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
        # The root is -1 where only the firing transition says that a branch is complete.
        states([branch.root] if branch.root != -1 else [])
        states(state for _, state in branch.labels)
        states(state for _, _, state in branch.places)
    for switch in record.switches:
        states([switch.requires])
    return Machine(
        names,
        states(record.initial),
        tuple(transition(each) for each in record.transitions),
        tuple(atom(each) for each in record.atoms),
        tuple(Branch(b.root, b.labels, b.places) for b in record.branches),
        tuple(
            Switch(s.label, s.kind, s.requires, states(s.clear), states(s.target))
            for s in record.switches
        ),
        record.window,
        states(record.constant),
    )


def _effect(record: EffectRecord, branches: int, places: set[int]) -> Effect | None:
    match record:
        case None:
            return None
        case ("emit", str() | None as type_):
            return Emit(type_)
        case ("fire", int(branch)):
            _check_number(branch, branches, "branch")
            return Fire(branch)
        case ("bind" | "first" as word, int(place)):
            if place not in places:
                raise ValueError(f"there is no place {place}")
            return Bind(place, first=word == "first")
    raise ValueError(f"`{record}` is no effect of a transition")


def _check_number(number: int, count: int, what: str) -> None:
    if not 0 <= number < count:
        raise ValueError(f"there is no {what} {number}: there are {count}")

"""Machines as plain data, for snapshots.

A snapshot holds the machine on which its rules ran: a later version may build a better one for the
same text, and the states that were saved mean something on the old one only. What comes back from
bytes is checked: every state and every atom must be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ensue.errors import SnapshotError
from ensue.lang.expressions import Expression
from ensue.lang.expressions.printing import print_expression
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


class PlainTransition(msgspec.Struct, array_like=True, frozen=True):
    """`input`: an atom, (state, microseconds) of a timeout, or nothing. `effect`: a word and what.

    The words are `emit` (a type or nothing), `fire` (a branch), `bind` and `first` (a place).
    """

    enabling: tuple[tuple[int, ...], ...]
    input: int | tuple[int, int] | None
    clear: tuple[int, ...]
    target: tuple[int, ...]
    effect: tuple[str, str | int | None] | None


class PlainSwitch(msgspec.Struct, array_like=True, frozen=True):
    label: str
    kind: str
    requires: int
    clear: tuple[int, ...]
    target: tuple[int, ...]


class PlainBranch(msgspec.Struct, array_like=True, frozen=True):
    root: int
    labels: tuple[tuple[str, int], ...]
    places: tuple[tuple[int, str, int], ...]


class PlainMachine(msgspec.Struct, array_like=True, frozen=True):
    """`atoms`: `port` and its name, `predicate` and its text, or `any`."""

    states: int
    initial: tuple[int, ...]
    transitions: tuple[PlainTransition, ...]
    atoms: tuple[tuple[str, str], ...]
    branches: tuple[PlainBranch, ...]
    switches: tuple[PlainSwitch, ...]
    window: int | None
    constant: tuple[int, ...]


def to_plain(machine: Machine) -> PlainMachine:
    return PlainMachine(
        len(machine.names),
        _sorted(machine.initial),
        tuple(
            PlainTransition(
                tuple(_sorted(states) for states in each.enabling),
                (each.input.state, each.input.after)
                if isinstance(each.input, Timer)
                else each.input,
                _sorted(each.clear),
                _sorted(each.target),
                _plain_effect(each.effect),
            )
            for each in machine.transitions
        ),
        tuple(_plain_atom(atom) for atom in machine.atoms),
        tuple(PlainBranch(each.root, each.labels, each.places) for each in machine.branches),
        tuple(
            PlainSwitch(
                each.label, each.kind, each.requires, _sorted(each.clear), _sorted(each.target)
            )
            for each in machine.switches
        ),
        machine.window,
        _sorted(machine.constant),
    )


def from_plain(plain: PlainMachine, correlation: Correlation) -> Machine:
    """The machine again, for the correlation that it was built from."""
    predicates = {print_expression(each): each for each in _predicates(correlation)}
    machine = Machine(
        tuple(f"state {number}" for number in range(plain.states)),
        frozenset(plain.initial),
        tuple(
            Transition(
                tuple(frozenset(states) for states in each.enabling),
                Timer(*each.input) if isinstance(each.input, tuple) else each.input,
                frozenset(each.clear),
                frozenset(each.target),
                _effect(each.effect),
            )
            for each in plain.transitions
        ),
        tuple(_atom(atom, predicates) for atom in plain.atoms),
        tuple(Branch(each.root, each.labels, each.places) for each in plain.branches),
        tuple(
            Switch(
                each.label,
                "abort" if each.kind == "abort" else "revive",
                each.requires,
                frozenset(each.clear),
                frozenset(each.target),
            )
            for each in plain.switches
        ),
        plain.window,
        frozenset(plain.constant),
    )
    _check(machine)
    return machine


def _sorted(states: Iterable[State]) -> tuple[int, ...]:
    return tuple(sorted(states))


def _plain_effect(effect: Effect | None) -> tuple[str, str | int | None] | None:
    match effect:
        case Emit(type_name):
            return "emit", type_name
        case Fire(branch):
            return "fire", branch
        case Bind(place, first):
            return "first" if first else "bind", place
        case None:
            return None


def _effect(plain: tuple[str, str | int | None] | None) -> Effect | None:
    match plain:
        case None:
            return None
        case ("emit", str() | None as type_name):
            return Emit(type_name)
        case ("fire", int(branch)):
            return Fire(branch)
        case ("bind" | "first" as word, int(place)):
            return Bind(place, word == "first")
    raise SnapshotError(f"the snapshot is damaged: `{plain[0]}` is no effect of a machine")


def _plain_atom(atom: Atom) -> tuple[str, str]:
    match atom:
        case PortAtom(name):
            return "port", name
        case PredicateAtom(predicate):
            return "predicate", print_expression(predicate)
        case AnyAtom():
            return "any", ""


def _atom(plain: tuple[str, str], predicates: dict[str, Expression]) -> Atom:
    match plain:
        case ("port", name):
            return PortAtom(name)
        case ("predicate", text) if text in predicates:
            return PredicateAtom(predicates[text])
        case ("any", _):
            return AnyAtom()
    raise SnapshotError(f"the snapshot is damaged: `{plain[0]}` is no input of its rule")


def _check(machine: Machine) -> None:
    mentioned: set[int] = set(machine.initial | machine.constant)
    for each in machine.transitions:
        mentioned.update(each.clear, each.target, *each.enabling)
        if isinstance(each.input, Timer):
            mentioned.add(each.input.state)
        elif each.input is not None and not 0 <= each.input < len(machine.atoms):
            raise SnapshotError("the snapshot is damaged: a machine waits for what is not there")
        if isinstance(each.effect, Fire) and not 0 <= each.effect.branch < len(machine.branches):
            raise SnapshotError("the snapshot is damaged: a machine fires what is not there")
    for branch in machine.branches:
        mentioned.update([branch.root], (s for _, s in branch.labels))
        mentioned.update(state for _, _, state in branch.places)
    for switch in machine.switches:
        mentioned.update([switch.requires], switch.clear, switch.target)
    if mentioned and not 0 <= min(mentioned) <= max(mentioned) < len(machine.names):
        raise SnapshotError("the snapshot is damaged: a machine names states that it has not")


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

"""What every drawing of a machine draws: circles, boxes, and arrows between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ensue.lang.durations import print_duration
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.syntax import Duration
from ensue.machine.model import (
    AnyAtom,
    Bind,
    Emit,
    Fire,
    Machine,
    PortAtom,
    PredicateAtom,
    State,
    Timer,
    Transition,
)

NAMED_IN_A_TOOLTIP = 12


@dataclass(frozen=True, slots=True)
class Circle:
    """A state. `notes` say what it shows: that a label is active, or that a port is bound."""

    id: str
    text: str
    is_initial: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A transition: its input and its effect as lines, shaded if it needs several states."""

    id: str
    input: str
    output: str
    is_shaded: bool
    clears: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(line for line in (self.input, self.output) if line)

    @property
    def tooltip(self) -> str:
        if not self.clears:
            return "clears nothing"
        shown = ", ".join(self.clears[:NAMED_IN_A_TOOLTIP])
        more = len(self.clears) - NAMED_IN_A_TOOLTIP
        return f"clears {shown}" + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class Arrow:
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Circles in the order of their numbers, boxes in that of their priority."""

    circles: tuple[Circle, ...]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    steps: dict[str, int]
    """The number of steps to each circle and box: the column in which it is drawn."""


def graph_of(machine: Machine) -> Graph:
    """The graph of a machine, without states that no transition tests or sets."""
    drawn = set(machine.initial)
    for transition in machine.transitions:
        drawn |= transition.target.union(*transition.enabling)
    boxes, arrows = [], []
    for number, transition in enumerate(machine.transitions):
        box = f"t{number}"
        boxes.append(
            Box(
                box,
                input_text(machine, transition),
                output_text(machine, transition),
                len(transition.enabling) > 1,
                tuple(machine.names[state] for state in sorted(transition.clear)),
            )
        )
        looked_at = frozenset[State]().union(*transition.enabling)
        arrows += [Arrow(f"s{state}", box) for state in sorted(looked_at)]
        arrows += [Arrow(box, f"s{state}") for state in sorted(transition.target)]
    notes = _notes(machine)
    circles = tuple(
        Circle(
            f"s{state}",
            machine.names[state],
            state in machine.initial,
            tuple(notes.get(state, ())),
        )
        for state in sorted(drawn)
    )
    return Graph(circles, tuple(boxes), tuple(arrows), _steps(machine, drawn))


def input_text(machine: Machine, transition: Transition) -> str:
    wanted = transition.input
    if wanted is None:
        return ""
    if isinstance(wanted, Timer):
        return f"timeout({print_duration(Duration(wanted.after))})"
    match machine.atoms[wanted]:
        case PortAtom(name):
            return name
        case PredicateAtom(predicate):
            return f"< {print_expression(predicate)} >"
        case AnyAtom():
            return "any event"


def output_text(machine: Machine, transition: Transition) -> str:
    match transition.effect:
        case Emit(None):
            return "notify"
        case Emit(type_):
            return f"push {type_}"
        case Fire(branch):
            return "fire" if len(machine.branches) == 1 else f"fire branch {branch + 1}"
        case Bind(place, first):
            port = machine.port_of_place.get(place, "")
            return f"bind {'first ' if first else ''}{port}".rstrip()
        case None:
            return ""


def _steps(machine: Machine, drawn: set[State]) -> dict[str, int]:
    """The columns of circles and boxes.

    A box stands after one circle of each group that it needs, a circle after the first box that
    sets it. A circle that no box sets stands at the beginning; so does a circle in a cycle, once
    all others have their columns.
    """
    waiting = dict(enumerate(machine.transitions))
    missing = {number: set(range(len(t.enabling))) for number, t in waiting.items()}
    looking: dict[State, list[tuple[int, int]]] = {}
    for number, transition in waiting.items():
        for part, states in enumerate(transition.enabling):
            for state in states:
                looking.setdefault(state, []).append((number, part))
    set_by_some = frozenset[State]().union(*(t.target for t in machine.transitions))
    reached: set[State] = set()
    found: dict[str, int] = {}

    def reach(states: Iterable[State], column: int) -> list[int]:
        """The boxes that these circles complete."""
        completed = []
        for state in set(states) - reached:
            reached.add(state)
            found[f"s{state}"] = column
            for number, part in looking.get(state, ()):
                if missing[number] == {part}:
                    completed.append(number)
                missing[number].discard(part)
        return completed

    enabled = reach(machine.initial | (drawn - set_by_some), 0)
    column = 0
    while waiting:
        if not enabled:
            enabled = reach(frozenset().union(*next(iter(waiting.values())).enabling), 0)
        fresh: set[State] = set()
        for number in enabled:
            found[f"t{number}"] = column + 1
            fresh |= waiting.pop(number).target
        enabled = reach(fresh, column + 2)
        column += 2
    return found


def _notes(machine: Machine) -> dict[State, list[str]]:
    """Notes for states: the label that is active, the port that is bound."""
    found: dict[State, list[str]] = {}
    for branch in machine.branches:
        for label, state in branch.labels:
            found.setdefault(state, []).append(f"label {label}")
    for branch in machine.branches:
        for _, port, state in branch.places:
            found.setdefault(state, []).append(f"{port} is bound")
    return found

"""Correlation machines: sets of active states, and transitions in an order of priority.

A transition is enabled when each of its enabling sets has an active state. It clears states, sets
states and may have an effect (an output, a binding, the firing of a branch). An *input* transition
waits for an atom (a port that an event matches, a predicate that holds, or any event) or for a
timeout that is due; an *internal* transition waits for nothing.

An event is taken in **one pass** over the transitions in their order. That is the paper's "internal
transitions run to rest", made explicit: machines are built from the inside out, so that the
transitions of a part stand before those of the expression around it, and success before failure. An
input transition looks at the states that were active when the event came: a state that is set
during a pass reads the next event, not this one.

With a window each active state also has a *start*: the time of the earliest event that a match
ending in this state has to use. The start of an enabling set is the latest start of its active
states, the start of a transition is the earliest of its enabling sets; for `|` and `+` that is the
algebra of windows. A machine without a window needs no starts and is a finite transducer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ensue.lang.expressions import Expression

State = int


@dataclass(frozen=True, slots=True)
class PortAtom:
    """An event that matches a port, or the firing of a timer port."""

    name: str


@dataclass(frozen=True, slots=True)
class PredicateAtom:
    """An event that is read and for which a predicate holds."""

    predicate: Expression


@dataclass(frozen=True, slots=True)
class AnyAtom:
    """Any event that is read."""


Atom = PortAtom | PredicateAtom | AnyAtom


@dataclass(frozen=True, slots=True)
class Timer:
    """The input of a timeout: the clock reaches so many microseconds after the state was set."""

    state: State
    after: int


@dataclass(frozen=True, slots=True)
class Emit:
    """Put out an event of a type (None: the correlation's declared output type)."""

    type: str | None


@dataclass(frozen=True, slots=True)
class Fire:
    """A branch triggers; then the transformer runs for it."""

    branch: int


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind the event in a place of a port; with `first`, only if the place holds none."""

    place: int
    first: bool = False


Effect = Emit | Fire | Bind


@dataclass(frozen=True, slots=True)
class Transition:
    """`input` is an index into the machine's atoms, a timer, or None for an internal transition."""

    enabling: tuple[frozenset[State], ...]
    input: int | Timer | None = None
    clear: frozenset[State] = frozenset()
    target: frozenset[State] = frozenset()
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """What `abort` or `revive` of a label does to the active states.

    It acts only if the label is in the other state: `requires` must be active.
    """

    label: str
    kind: Literal["abort", "revive"]
    requires: State
    clear: frozenset[State]
    target: frozenset[State]


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a filter: the states of its labels, and the places of its ports.

    `root` is the state in which the branch is complete. It is -1 where a pass has removed that
    state, and only the firing transition shows that the branch is complete.
    """

    root: State
    labels: tuple[tuple[str, State], ...]
    places: tuple[tuple[int, str, State], ...]
    """(place, port, the state in which the place is bound)"""


@dataclass(frozen=True)
class Machine:
    """The machine of one correlation, with a name for each state; transitions are in order."""

    names: tuple[str, ...]
    initial: frozenset[State]
    transitions: tuple[Transition, ...]
    atoms: tuple[Atom, ...]
    branches: tuple[Branch, ...] = ()
    switches: tuple[Switch, ...] = ()
    window: int | None = None
    constant: frozenset[State] = field(default_factory=frozenset)
    """The states whose start is always the present: the origin of matches, the marks of labels."""

    @cached_property
    def port_of_place(self) -> Mapping[int, str]:
        return {place: port for branch in self.branches for place, port, _ in branch.places}

    @cached_property
    def distinct_names(self) -> tuple[str, ...]:
        """The names, with a number where several states stand for equal parts."""
        seen: Counter[str] = Counter()
        found = []
        for name in self.names:
            seen[name] += 1
            found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return tuple(found)

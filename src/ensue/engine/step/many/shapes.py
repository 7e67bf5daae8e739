"""Which rules can run in cells, and which of them share a table.

In comes a correlation with its machine; out goes why it cannot have cells, if it cannot, and its
*shape*. Rules of one shape differ in what their ports and predicates ask for, in how long their
window is, and in how long their timers run, as long as those lengths are ordered alike: they share
one packed table (`packed_table`). Nothing here needs compiled loops, so that a library of few rules
does not load them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from ensue.engine.renaming import numbered_ports, with_ports
from ensue.lang.expressions import Expression, Literal
from ensue.lang.syntax import (
    Correlation,
    Duration,
    EclCorrelation,
    EventPort,
    Holds,
    Timeout,
    TimerPort,
)
from ensue.machine.model import Branch, Machine, PortAtom, PredicateAtom, Timer

MOST_LETTER_BITS = 8
"""A letter has a bit for each event port and each predicate of its rule."""

MOST_TIMER_PORTS = 4
MOST_TIMEOUTS = 4
"""Each set of timeouts has a letter, and a cell a word for each timer."""

MOST_PLACES = 16
"""A cell has a word for each place."""

MOST_TRANSITIONS = 160
"""A larger machine mostly has a larger table than pays."""

Shape = tuple[object, ...]


def why_no_cells(correlation: Correlation, machine: Machine) -> str | None:
    """Why a rule cannot run in cells; None if it can."""
    timeouts = {each.input for each in machine.transitions if isinstance(each.input, Timer)}
    timer_ports = [port for port in correlation.ports if isinstance(port, TimerPort)]
    predicates = [atom for atom in machine.atoms if isinstance(atom, PredicateAtom)]
    places = [each for branch in machine.branches for each in branch.places]
    if len(event_atoms(correlation, machine)) > MOST_LETTER_BITS:
        return f"it has more than {MOST_LETTER_BITS} event ports and predicates"
    if len(machine.transitions) > MOST_TRANSITIONS:
        return f"its machine has more than {MOST_TRANSITIONS} transitions"
    if len(timer_ports) > MOST_TIMER_PORTS or len(timeouts) > MOST_TIMEOUTS:
        return f"it has more than {MOST_TIMER_PORTS} timer ports or {MOST_TIMEOUTS} timeouts"
    if any(place >= MOST_PLACES for place, _, _ in places):
        return f"its ports have more than {MOST_PLACES} places"
    if predicates and timer_ports:
        return "a predicate may ask for the time at which a timer fires"
    # A machine from a damaged snapshot may be of another rule. Restoring its state refuses it.
    ports = {port.name for port in correlation.ports}
    atoms = {atom.name for atom in machine.atoms if isinstance(atom, PortAtom)}
    if not atoms <= ports or any(port not in atoms for _, port, _ in places):
        return "its machine has other ports"
    if not {timer.after for timer in timeouts} <= {*durations_in(correlation)}:
        return "its machine has other timeouts"
    return None


def shape_of(correlation: Correlation, machine: Machine) -> Shape:
    """The same for rules that share a table."""
    numbered = numbered_ports(correlation)
    normal = _Normal(
        {length: Duration(1 + rank) for rank, length in enumerate(durations_in(correlation))},
        {a.predicate: n for n, a in enumerate(machine.atoms) if isinstance(a, PredicateAtom)},
    )
    ports = tuple(
        EventPort(port.type, numbered[port.name])
        if isinstance(port, EventPort)
        else TimerPort(port.kind, normal.ranks[port.period.microseconds], numbered[port.name])
        for port in correlation.ports
    )
    clauses = replace(correlation.clauses, within=None)
    said: Any = with_ports(replace(correlation, name="", ports=(), clauses=clauses), numbered)
    if isinstance(said, EclCorrelation):
        said = replace(said, body=normal.said(said.body))
    atoms = tuple(
        numbered[atom.name] if isinstance(atom, PortAtom) else type(atom).__name__
        for atom in machine.atoms
    )
    transitions = tuple(
        replace(each, input=Timer(each.input.state, normal.ranks[each.input.after].microseconds))
        if isinstance(each.input, Timer)
        else each
        for each in machine.transitions
    )
    bare = replace(structure(machine), window=None, transitions=transitions)
    places = tuple((place, numbered[port]) for b in machine.branches for place, port, _ in b.places)
    return said, ports, machine.window is not None, bare, atoms, places


def structure(machine: Machine) -> Machine:
    """The machine without the names of its states, ports and predicates."""
    branches = tuple(
        Branch(b.root, b.labels, tuple((place, "", state) for place, _, state in b.places))
        for b in machine.branches
    )
    return replace(machine, names=("",) * len(machine.names), atoms=(), branches=branches)


def event_atoms(correlation: Correlation, machine: Machine) -> list[PortAtom | PredicateAtom]:
    """What an event can match of a rule, in the order of the bits of its letters."""
    ports = [PortAtom(port.name) for port in correlation.ports if isinstance(port, EventPort)]
    return [*ports, *(atom for atom in machine.atoms if isinstance(atom, PredicateAtom))]


def durations_in(correlation: Correlation) -> list[int]:
    """How long the timers of a correlation run, each length once, the shortest first."""
    found = {port.period.microseconds for port in correlation.ports if isinstance(port, TimerPort)}
    if isinstance(correlation, EclCorrelation):
        found.update(_timeouts_in(correlation.body))
    return sorted(found)


def _timeouts_in(said: Any) -> Iterator[int]:
    match said:
        case Timeout(after):
            yield after.microseconds
        case tuple():
            for each in said:
                yield from _timeouts_in(each)
        case _ if is_dataclass(said) and not isinstance(said, type):
            for each in fields(said):
                if each.compare:
                    yield from _timeouts_in(getattr(said, each.name))


@dataclass(frozen=True, slots=True)
class _Normal:
    """ECL with the ranks of its durations instead of these, and with numbers for predicates."""

    ranks: Mapping[int, Duration]
    predicates: Mapping[Expression, int]

    def said(self, x: Any) -> Any:
        match x:
            case Timeout(after):
                return Timeout(self.ranks[after.microseconds])
            case Holds(predicate):
                return Holds(Literal(self.predicates.get(predicate, -1)))
            case tuple():
                return tuple(self.said(each) for each in x)
            case _ if is_dataclass(x) and not isinstance(x, type):
                held = {each.name: getattr(x, each.name) for each in fields(x) if each.compare}
                changed = {
                    name: self.said(value)
                    for name, value in held.items()
                    if isinstance(value, tuple) or is_dataclass(value)
                }
                return replace(x, **changed)
            case _:
                return x

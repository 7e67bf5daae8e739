"""Which rules can run in cells, and which of them share a table.

In comes a correlation with its machine; out goes why it cannot have cells, if it cannot, and its
*shape*, which is equal for rules that share a table. It is the shape of `core.shapes` together with
what may differ here: the machine, which may come from a snapshot, and the types of ports, which
decide whether a value is handed on as it is. Asking why needs no compiled loops, so that a library
of few rules does not load them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensue.engine.core.instances.rows import structure
from ensue.lang.syntax import Correlation, EventPort, TimerPort
from ensue.machine.model import Machine, PortAtom, PredicateAtom, Timer

MOST_LETTER_BITS = 8
"""A letter has a bit for each event port and each predicate of its rule."""

MOST_TIMER_PORTS = 4
MOST_TIMEOUTS = 4
"""Each set of timeouts has a letter, and a cell a word for each timer."""

MOST_TRANSITIONS = 160
"""A larger machine mostly has a larger table than pays."""

Shape = tuple[object, ...]


def why_no_cells(correlation: Correlation, machine: Machine) -> str | None:
    """Why a rule cannot run in cells; None if it can."""
    timer_ports = [port for port in correlation.ports if isinstance(port, TimerPort)]
    predicates = [atom for atom in machine.atoms if isinstance(atom, PredicateAtom)]
    if len(event_atoms(correlation, machine)) > MOST_LETTER_BITS:
        return f"it has more than {MOST_LETTER_BITS} event ports and predicates"
    if len(machine.transitions) > MOST_TRANSITIONS:
        return f"its machine has more than {MOST_TRANSITIONS} transitions"
    if len(timer_ports) > MOST_TIMER_PORTS or len(_timeouts(machine)) > MOST_TIMEOUTS:
        return f"it has more than {MOST_TIMER_PORTS} timer ports or {MOST_TIMEOUTS} timeouts"
    if predicates and timer_ports:
        return "a predicate may ask for the time at which a timer fires"
    # A machine from a damaged snapshot may be of another rule. Restoring its state refuses it.
    ports = {port.name for port in correlation.ports}
    atoms = {atom.name for atom in machine.atoms if isinstance(atom, PortAtom)}
    bound = {port for branch in machine.branches for _, port, _ in branch.places}
    return None if bound <= atoms <= ports else "its machine has other ports"


def shape_of(correlation: Correlation, machine: Machine) -> Shape | None:
    """The shape of rules that share a table; None where the machine is not of the rule."""
    # Loaded only for a library that has enough rules for cells.
    from ensue.engine.core.shapes import durations_in
    from ensue.engine.core.shapes import shape_of as shape_of_text

    ranks = {length: rank for rank, length in enumerate(durations_in(correlation))}
    if not {timer.after for timer in _timeouts(machine)} <= ranks.keys():
        # As above, of a damaged snapshot.
        return None
    numbers = {port.name: number for number, port in enumerate(correlation.ports)}
    transitions = tuple(
        replace(each, input=Timer(each.input.state, ranks[each.input.after]))
        if isinstance(each.input, Timer)
        else each
        for each in machine.transitions
    )
    bare = replace(structure(machine), window=None, transitions=transitions)
    atoms = tuple(
        numbers[atom.name] if isinstance(atom, PortAtom) else atom for atom in machine.atoms
    )
    places = tuple((place, numbers[port]) for b in machine.branches for place, port, _ in b.places)
    types = tuple(port.type for port in correlation.ports if isinstance(port, EventPort))
    return (*shape_of_text(correlation), types, bare, atoms, places)


def _timeouts(machine: Machine) -> set[Timer]:
    return {each.input for each in machine.transitions if isinstance(each.input, Timer)}


def event_atoms(correlation: Correlation, machine: Machine) -> Sequence[PortAtom | PredicateAtom]:
    """What an event can match of a rule, in the order of the bits of its letters."""
    ports = [PortAtom(port.name) for port in correlation.ports if isinstance(port, EventPort)]
    return [*ports, *(atom for atom in machine.atoms if isinstance(atom, PredicateAtom))]

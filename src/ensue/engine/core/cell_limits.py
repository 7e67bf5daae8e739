"""Which rules can have cells, for both engines: the one place that refuses a rule, with the reason.

In come a rule, its machine and the limits of an engine; out goes None, or why the rule runs in
another way. Rules that can have cells are grouped by their key: `core.shapes` says which of them
share a table. Nothing here needs compiled loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ensue.lang.syntax import Correlation, EventPort, TimerPort
from ensue.machine.model import Machine, PortAtom, PredicateAtom, Timer


@dataclass(frozen=True, slots=True)
class CellLimits:
    """The most that cells of an engine hold.

    A letter has a bit for each event port and each predicate of its rule. Each set of timeouts that
    may be due together has a letter, and a cell has a word for each timer. A machine of many
    `transitions` mostly has a larger table than pays; None if the engine gives a table up later.
    """

    letter_bits: int
    timer_ports: int
    timeouts: int
    transitions: int | None
    takes_predicates: bool


STEP_CELLS = CellLimits(8, 4, 4, 160, takes_predicates=True)
BATCH_CELLS = CellLimits(8, 8, 8, None, takes_predicates=False)


def why_no_cells(correlation: Correlation, machine: Machine, limits: CellLimits) -> str | None:
    """Why a rule cannot have cells; None if it can."""
    timer_ports = [port for port in correlation.ports if isinstance(port, TimerPort)]
    predicates = [atom for atom in machine.atoms if isinstance(atom, PredicateAtom)]
    if predicates and not limits.takes_predicates:
        return "it has predicates besides those of its ports"
    if len(event_atoms(correlation, machine)) > limits.letter_bits:
        return f"it has more than {limits.letter_bits} event ports and predicates"
    if limits.transitions is not None and len(machine.transitions) > limits.transitions:
        return f"its machine has more than {limits.transitions} transitions"
    if len(timer_ports) > limits.timer_ports or len(timeouts_of(machine)) > limits.timeouts:
        return f"it has more than {limits.timer_ports} timer ports or {limits.timeouts} timeouts"
    if predicates and timer_ports:
        return "a predicate may ask for the time at which a timer fires"
    # A machine from a damaged snapshot may be of another rule. Restoring its state refuses it.
    ports = {port.name for port in correlation.ports}
    atoms = {atom.name for atom in machine.atoms if isinstance(atom, PortAtom)}
    bound = {port for branch in machine.branches for _, port, _ in branch.places}
    return None if bound <= atoms <= ports else "its machine has other ports"


def event_atoms(correlation: Correlation, machine: Machine) -> Sequence[PortAtom | PredicateAtom]:
    """What an event can match of a rule, in the order of the bits of its letters."""
    ports = [PortAtom(port.name) for port in correlation.ports if isinstance(port, EventPort)]
    return [*ports, *(atom for atom in machine.atoms if isinstance(atom, PredicateAtom))]


def timeouts_of(machine: Machine) -> set[Timer]:
    return {each.input for each in machine.transitions if isinstance(each.input, Timer)}

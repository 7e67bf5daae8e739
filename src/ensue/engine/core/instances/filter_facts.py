"""The facts that all instances of a filter share: its places and switches, and its firings.

In comes a checked filter with its machine; out come its places and switches, and the functions that
build the outputs of a branch that fires. A function is made when it is first asked for, and kept.
How an instance comes to a firing is for `filters`.
"""

from __future__ import annotations

from ensue.engine.core.instances.firing import EmitOutputs, outputs_of_firing
from ensue.engine.core.instances.keys import BEGINS, NO_MOVE, FirstMove, MachineFacts
from ensue.engine.core.instances.rows import OutputConditions
from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import changed_labels
from ensue.lang.syntax import FilterCorrelation, TimerPort
from ensue.machine.bitwise import FIRINGS_REMEMBERED, numbers_in
from ensue.machine.model import Machine, Switch
from ensue.machine.stepping import Fired, Stepper

MASKS_REMEMBERED = 4096
"""The most masks of events whose atoms, and whose effect on a fresh key, are remembered."""


class FilterFacts(MachineFacts):
    """What all instances of a filter share.

    `first_moves` says, by the masks of events, what they do to a key of a rule with a window that
    has not started.
    """

    correlation: FilterCorrelation

    def __init__(self, correlation: FilterCorrelation, machine: Machine, types: TypeSystem) -> None:
        super().__init__(correlation, machine, types)
        self.binds_first = correlation.clauses.bind == "first"
        self.ports = {place: port for b in machine.branches for place, port, _ in b.places}
        self.place_count = max(self.ports, default=-1) + 1
        self.aborted = {s.label: s.requires for s in machine.switches if s.kind == "revive"}
        self.switches: dict[tuple[str, str], Switch] = {
            (each.kind, each.label): each for each in machine.switches
        }
        self.changes_labels = bool(changed_labels(correlation))
        self.output_conditions: OutputConditions | None = None
        has_timers = any(isinstance(port, TimerPort) for port in correlation.ports)
        if not has_timers and not self.changes_labels:
            self.output_conditions = tuple(
                case.condition for case in correlation.cases if case.statements
            )
        self.bound_states = {place: s for b in machine.branches for place, _, s in b.places}
        self.stepper = Stepper(machine)
        self.first_moves: dict[int, FirstMove] = {}
        self._atoms: dict[int, frozenset[int]] = {}
        self._firings: dict[Fired, EmitOutputs] = {}

    def firing(self, fired: Fired) -> EmitOutputs:
        """The function for a branch that fires, where no statement changes labels."""
        known = self._firings.get(fired)
        if known is None:
            if len(self._firings) >= FIRINGS_REMEMBERED:
                self._firings.clear()
            known = outputs_of_firing(self.correlation, self.types, fired, self.ports)
            self._firings[fired] = known
        return known

    def atoms_of(self, mask: int) -> frozenset[int]:
        """The atoms of a mask, as the `Stepper` takes them."""
        known = self._atoms.get(mask)
        if known is None:
            if len(self._atoms) >= MASKS_REMEMBERED:
                self._atoms.clear()
            known = self._atoms[mask] = frozenset(numbers_in(mask))
        return known

    def first_move(self, mask: int) -> FirstMove:
        """What an event does to a key of a rule with a window that has not started."""
        known = self.first_moves.get(mask)
        if known is None:
            active, _ = self.stepper.begin()
            taken = self.stepper.take(active, self.atoms_of(mask), now=0)
            is_noop = not taken.effects and active == self.stepper.begin()[0]
            known = NO_MOVE if is_noop else BEGINS
            if len(self.first_moves) < MASKS_REMEMBERED:
                self.first_moves[mask] = known
        return known

"""The facts that all instances of a filter share: its places and switches, and its firings.

In comes a checked filter with its machine; out come its places and switches, and the functions
that build the outputs of a move on a table, or of a branch that fires in a window. A function is
compiled when it is first asked for, and kept. How an instance comes to a move is for `filters`.
"""

from __future__ import annotations

from ensue.engine.core.instances.firing import (
    EmitOutputs,
    PlaceText,
    compile_firing,
    place_in_list,
)
from ensue.engine.core.instances.keys import MachineFacts
from ensue.engine.core.instances.rows import OutputConditions, RowMove, place_in_attributes
from ensue.engine.core.instances.windows import WindowSteps
from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import changed_labels
from ensue.lang.syntax import FilterCorrelation, TimerPort
from ensue.machine.bitwise import FIRINGS_REMEMBERED
from ensue.machine.model import Machine, Switch
from ensue.machine.stepping import Fired


class FilterFacts(MachineFacts):
    """What all instances of a filter share.

    `emit_of` has, for moves that were made before and whose only effect is the firing of one
    branch, the function that builds the outputs. A rule with timer ports has none: its firings set
    timers.
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
        self._has_timers = any(isinstance(port, TimerPort) for port in correlation.ports)
        self.output_conditions: OutputConditions | None = None
        if not self._has_timers and not self.changes_labels:
            self.output_conditions = tuple(
                case.condition for case in correlation.cases if case.statements
            )
        self.bound_states = {place: s for b in machine.branches for place, _, s in b.places}
        self.emit_of: dict[RowMove, EmitOutputs] = {}
        self._of_move: dict[RowMove, tuple[EmitOutputs, ...]] = {}
        self._of_effect: dict[Fired, EmitOutputs] = {}
        self._in_window: dict[tuple[int, int], EmitOutputs] = {}

    def firings(self, move: RowMove) -> tuple[EmitOutputs, ...]:
        """The functions for the branches that fire by a move on a table, in their order."""
        known = self._of_move.get(move)
        if known is None:
            if len(self._of_move) >= FIRINGS_REMEMBERED:
                self._of_move.clear()
                self.emit_of.clear()
            known = self._of_move[move] = tuple(
                self._compiled(effect, place_in_attributes)
                for effect in move.effects
                if isinstance(effect, Fired)
            )
            if len(known) == 1 and not self._has_timers:
                self.emit_of[move] = known[0]
        return known

    def firing(self, steps: WindowSteps, fired: tuple[int, int]) -> EmitOutputs:
        """The function for a branch of a machine with a window that fires."""
        known = self._in_window.get(fired)
        if known is None:
            if len(self._in_window) >= FIRINGS_REMEMBERED:
                self._in_window.clear()
            known = self._in_window[fired] = self._compiled(steps.fired(*fired), place_in_list)
        return known

    def _compiled(self, effect: Fired, place_text: PlaceText) -> EmitOutputs:
        known = self._of_effect.get(effect)
        if known is None:
            if len(self._of_effect) >= FIRINGS_REMEMBERED:
                self._of_effect.clear()
            known = compile_firing(self.correlation, self.types, effect, self.ports, place_text)
            self._of_effect[effect] = known
        return known

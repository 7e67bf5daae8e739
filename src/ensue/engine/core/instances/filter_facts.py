"""The facts that all instances of a filter share: its clauses, and the actions of its firings.

In comes a checked filter with its machine; out come its places and switches, and for a step on a
table, or a branch that fires in a window, what follows from it. That is made when it is first
asked for, and kept. How an instance gets there is for `filters`.
"""

from __future__ import annotations

from ensue.engine.core.instances.firing import IN_LIST, Access, Firing, RunStatements
from ensue.engine.core.instances.keys import FastKey, SharedFacts, whole_key
from ensue.engine.core.instances.rows import IN_ATTRIBUTES, RowMove, Speaking
from ensue.engine.core.instances.windows import WindowSteps
from ensue.engine.outputs import Outputs
from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import changed_labels
from ensue.lang.syntax import FilterCorrelation, TimerPort
from ensue.machine.bitwise import FIRINGS_REMEMBERED
from ensue.machine.model import Machine, Switch
from ensue.machine.stepping import Fired


class FilterFacts(SharedFacts):
    """What all instances of a filter share.

    `speaks` has the moves whose whole effect is one generated function, as far as they have come.
    """

    def __init__(self, correlation: FilterCorrelation, machine: Machine, types: TypeSystem) -> None:
        self.correlation = correlation
        self.machine = machine
        self.types = types
        self.binds_first = correlation.clauses.bind == "first"
        self.ports = {place: port for b in machine.branches for place, port, _ in b.places}
        self.place_count = max(self.ports, default=-1) + 1
        self.aborted = {s.label: s.requires for s in machine.switches if s.kind == "revive"}
        self.switches: dict[tuple[str, str], Switch] = {
            (each.kind, each.label): each for each in machine.switches
        }
        self.changes_labels = bool(changed_labels(correlation))
        timed = any(isinstance(port, TimerPort) for port in correlation.ports)
        self.speaking: Speaking | None = None
        if not timed and not self.changes_labels:
            self.speaking = tuple(case.condition for case in correlation.cases if case.statements)
        self.bound_states = {place: s for b in machine.branches for place, _, s in b.places}
        self.speaks: dict[RowMove, RunStatements] = {}
        self._name, self._is_keyed = correlation.name, bool(correlation.clauses.by)
        self._firings: dict[RowMove, tuple[Firing, ...]] = {}
        self._by_effect: dict[Fired, Firing] = {}
        self._windowed: dict[tuple[int, int], Firing] = {}

    def outputs(self, key: FastKey) -> Outputs:
        return Outputs(self._name, whole_key(key), self._is_keyed, self.types)

    def firings(self, step: RowMove) -> tuple[Firing, ...]:
        known = self._firings.get(step)
        if known is None:
            if len(self._firings) >= FIRINGS_REMEMBERED:
                self._firings.clear()
                self.speaks.clear()
            known = tuple(
                self._firing(effect, IN_ATTRIBUTES)
                for effect in step.effects
                if isinstance(effect, Fired)
            )
            self._firings[step] = known
            if len(known) == 1 and known[0].quickly is not None:
                self.speaks[step] = known[0].quickly
        return known

    def _firing(self, effect: Fired, access: Access) -> Firing:
        known = self._by_effect.get(effect)
        if known is None:
            if len(self._by_effect) >= FIRINGS_REMEMBERED:
                self._by_effect.clear()
            known = Firing(self.correlation, self.types, effect, self.ports, access)
            self._by_effect[effect] = known
        return known

    def firing(self, steps: WindowSteps, fired: tuple[int, int]) -> Firing:
        """What a branch of a machine with a window does when it fires."""
        known = self._windowed.get(fired)
        if known is None:
            if len(self._windowed) >= FIRINGS_REMEMBERED:
                self._windowed.clear()
            known = self._windowed[fired] = self._firing(steps.fired(*fired), IN_LIST)
        return known

"""The two-phase correlation: branches that trigger, then a transformer.

For each reading:

1. Every branch reads it. Those that now match trigger, and forget what they remembered.
2. The transformer runs once for each of them, from left to right.
3. What the cases aborted may have completed other branches: those trigger at once, by the same
   event, and the transformer runs for them; and so on until none does.

What a match is stands in `memory`; what a transformer does in `ensue.engine.transformer`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.engine.instance import Instance
from ensue.engine.outputs import Outputs, Trigger
from ensue.engine.ports import Reading
from ensue.engine.reference.memory import BranchMemory
from ensue.engine.transformer import Transformer
from ensue.events.event import Event
from ensue.lang.syntax import FilterCorrelation, TimerPort


class FilterInstance(Instance):
    """A two-phase correlation under one key."""

    def __init__(
        self,
        correlation: FilterCorrelation,
        number: int,
        timers: Sequence[TimerPort],
        outputs: Outputs,
        started: int,
    ) -> None:
        super().__init__(number, timers, outputs, started)
        self.clauses = correlation.clauses
        self.branches = [BranchMemory(branch) for branch in correlation.branches]
        self._home = {label: b for b in self.branches for label in b.labels}
        self._transformer = Transformer(correlation, outputs, self)

    def start(self, first: Reading) -> list[Event]:
        return self._transformer.begin(Trigger(first.time, first.event_id))

    def read(self, reading: Reading) -> list[Event]:
        for branch in self.branches:
            if self.clauses.within:
                branch.let_go(branch.first_since(reading.time - self.clauses.within.microseconds))
            branch.remember(reading)
        made: list[Event] = []
        while triggers := self._triggers(reading):
            self.triggered(reading.time)
            for trigger in triggers:
                made += self._transformer.transform(trigger)
        return made

    def _triggers(self, reading: Reading) -> list[Trigger]:
        within, first = self.clauses.within, self.clauses.bind == "first"
        triggers = []
        for branch in self.branches:
            start = branch.first_since(reading.time - within.microseconds) if within else 0
            if branch.matches(start):
                labels, bound = branch.active_labels(start), branch.bound(start, first)
                triggers.append(Trigger(reading.time, reading.event_id, labels, bound))
                branch.forget()
        return triggers

    def is_aborted(self, label: str) -> bool:
        return label in self._home[label].aborted

    def abort(self, label: str) -> None:
        self._home[label].abort(label)

    def revive(self, label: str) -> None:
        self._home[label].revive(label)

"""The two-phase correlation: branches that trigger, then a transformer.

For each reading:

1. Every branch reads it. Those that now match trigger, and forget what they remembered.
2. The transformer runs once for each of them, from left to right; cases in turn.
3. What the cases aborted may have completed other branches: those trigger at once, by the same
   event, and the transformer runs for them; and so on until none does.

What a match is stands in `memory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from ensue.engine.outputs import Outputs, Trigger
from ensue.engine.ports import Reading
from ensue.engine.reference.instance import Instance
from ensue.engine.reference.memory import BranchMemory
from ensue.events.event import Event
from ensue.lang.syntax import (
    Change,
    FilterCorrelation,
    LabelAnd,
    LabelExpression,
    LabelName,
    LabelNot,
    LabelOr,
    LabelTrue,
    PushNew,
    PushPort,
    Statement,
    TimerPort,
)


class FilterInstance(Instance):
    def __init__(
        self,
        correlation: FilterCorrelation,
        number: int,
        timers: Sequence[TimerPort],
        outputs: Outputs,
        started: int,
    ) -> None:
        super().__init__(number, timers, outputs, started)
        self._correlation = correlation
        self._branches = [BranchMemory(branch) for branch in correlation.branches]
        self._home = {label: b for b in self._branches for label in b.labels}

    def start(self, first: Reading) -> list[Event]:
        trigger = Trigger(first.time, first.event.id if first.event else None)
        return list(self._run(self._correlation.initially, trigger))

    def read(self, reading: Reading) -> list[Event]:
        for branch in self._branches:
            branch.remember(reading)
        made: list[Event] = []
        while triggers := self._triggers(reading):
            self.triggered(reading.time)
            for trigger in triggers:
                made += self._transform(trigger)
        return made

    def _triggers(self, reading: Reading) -> list[Trigger]:
        within = self._correlation.clauses.within
        first = self._correlation.clauses.bind == "first"
        triggers = []
        for branch in self._branches:
            start = branch.first_since(reading.time - within.microseconds) if within else 0
            if branch.matches(start):
                labels, bound = branch.active_labels(start), branch.bound(start, first)
                event_id = reading.event.id if reading.event else None
                triggers.append(Trigger(reading.time, event_id, labels, bound))
                branch.forget()
        return triggers

    def _transform(self, trigger: Trigger) -> Iterator[Event]:
        for case in self._correlation.cases:
            if self._holds(case.condition, trigger.labels):
                yield from self._run(case.statements, trigger)

    def _run(self, statements: Sequence[Statement], trigger: Trigger) -> Iterator[Event]:
        for statement in statements:
            match statement:
                case PushPort(port):
                    reading = trigger.bound.get(port)
                    if reading and reading.event:
                        yield self.outputs.forward(trigger, reading.event)
                case PushNew():
                    yield self.outputs.build(trigger, statement)
                case Change(kind, labels):
                    for label in labels:
                        self._change(kind, label.name)
                case _:
                    assert_never(statement)

    def _change(self, kind: str, label: str) -> None:
        branch = self._home[label]
        if kind == "abort" or (kind == "toggle" and label not in branch.aborted):
            branch.abort(label)
        else:
            branch.revive(label)

    def _holds(self, condition: LabelExpression, active: frozenset[str]) -> bool:
        return self._value(condition, active) or False

    def _value(self, x: LabelExpression, active: frozenset[str]) -> bool | None:
        """The value of a label expression; None if all of it is left out."""
        match x:
            case LabelTrue():
                return True
            case LabelName(name):
                return None if name in self._home[name].aborted else name in active
            case LabelNot(body):
                value = self._value(body, active)
                return None if value is None else not value
            case LabelAnd(parts) | LabelOr(parts):
                values = [self._value(part, active) for part in parts]
                kept = [value for value in values if value is not None]
                if not kept:
                    return None
                return all(kept) if isinstance(x, LabelAnd) else any(kept)

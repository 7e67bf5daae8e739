"""Transformers: which cases run for a trigger, and what their statements do.

The control flow is the same in every engine; what is different is how labels are aborted and
revived. So a transformer is given its labels as something to ask and to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, assert_never

from ensue.engine.outputs import Outputs, Trigger
from ensue.events.event import Event
from ensue.lang.derived.label_logic import change_of, label_value
from ensue.lang.syntax import (
    Change,
    FilterCorrelation,
    PushNew,
    PushPort,
    Statement,
)


class Labels(Protocol):
    """The labels of a correlation under one key."""

    def is_aborted(self, label: str) -> bool: ...

    def abort(self, label: str) -> None: ...

    def revive(self, label: str) -> None: ...


class Transformer:
    """The transformer of one correlation under one key."""

    def __init__(self, correlation: FilterCorrelation, outputs: Outputs, labels: Labels) -> None:
        self._correlation = correlation
        self._outputs = outputs
        self._labels = labels

    def begin(self, trigger: Trigger) -> list[Event]:
        """Run the statements before the first case."""
        return list(self._run(self._correlation.initially, trigger))

    def transform(self, trigger: Trigger) -> list[Event]:
        """Run each case whose label expression is true at its turn."""
        made: list[Event] = []
        for case in self._correlation.cases:
            if label_value(case.condition, trigger.labels, self._labels.is_aborted):
                made += self._run(case.statements, trigger)
        return made

    def _run(self, statements: Sequence[Statement], trigger: Trigger) -> Iterator[Event]:
        for statement in statements:
            match statement:
                case PushPort(port):
                    reading = trigger.bound.get(port)
                    if reading and reading.event:
                        yield self._outputs.forward(trigger, reading.event)
                case PushNew():
                    yield self._outputs.build(trigger, statement)
                case Change(kind, labels):
                    for label in labels:
                        self._change(kind, label.name)
                case _:
                    assert_never(statement)

    def _change(self, kind: Literal["abort", "revive", "toggle"], label: str) -> None:
        if change_of(kind, self._labels.is_aborted(label)) == "abort":
            self._labels.abort(label)
        else:
            self._labels.revive(label)

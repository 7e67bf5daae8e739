"""Transformers: which cases run for a trigger, and what their statements do.

The control flow is the same in every engine; what is different is how labels are aborted and
revived. So a transformer is given its labels as something to ask and to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, assert_never

from ensue.engine.outputs import Outputs, Trigger
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
)


class Labels(Protocol):
    """The labels of a correlation under one key."""

    def is_aborted(self, label: str) -> bool: ...

    def abort(self, label: str) -> None: ...

    def revive(self, label: str) -> None: ...


class Transformer:
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
            if self._value(case.condition, trigger.labels):
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

    def _change(self, kind: str, label: str) -> None:
        if kind == "abort" or (kind == "toggle" and not self._labels.is_aborted(label)):
            self._labels.abort(label)
        else:
            self._labels.revive(label)

    def _value(self, x: LabelExpression, active: frozenset[str]) -> bool | None:
        """The value of a label expression; None, which counts as false, if all is left out."""
        match x:
            case LabelTrue():
                return True
            case LabelName(name):
                return None if self._labels.is_aborted(name) else name in active
            case LabelNot(body):
                value = self._value(body, active)
                return None if value is None else not value
            case LabelAnd(parts) | LabelOr(parts):
                values = [self._value(part, active) for part in parts]
                kept = [value for value in values if value is not None]
                if not kept:
                    return None
                return all(kept) if isinstance(x, LabelAnd) else any(kept)

"""The events that a correlation puts out.

An output is an event that also says where it comes from: the correlation, what triggered it, which
labels were active and which events were bound. Every engine makes its outputs here, so that they
are the same to the letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ensue.engine.ports import Key, Reading, key_text
from ensue.events.conformance import conform_value
from ensue.events.event import Event
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import PortScope, TimerScope, evaluate
from ensue.lang.syntax import PushNew

TIMER = "timer"
"""The `trigger` of what the clock completed."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """The moment at which a correlation puts something out, and what it knows then.

    `bound` holds what each port stands for, in the order in which it was read.
    """

    time: int
    event_id: str | None
    labels: frozenset[str] = frozenset()
    bound: Mapping[str, Reading] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return TIMER if self.event_id is None else self.event_id

    @property
    def causes(self) -> list[str]:
        """The ids of the bound events, each once, in the order in which they were read."""
        events = [reading.event for reading in self.bound.values() if reading.event]
        return list(dict.fromkeys(event.id for event in events))


class Outputs:
    """Makes the outputs of one correlation under one key."""

    def __init__(self, correlation: str, key: Key, keyed: bool, types: TypeSystem) -> None:
        self._correlation = correlation
        self._key = key_text(key) if keyed else None
        self._types = types
        self._time: int | None = None
        self._made: Counter[str] = Counter()

    def forward(self, trigger: Trigger, event: Event) -> Event:
        """`push a`: the event as it was, at the time of the trigger."""
        self._number(trigger)
        extensions = {**event.extensions, **self._provenance(trigger)}
        return Event(event.id, event.source, event.type, trigger.time, event.data, extensions)

    def create(self, trigger: Trigger, type_name: str, data: Mapping[str, Any]) -> Event:
        number = self._number(trigger)
        parts = [self._correlation, f"{trigger.name}@{trigger.time}", self._key, str(number)]
        return Event(
            ":".join(part for part in parts if part is not None),
            f"ensue/{self._correlation}",
            type_name,
            trigger.time,
            data,
            self._provenance(trigger),
        )

    def build(self, trigger: Trigger, statement: PushNew) -> Event:
        """`push new`: a value that cannot be had, or does not fit its attribute, is null."""
        scope = PortScope(
            {port: read.event or TimerScope(read.time) for port, read in trigger.bound.items()}
        )
        attributes = self._types.attributes(statement.type)
        data = {
            assignment.name: _value(assignment.value, scope, attributes[assignment.name])
            for assignment in statement.assignments
        }
        return self.create(trigger, statement.type, data)

    def _number(self, trigger: Trigger) -> int:
        # One event id may be read twice at one time: as it came, and as another rule sent it on.
        if trigger.time != self._time:
            self._time = trigger.time
            self._made.clear()
        self._made[trigger.name] += 1
        return self._made[trigger.name]

    def _provenance(self, trigger: Trigger) -> dict[str, str]:
        attributes = {
            "correlation": self._correlation,
            "trigger": trigger.name,
            "labels": ",".join(sorted(trigger.labels)),
            "causes": ",".join(trigger.causes),
        }
        if self._key is not None:
            attributes["partitionkey"] = self._key
        return attributes


def _value(expression: Expression, scope: PortScope, type_: ValueType) -> Any:
    outcome = evaluate(expression, scope)
    if outcome.errors:
        return None
    try:
        return conform_value(outcome.value, type_)
    except ValueError:
        return None

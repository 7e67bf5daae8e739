"""What came out of a run, as text, and the report of two that differ."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from ensue.engine.counts import Counts
from ensue.events.cloudevents import encode
from ensue.events.event import Event


def as_text(event: Event) -> str:
    """Every attribute of an event; text, so that 1, 1.0 and true are three values."""
    return json.dumps(json.loads(encode(event)), sort_keys=True)


@dataclass(frozen=True)
class Observed:
    """Outputs and late events, or what was raised; `refused` are changes of rules that were.

    Counts are compared where both sides have them: the readings of the definitions count nothing.
    """

    outputs: list[str]
    late: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    raised: str = ""
    counts: Counts | None = None

    @classmethod
    def of(cls, outputs: Iterable[Event], late: Iterable[Event] = ()) -> Observed:
        return cls([as_text(each) for each in outputs], [as_text(each) for each in late])

    @classmethod
    def failed(cls, error: Exception) -> Observed:
        """A crash is a difference like any other, and is made smaller too."""
        return cls([], raised=f"{type(error).__name__}: {error}")

    def agrees_with(self, other: Observed) -> bool:
        mine, others = (
            (each.outputs, each.late, each.refused, each.raised) for each in (self, other)
        )
        both_count = self.counts is not None and other.counts is not None
        return mine == others and (not both_count or self.counts == other.counts)

    def __str__(self) -> str:
        lines = [*self.outputs, *(f"late: {each}" for each in self.late)]
        lines += [f"refused: {each}" for each in self.refused]
        lines += [self.raised] if self.raised else []
        lines += [str(self.counts)] if self.counts else []
        return "\n".join(f"  {each}" for each in lines)


@dataclass(frozen=True)
class Difference:
    """A way in which a trial came out otherwise than its judge says."""

    trial: object
    way: str
    expected: Observed
    given: Observed

    def __str__(self) -> str:
        return f"{self.trial}\nexpected:\n{self.expected}\n{self.way}:\n{self.given}"

"""What may stand between the look-up of a channel and one of its consumers.

A step belongs to one consumer, is run in that consumer's turn, one event at a time, and may
remember. `conditions` has those for groups and Python tests, `correlating` those for correlations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ensue.channel.policies import Reason
from ensue.events.event import Event


class Step(Protocol):
    """What stands between the look-up and a consumer."""

    def read(self, event: Event) -> Sequence[Event]: ...

    def advance(self, now: int) -> Sequence[Event]:
        """Let time pass."""

    def finish(self) -> Sequence[Event]:
        """What still follows from what was read, now that nothing more comes."""

    def take_drops(self) -> Sequence[tuple[Event, Reason]]:
        """Events that the step could not use, since it was last asked."""

    @property
    def tick(self) -> int | None:
        """How often time has to pass for it, in microseconds; None if time means nothing to it."""

"""Events of the clock: timeouts for consumers, and ticks for their steps."""

from __future__ import annotations

from ensue.events.event import Event

TIMEOUT = "ensue.channel.timeout"


class Timeout(Event, frozen=True):
    """What a consumer gets when one of its timeouts is due. Its data names the timer."""


class Tick(Event, frozen=True):
    """Tells a step how far the clock has come. Consumers never see it."""

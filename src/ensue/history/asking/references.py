"""What a name of FILTER stands for in a publication.

A name is looked up as in every filter. `start` and `end` are the ends of the publication's own
interval, unless it has data of that name; an end is an `Instant`, which may be uncertain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ensue.events.event import Event
from ensue.events.times import datetime_of
from ensue.history.publication import Interval
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.lang.expressions.tree import Name


class Instant(NamedTuple):
    """The start or the end of a publication, somewhere between the two."""

    low: int
    high: int


def value_of(name: Name, event: Event, times: Interval) -> Any:
    """The value of a name in a publication, or `MISSING`."""
    value = EventScope(event).lookup(name.parts)
    if value is MISSING and len(name.parts) == 1:
        if name.parts[0] == "start":
            return Instant(times.start, times.start_until)
        if name.parts[0] == "end" and times.end is not None and times.end_until is not None:
            return Instant(times.end, times.end_until)
    return value


def plain_value(value: Any) -> Any:
    """The value as CESQL compares it; an uncertain instant by its earliest time."""
    return datetime_of(value.low) if isinstance(value, Instant) else value

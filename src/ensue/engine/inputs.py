"""Events and times, from the forms that users have to the form of engines.

In comes an event (an `Event`, a mapping, JSON text) or an instant (microseconds, a datetime, RFC
3339 text); out goes an `Event` or a number of microseconds. What cannot be read is refused with
`EventError` or `UsageError`. Whether an event fits its type is asked later, by
`ensue.events.conformance`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from ensue.errors import EventError, UsageError
from ensue.events import cloudevents
from ensue.events.event import Event, instant_of

EventLike = Event | Mapping[str, Any] | str | bytes

Instant = int | datetime | str
"""Microseconds since 1970, an aware datetime, or RFC 3339 text."""


def as_event(event: EventLike) -> Event:
    """An event in the form of engines. Raises `EventError` for anything that is no event."""
    if isinstance(event, Event):
        return event
    if isinstance(event, Mapping):
        try:
            text = msgspec.json.encode(event)
        except (TypeError, ValueError) as error:
            raise EventError([f"the event cannot be said in JSON: {error}"]) from None
        return cloudevents.decode(text)
    if not isinstance(event, str | bytes | bytearray | memoryview):
        given = type(event).__name__
        raise EventError([f"an event is an `Event`, a mapping or a JSON text, not a `{given}`"])
    return cloudevents.decode(event)


def time_microseconds(time: Instant) -> int:
    """An instant as engines count time. Raises `UsageError` for anything that is no instant."""
    try:
        return instant_of(time)
    except ValueError as error:
        raise UsageError(str(error)) from None

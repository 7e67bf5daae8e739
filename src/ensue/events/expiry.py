"""When an event expires: its extension `expirytime`, after which nobody is given it any more.

Channels, gateways and the server drop such an event and count it; text that is no time never
expires.
"""

from __future__ import annotations

from typing import Final

from ensue.events.event import Event
from ensue.events.times import parse_time

EXPIRY: Final = "expirytime"


def expiry_of(event: Event) -> int | None:
    """The last moment at which the event is of use, in microseconds since 1970."""
    given = event.extensions.get(EXPIRY)
    if not isinstance(given, str):
        return None
    try:
        return parse_time(given)
    except ValueError:
        return None


def has_expired(event: Event, now: int) -> bool:
    if EXPIRY not in event.extensions:
        return False
    expiry = expiry_of(event)
    return expiry is not None and now > expiry

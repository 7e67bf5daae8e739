"""Many events decoded together: plain ones at a quarter of the price of `cloudevents.decode`.

Most events are plain: they have the members that each event has, and no others. A decoder made for
that shape reads them. What does not fit is read the general way, which also knows what to say about
it. What the journal holds was checked when it was taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.events.times import parse_time

Text = Annotated[str, msgspec.Meta(min_length=1)]


class PlainEvent(msgspec.Struct, forbid_unknown_fields=True):
    """An event without extensions, its members in the order in which the journal has them."""

    id: Text
    source: Text
    type: Text
    time: str
    specversion: Literal["1.0"] | msgspec.UnsetType = msgspec.UNSET
    data: Any = msgspec.UNSET


class NamedEvent(msgspec.Struct):
    """What tells an event from others; its other members are passed over."""

    id: Text
    source: Text
    time: str
    phase: Any = None


_decode_plain = msgspec.json.Decoder(PlainEvent).decode
_decode_named = msgspec.json.Decoder(NamedEvent).decode


def decoded(bodies: Sequence[bytes]) -> list[Event]:
    """As `decode` of each body of the journal. Raises `EventError`."""
    plain: list[PlainEvent] = []
    try:
        plain = [_decode_plain(each) for each in bodies]
        times = [parse_time(each.time) for each in plain]
    except (ValueError, RecursionError):
        return [decode(each) for each in bodies]
    unset = msgspec.UNSET
    return [
        Event(each.id, each.source, each.type, at, None if each.data is unset else each.data)
        for each, at in zip(plain, times, strict=True)
    ]


def named(bodies: Sequence[bytes]) -> list[Event]:
    """As `decoded`, of what tells events apart alone: they have neither type nor data."""
    try:
        found = [_decode_named(each) for each in bodies]
        times = [parse_time(each.time) for each in found]
    except (ValueError, RecursionError):
        return [decode(each) for each in bodies]
    return [
        Event(each.id, each.source, "", at, None, {"phase": each.phase} if each.phase else {})
        for each, at in zip(found, times, strict=True)
    ]

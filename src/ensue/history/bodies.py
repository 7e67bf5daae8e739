"""A publication as bytes, the form in which every store keeps it.

In comes an event; out go the event as JSON gives it back (times in its data are text) and its text:
the fields of `Event` in one JSON object, written and read by compiled code in one call. An event
whose data are bytes is written as a CloudEvent instead. A publication of two halves has them on
lines of their own behind the event. What JSON cannot say is refused here as `EventError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

import msgspec

from ensue.errors import EventError, HistoryError
from ensue.events.cloudevents import decode, encode
from ensue.events.event import RESERVED, Event
from ensue.history.publication import (
    InstantColumns,
    Publication,
    is_instant,
    key_of,
    publication_of,
)

_write: Final = msgspec.json.Encoder().encode
_write_lines: Final = msgspec.json.Encoder().encode_lines
_read_fields: Final = msgspec.json.Decoder(Event).decode
_CLOUD_EVENT: Final = b'{"specversion"'
"""How the text of a CloudEvent begins; that of the fields begins with the `id`."""
_BREAK: Final = b"\n"

_EXTENSION_KINDS: Final = frozenset({str, bool, int})
_ATOMS: Final = frozenset({str, bool, type(None)})


def kept_publication(event: Event) -> Publication:
    """The publication that an event makes by itself, ready to be stored. Raises `EventError`."""
    if not _is_plain_event(event):
        event = decode(encode(event))
    return publication_of(event, _text_of(event))


def kept_instants(events: Sequence[Event]) -> InstantColumns | None:
    """Events in columns, ready to be stored; None unless all of them are plain instants.

    Events must have come from JSON, so that JSON gives them back as they are.
    """
    extended = [each for each in events if each.extensions]
    if not all(map(is_instant, extended)) or bytes in set(map(type, [e.data for e in events])):
        return None
    try:
        # JSON has no line ends outside of its texts, where they are escaped.
        texts = _write_lines(events).split(_BREAK)[:-1]
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return InstantColumns(events, list(map(key_of, events)), [each.time for each in events], texts)


def body_of(publication: Publication) -> bytes:
    """The event of a publication, and its two halves behind it if it has some."""
    text = publication.text or _text_of(publication.event)
    if publication.opening is None and publication.closing is None:
        return text
    halves = (publication.opening, publication.closing)
    # JSON has no line ends outside of its texts, where they are escaped.
    return _BREAK.join((text, *(b"" if each is None else _text_of(each) for each in halves)))


def event_in(body: bytes) -> Event:
    """The event of a publication. Raises `HistoryError` if the stored bytes are damaged."""
    return _event_of(body.partition(_BREAK)[0])


def halves_in(body: bytes) -> tuple[Event | None, Event | None]:
    """The opening and the closing half of a publication, as they came."""
    _, *halves = body.split(_BREAK)
    if len(halves) not in (0, 2):
        raise _damaged(f"it has {len(halves)} halves")
    opening, closing = (_event_of(each) if each else None for each in halves or (b"", b""))
    return opening, closing


def _text_of(event: Event) -> bytes:
    if isinstance(event.data, bytes):
        return encode(event)
    try:
        return _write(event)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise EventError([f"`{event.id}` cannot be written as JSON: {error}"]) from None


def _event_of(text: bytes) -> Event:
    try:
        return decode(text) if text.startswith(_CLOUD_EVENT) else _read_fields(text)
    except (msgspec.MsgspecError, EventError, ValueError, TypeError) as error:
        raise _damaged(str(error)) from None


def _damaged(reason: str) -> HistoryError:
    return HistoryError(
        f"an event of the history is damaged where it is stored: {' '.join(reason.split())};"
        " have the database checked, or put a copy from before in its place"
    )


def _is_plain_event(event: Event) -> bool:
    """Whether JSON gives an event back as it is."""
    for name, value in event.extensions.items():
        if type(value) not in _EXTENSION_KINDS or name in RESERVED:
            return False
    return _is_plain(event.data)


def _is_plain(value: Any) -> bool:
    """Whether JSON gives a value back as it is; it reads longer integers as reals."""
    kind = type(value)
    if kind in _ATOMS:
        return True
    if kind is int:
        return bool(-(2**63) <= value < 2**64)
    if kind is float:
        return isfinite(value)
    if kind is dict:
        for name, each in value.items():
            if type(name) is not str or not (type(each) in _ATOMS or _is_plain(each)):
                return False
        return True
    return kind is list and all(map(_is_plain, value))

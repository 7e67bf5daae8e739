"""CloudEvents as messages of a service: structured or binary, over any kind of headers.

In comes an event; out go headers and a body, and the way back. In structured mode the body is the
whole event as JSON. In binary mode each attribute is a header under the service's prefix, and the
body is the data; an event that headers cannot carry unchanged is written structured. A message is
binary if its headers say so (a `specversion`), structured otherwise. One without a `time` gets the
time at which it was read, and a mark that says so: CloudEvents leaves time open, and filters and
windows need one. Data of a type other than JSON travels as it is. What is no event raises
`EventError` with everything that is wrong.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec

from ensue.errors import EventError
from ensue.events.cloudevents import (
    VERSION,
    decode,
    encode,
    plain_json,
    read_json,
    text_problem,
    version_problem,
    write_json,
)
from ensue.events.event import RESERVED, Event
from ensue.events.times import format_time, parse_time
from ensue.federation.limits import limits

Mode = Literal["structured", "binary"]
STRUCTURED_TYPE = "application/cloudevents+json"
BATCH_TYPE = "application/cloudevents-batch+json"
JSON_TYPE = "application/json"
OCTETS_TYPE = "application/octet-stream"
CONTENT_TYPE = "datacontenttype"
TIMED = "ensuetime"
"""The extension of an event that came without a `time`: who reads it again gives another one."""
ON_ARRIVAL = "arrival"
_ATTRIBUTE = re.compile("[a-z0-9]+")
"""The names of attributes by CloudEvents; headers would change or refuse others."""
_LONGEST_HEADER = 4096


@dataclass(frozen=True, slots=True)
class Message:
    """A body with its headers; `content_type` stands apart, since services have a place for it."""

    body: bytes
    content_type: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NameBinding:
    """How a service writes the names of attributes: `ce-id`, `ce_id`, `id`, ..."""

    prefix: str

    def write(self, event: Event, mode: Mode) -> Message:
        """Raises `EventError` if the event holds something that JSON cannot say."""
        if mode == "structured":
            return Message(encode(event), STRUCTURED_TYPE, {})
        attributes: dict[str, Any] = {
            "specversion": VERSION,
            "id": event.id,
            "source": event.source,
            "type": event.type,
            "time": format_time(event.time),
        }
        attributes |= {
            name: value
            for name, value in event.extensions.items()
            if value is not None and name not in RESERVED and name != CONTENT_TYPE
        }
        headers = {self.prefix + name: _as_text(value) for name, value in attributes.items()}
        body, content_type = _body_of(event)
        if all(map(_fits_header, (content_type, *headers.values()))) and all(
            map(_ATTRIBUTE.fullmatch, attributes)
        ):
            return Message(body, content_type, headers)
        if isinstance(event.data, bytes):
            typed = {**event.extensions, CONTENT_TYPE: content_type} if body else event.extensions
            event = msgspec.structs.replace(event, data=body or None, extensions=typed)
        return Message(encode(event), STRUCTURED_TYPE, {})

    def read(self, message: Message) -> Event:
        """Raises `EventError` with all problems."""
        _refuse_large(message.body)
        given = {
            name.lower()[len(self.prefix) :]: value
            for name, value in message.headers.items()
            if name.lower().startswith(self.prefix)
        }
        if "specversion" not in given:
            return read_structured(message.body)
        return _read_binary(given, message)


def read_structured(body: bytes | str) -> Event:
    """The event of a JSON text; without a `time` it gets the present one."""
    _refuse_large(body)
    try:
        return decode(body)
    except EventError:
        members = read_json(body)
        if not isinstance(members, dict) or members.get("time") is not None:
            raise
        return decode(write_json(members | {"time": format_time(_now()), TIMED: ON_ARRIVAL}))


def read_batch(body: bytes) -> list[Event]:
    """The events of a JSON array."""
    members = read_json(body)
    if not isinstance(members, list):
        raise EventError(["a batch is a JSON array of events"])
    return [read_structured(write_json(each)) for each in members]


def _refuse_large(body: bytes | str) -> None:
    if len(body) > limits().largest_message:
        most = f"{limits().largest_message:,}"
        raise EventError([f"the message has {len(body):,} bytes, and at most {most} are read"])


def _read_binary(given: dict[str, str], message: Message) -> Event:
    problems: list[str] = []
    version = given.pop("specversion")
    if version != VERSION:
        problems.append(version_problem(version))
    required = {name: given.pop(name, None) for name in ("id", "source", "type")}
    problems += [text_problem(name, value) for name, value in required.items() if not value]
    instant = _now()
    if (text := given.pop("time", None)) is None:
        given[TIMED] = ON_ARRIVAL
    else:
        try:
            instant = parse_time(text)
        except ValueError as error:
            problems.append(f"`time`: {error}")
    extensions: dict[str, Any] = {
        name: value for name, value in given.items() if name not in RESERVED
    }
    data: Any = None
    if message.body:
        if is_json(message.content_type):
            try:
                data = read_json(message.body)
            except EventError as error:
                problems += [f"the data: {each}" for each in error.problems]
        else:
            data = _text_or_octets(message)
    if message.content_type and message.content_type != JSON_TYPE:
        extensions[CONTENT_TYPE] = message.content_type
    if problems:
        raise EventError(problems)
    named = cast(dict[str, str], required)
    return Event(named["id"], named["source"], named["type"], instant, data, extensions)


def is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return not media_type or media_type.endswith(("/json", "+json"))


def _fits_header(text: str) -> bool:
    """Whether every service hands out a text in a header as it was."""
    return 0 < len(text) <= _LONGEST_HEADER and text.isprintable() and text == text.strip()


def is_plain(event: Event) -> bool:
    """Whether the data is text of a type other than JSON, and not a text in JSON."""
    content_type = event.extensions.get(CONTENT_TYPE)
    return (
        isinstance(event.data, str) and isinstance(content_type, str) and not is_json(content_type)
    )


def _text_or_octets(message: Message) -> str | bytes:
    """Data of a type other than JSON: as text where the type is one of text."""
    media_type = message.content_type.partition(";")[0].strip().lower()
    if media_type.startswith("text/") or media_type.endswith(("/xml", "+xml")):
        with suppress(UnicodeDecodeError):
            return message.body.decode()
    return message.body


def _body_of(event: Event) -> tuple[bytes, str]:
    content_type = event.extensions.get(CONTENT_TYPE)
    if event.data is None:
        return b"", content_type or JSON_TYPE
    if is_plain(event):
        return event.data.encode(), str(content_type)
    if isinstance(event.data, bytes):
        # Bytes under a JSON type would be read back as the JSON that they spell.
        given = content_type if content_type and not is_json(content_type) else OCTETS_TYPE
        return event.data, given
    try:
        body = write_json(plain_json(event.data)).encode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise EventError([f"`{event.id}` cannot be written as JSON: {error}"]) from None
    return body, content_type if content_type and is_json(content_type) else JSON_TYPE


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _now() -> int:
    return time.time_ns() // 1000

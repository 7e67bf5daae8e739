"""CloudEvents as records of Kafka: the protocol binding, both modes, both ways.

In comes a record; out goes an `Event`, or an `EventError` with what is wrong with the record. In
binary mode attributes are headers (`ce_id`, `ce_time`, ...; `content-type` is `datacontenttype`)
and the value is the data. In structured mode the value is the whole event as JSON, which
`content-type` says. A record that says neither is read as structured. Where a record stands is
part of its event, as extensions: `kafkakey`, `kafkatopic`, `kafkapartition` and `kafkaoffset`.
Whether data fit the types of a library is told by `ensue.events.conformance`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import (
    VERSION,
    decode,
    encode,
    read_json,
    text_problem,
    version_problem,
    write_json,
)
from ensue.events.event import RESERVED, Event
from ensue.events.times import format_time, parse_time

BINARY, STRUCTURED = "binary", "structured"
MODES = (BINARY, STRUCTURED)
PREFIX = "ce_"
CONTENT_TYPE = "content-type"
STRUCTURED_TYPE = "application/cloudevents+json; charset=UTF-8"
KEY_ATTRIBUTE = "partitionkey"
STRUCTURED_MEDIA_TYPE = "application/cloudevents+json"
_ANY_STRUCTURED = "application/cloudevents"
_JSON_TYPE = "application/json"

Header = tuple[str, bytes | None]


class Place(NamedTuple):
    """The topic, partition and offset of a record."""

    topic: str
    partition: int
    offset: int

    @property
    def order(self) -> int:
        """A number that sorts records by topic, partition and offset.

        It has the offset in its last 48 bits, before it 10 bits of the partition, and 5 of the
        topic. Kafka has no order between partitions; this one is equal in every run.
        """
        topic = sum(self.topic.encode()) % 32
        return topic << 58 | self.partition % 1024 << 48 | self.offset % (1 << 48)


class Record(NamedTuple):
    """A record for a topic."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


def read_record(
    key: bytes | None, value: bytes | None, headers: Iterable[Header], place: Place | None = None
) -> Event:
    """The event of a record. Raises `EventError` with all problems."""
    given: dict[str, bytes | None] = {}
    twice: list[str] = []
    for name, content in headers:
        lowered = name.lower()
        if lowered in given and (lowered == CONTENT_TYPE or lowered.startswith(PREFIX)):
            twice.append(f"the header `{lowered}` is there twice: leave one of them out")
        given[lowered] = content
    if twice:
        raise EventError(twice)
    content_type = (given.get(CONTENT_TYPE) or b"").decode("latin-1").strip()
    media_type = media_type_of(content_type)
    if is_structured(media_type):
        event = _structured(value, media_type)
    elif any(name.startswith(PREFIX) for name in given):
        event = _binary(value, given, content_type)
    else:
        event = _structured(value, None)
    return event if place is None else _placed(event, key, place)


def media_type_of(content_type: str) -> str:
    """A content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def is_structured(media_type: str) -> bool:
    return media_type.startswith(_ANY_STRUCTURED)


def is_json(media_type: str) -> bool:
    """Whether data of a media type are JSON; without a media type they are."""
    return not media_type or media_type.endswith(("/json", "+json"))


def write_record(event: Event, mode: str = STRUCTURED) -> Record:
    """The record of an event. Its key is the extension `partitionkey`, if the event has one."""
    if mode not in MODES:
        raise UsageError(
            f"`{mode}` is no mode of CloudEvents here: give `{BINARY}` or `{STRUCTURED}`"
        )
    named = event.extensions.get(KEY_ATTRIBUTE)
    key = None if named is None else _text_of(named).encode()
    if mode == STRUCTURED:
        return Record(key, encode(event), ((CONTENT_TYPE, STRUCTURED_TYPE.encode()),))
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
        if value is not None and name not in RESERVED and name != "datacontenttype"
    }
    headers: list[Header] = [
        (f"{PREFIX}{name}", _text_of(value).encode()) for name, value in attributes.items()
    ]
    content_type = event.extensions.get("datacontenttype")
    if isinstance(event.data, bytes):
        value: bytes | None = event.data
    else:
        value = None if event.data is None else write_json(event.data).encode()
        content_type = content_type or (None if value is None else _JSON_TYPE)
    if content_type:
        headers.append((CONTENT_TYPE, str(content_type).encode()))
    return Record(key, value, tuple(headers))


def _structured(value: bytes | None, media_type: str | None) -> Event:
    if media_type is not None and media_type != STRUCTURED_MEDIA_TYPE:
        raise EventError(
            [
                f"the header `{CONTENT_TYPE}` says `{media_type}`: events in structured mode are"
                f" read as `{STRUCTURED_MEDIA_TYPE}`"
            ]
        )
    if value is None:
        raise EventError(
            ["the record has no value, and no headers `ce_...` that would be an event"]
        )
    return decode(value)


def _binary(value: bytes | None, given: dict[str, bytes | None], content_type: str) -> Event:
    problems: list[str] = []
    attributes = _texts(given, problems)
    version = attributes.pop("specversion", None)
    if version is not None and version != VERSION:
        problems.append(version_problem(version))
    required = {name: attributes.pop(name, None) for name in ("id", "source", "type")}
    problems += [text_problem(name, text) for name, text in required.items() if not text]
    time = _time(attributes.pop("time", None), problems)
    if attributes.pop("data", None) is not None or "data_base64" in attributes:
        problems.append("the data of a record in binary mode are its value, and no header")
    attributes.pop("datacontenttype", None)
    if content_type:
        attributes["datacontenttype"] = content_type
    data = _data(value, content_type, problems)
    if problems:
        raise EventError(problems)
    return Event(
        str(required["id"]), str(required["source"]), str(required["type"]), time, data, attributes
    )


def _texts(given: dict[str, bytes | None], problems: list[str]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for name, content in given.items():
        if name.startswith(PREFIX) and content is not None:
            try:
                attributes[name.removeprefix(PREFIX)] = content.decode()
            except UnicodeDecodeError:
                problems.append(f"the header `{name}` is no UTF-8")
    return attributes


def _time(text: str | None, problems: list[str]) -> int:
    if text is None:
        problems.append("`time` must be an RFC 3339 string; it is missing")
        return 0
    try:
        return parse_time(text)
    except ValueError as error:
        problems.append(f"`time`: {error}")
        return 0


def _data(value: bytes | None, content_type: str, problems: list[str]) -> Any:
    """JSON unless the content type says otherwise, else bytes."""
    if not value:
        return None
    if not is_json(media_type_of(content_type)):
        return bytes(value)
    try:
        return read_json(bytes(value))
    except EventError as error:
        problems.extend(f"the value of the record: {problem}" for problem in error.problems)
        return None


def _placed(event: Event, key: bytes | None, place: Place) -> Event:
    extensions = {
        **event.extensions,
        "kafkatopic": place.topic,
        "kafkapartition": place.partition,
        "kafkaoffset": place.offset,
    }
    if key is not None:
        extensions["kafkakey"] = key.decode(errors="replace")
    return Event(event.id, event.source, event.type, event.time, event.data, extensions)


def _text_of(value: Any) -> str:
    """An attribute as text: the canonical string of its CloudEvents type."""
    return value if isinstance(value, str) else write_json(value)

"""An event: the CloudEvents attributes, with the time as a number.

An `Event` is immutable. Nothing is checked against declared types here (`conformance`), and nothing
is read or written (`cloudevents`, `records`). A record that is no event is kept as `Rejected`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from html import escape
from typing import Any, Self
from uuid import uuid4

import msgspec

from ensue.events.times import (
    EARLIEST,
    EPOCH,
    LATEST,
    datetime_of,
    format_time,
    microseconds_of,
    parse_time,
)

__all__ = [
    "EPOCH",
    "Event",
    "Rejected",
    "datetime_of",
    "instant_of",
    "microseconds_of",
]

CONTEXT = frozenset({"id", "source", "type", "time", "specversion"})
"""The attributes that every event has; their names are looked up before those of its data."""
RESERVED = CONTEXT | {"data", "data_base64"}
"""Members of a CloudEvent that are never extensions."""


class Event(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """One event. `time` counts microseconds since 1970 (UTC); `at` shows it as a datetime.

    `data` holds the attributes of the event's type as a mapping, with timestamps as aware
    datetimes in UTC; an event of an undeclared type may have any JSON value there.
    `None` means that the event has no data. `extensions` holds every other CloudEvents attribute
    (`subject`, `partitionkey`, ...): text, booleans and integers.
    """

    id: str
    source: str
    type: str
    time: int
    data: Any = None
    extensions: Mapping[str, Any] = {}

    @classmethod
    def of(
        cls,
        type: str,  # noqa: A002 - the CloudEvents name, as in the field
        *,
        time: int | datetime | str,
        id: str | None = None,  # noqa: A002
        source: str = "python",
        data: Any = None,
        **extensions: str | bool | int | None,
    ) -> Self:
        """An event from Python values: `Event.of("Alarm", time="2024-05-06T07:08:09Z")`.

        `time` is RFC 3339 text, an aware datetime, or microseconds since 1970. Without an `id`
        the event gets a fresh one. An extension of `None` is left out.
        """
        if isinstance(more := extensions.get("extensions"), Mapping):
            written = ", ".join(f"{name}={value!r}" for name, value in more.items())
            raise ValueError(
                "extensions are given by their names:"
                f" `Event.of({type!r}, ..., {written or 'tenant=...'})`"
            )
        if taken := sorted(RESERVED & extensions.keys()):
            raise ValueError(f"`{taken[0]}` is no extension: a CloudEvent has its own place for it")
        given = {name: value for name, value in extensions.items() if value is not None}
        identity = str(uuid4()) if id is None else id
        return cls(identity, source, type, instant_of(time), data, given)

    @property
    def at(self) -> datetime:
        return datetime_of(self.time)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The data if it is a mapping, or else an empty mapping."""
        return self.data if isinstance(self.data, Mapping) else {}

    def __repr__(self) -> str:
        return f"Event({', '.join(f'{name}={value}' for name, value in self._shown())})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self._shown()
        )
        return f"<table>{rows}</table>"

    def _shown(self) -> list[tuple[str, str]]:
        known = EARLIEST <= self.time <= LATEST
        shown = [
            ("type", repr(self.type)),
            ("time", format_time(self.time) if known else f"{self.time} us"),
            ("id", repr(self.id)),
            ("source", repr(self.source)),
        ]
        if self.data is not None:
            shown.append(("data", repr(self.data)))
        return shown + [(name, repr(value)) for name, value in self.extensions.items()]


class Rejected(msgspec.Struct, frozen=True):
    """A record that is no event: its line or row number from 1, the record, and its problems.

    `file` is the path of its file, if that is known.
    """

    number: int
    raw: bytes | str
    problems: tuple[str, ...]
    file: str | None = None

    def numbered(self, number: int) -> Rejected:
        return msgspec.structs.replace(self, number=number)

    def because(self, *problems: str) -> Rejected:
        return msgspec.structs.replace(self, problems=problems)


def instant_of(time: int | datetime | str) -> int:
    """Microseconds since 1970, from microseconds, an aware datetime or RFC 3339 text."""
    if isinstance(time, str):
        return parse_time(time)
    if isinstance(time, datetime):
        if time.utcoffset() is None:
            raise ValueError(
                f"the datetime `{time}` has no time zone: give it one, such as `datetime.UTC`"
            )
        return microseconds_of(time)
    # Callers need not keep to the annotation, and a boolean is an `int` in Python.
    if type(time) is not int:
        raise ValueError(
            "a time is RFC 3339 text, an aware datetime or an integer of microseconds since 1970,"
            f" not `{time!r}`"
        )
    if not EARLIEST <= time <= LATEST:
        raise ValueError(f"`{time}` microseconds since 1970 lie outside the years 1 to 9999 of UTC")
    return time

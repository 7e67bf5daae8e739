"""An event as every engine sees it: the CloudEvents attributes, with time as a number."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Event(msgspec.Struct, frozen=True):
    """One event. `time` counts microseconds since 1970 (UTC); `at` shows it as a datetime.

    `data` holds the attributes of the event's type; timestamps in it are aware datetimes in UTC.
    `extensions` holds every other CloudEvents attribute (`subject`, `partitionkey`, ...).
    """

    id: str
    source: str
    type: str
    time: int
    data: Mapping[str, Any] = {}
    extensions: Mapping[str, Any] = {}

    @property
    def at(self) -> datetime:
        return datetime_of(self.time)


def datetime_of(microseconds: int) -> datetime:
    """The instant that lies so many microseconds after 1970, in UTC."""
    # timedelta keeps microseconds exact where a float of seconds would not.
    return EPOCH + timedelta(microseconds=microseconds)


def microseconds_of(instant: datetime) -> int:
    """The inverse of `datetime_of`. The datetime must be aware."""
    delta = instant - EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds

"""HOUR, MINUTE and WEEKDAY of a timestamp, in UTC or a named time zone.

Zones are those of the IANA database, by name. A weekday is a number from 0 (Monday) to 6 (Sunday),
as in Python, MySQL and Spark. An unknown zone is refused when a library is checked.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from ensue.lang.expressions.values import FaultError


def hour_of(time: datetime, zone: str = "UTC") -> int:
    return _local(time, zone).hour


def minute_of(time: datetime, zone: str = "UTC") -> int:
    return _local(time, zone).minute


def weekday_of(time: datetime, zone: str = "UTC") -> int:
    return _local(time, zone).weekday()


def zone_problem(zone: str) -> str | None:
    """What is wrong with the name of a zone; None if nothing is."""
    try:
        _zone(zone)
    except FaultError:
        return f"there is no time zone `{zone}`: write a name such as `Europe/Berlin`"
    return None


def _local(time: datetime, zone: str) -> datetime:
    try:
        return time.astimezone(_zone(zone))
    except OverflowError:
        raise FaultError("functionEvaluation", 0) from None


@lru_cache(maxsize=1024)
def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # An unknown name is a KeyError, one that leads out of the database a ValueError, and a
        # folder of it an OSError.
        raise FaultError("functionEvaluation", 0) from None

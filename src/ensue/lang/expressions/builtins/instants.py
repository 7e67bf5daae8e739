"""TIMESTAMP: the instant that a text names, in RFC 3339 or by a pattern of `strptime`.

In come a value, and a pattern and the name of a time zone if they are given; out goes a timestamp.
A timestamp stays what it is. Text without an offset is local time in the zone, or in UTC. Text that
does not fit is an error of CESQL, and so is a pattern that names no instant, which is refused when
a library is checked. The directives are those of `ensue.events.time_patterns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from ensue.events.time_patterns import time_pattern
from ensue.events.times import datetime_of
from ensue.lang.expressions.builtins.clocks import zone_problem
from ensue.lang.expressions.values import FaultError, to_string, to_timestamp


def instant_in(value: Any, pattern: str | None = None, zone: str | None = None) -> datetime:
    """The timestamp that a value is or names."""
    if pattern is None or isinstance(value, datetime):
        return to_timestamp(value)
    try:
        return datetime_of(time_pattern(pattern).read(to_string(value), _zone(zone)))
    except (ValueError, OverflowError):
        raise FaultError("cast") from None


def instant_problem(constants: Sequence[Any]) -> str | None:
    """What is wrong with the last one of a pattern and a zone; None if nothing is."""
    pattern, *zone = constants
    if zone:
        return zone_problem(zone[0])
    try:
        read = time_pattern(pattern)
    except ValueError as error:
        return str(error)
    if not read.has_year:
        return (
            f"the pattern `{pattern}` names no year: put the year before the text, as in"
            f" `TIMESTAMP(CONCAT('2024 ', Name), '%Y {pattern}')`"
        )
    return None


@lru_cache(maxsize=1024)
def _zone(name: str | None) -> ZoneInfo | None:
    if name is None or name == "UTC":
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, OSError):
        raise ValueError(f"there is no time zone `{name}`") from None

"""Instants from single values of records: text, numbers with a unit, datetimes.

In comes one value, with a unit or a pattern if it has one; out go microseconds since 1970, or a
`ValueError` with the problem. Integers are exact, and fractions of a microsecond are cut off. Reals
are rounded to the nearest microsecond, since seconds in a double are not exact in any case.
`instants` does the same for whole columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from ensue.events.cloudevents import text_of_number
from ensue.events.event import instant_of
from ensue.events.mapping.years import Years
from ensue.events.time_patterns import is_pattern, time_pattern
from ensue.events.times import EARLIEST, LATEST, local_time, parse_time

WHOLE_FACTORS = {"s": 1_000_000, "ms": 1_000, "us": 1}
REAL_FACTORS = {"s": 1e6, "ms": 1e3, "us": 1.0}
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

_is_whole = re.compile(r"[+-]?[0-9]{1,19}").fullmatch
_is_real = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?").fullmatch


_LIKE_A_DAY = re.compile(r"\s*\d{4}-\d\d-\d\d")


def mapped_instant(
    value: Any, unit: str | None, zone: ZoneInfo | None, years: Years | None = None
) -> int:
    """The instant of a value; times without an offset are in the `zone`.

    `years` finds the years of times of a pattern without one.
    """
    if is_pattern(unit):
        text = text_of(value)
        if not isinstance(text, str):
            raise ValueError(f"`{value!r}`"[:80] + f" is no text of the pattern `{unit}`")
        return time_pattern(unit or "").read(text, zone, years)
    if unit is not None:
        return _counted(value, unit)
    if isinstance(value, str):
        return parse_time(value, zone)
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(
            f"`{value}` is a number: say in which unit it counts since 1970, as `time=COLUMN:ms`"
        )
    if isinstance(value, datetime) and value.tzinfo is None and zone is not None:
        try:
            return local_time(value, zone)
        except ValueError as error:
            raise ValueError(f"`{value}`: {error}") from None
    return instant_of(value)


def text_of(value: Any) -> Any:
    """A number, a day or a clock as its text; any other value as it is."""
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return str(value) if is_day or isinstance(value, time) else text_of_number(value)


def joined(values: Sequence[Any]) -> Any:
    """Values of several columns as one text, with spaces between; None if one is missing."""
    if any(each is None for each in values):
        return None
    return " ".join(str(text_of(each)) for each in values)


def _counted(value: Any, unit: str) -> int:
    """An instant from a number since 1970."""
    number = value
    if isinstance(value, str):
        text = value.strip()
        if _is_whole(text):
            number = int(text)
        elif _is_real(text):
            number = float(text)
    if isinstance(number, bool) or not isinstance(number, int | float):
        shown = f"`{value}`" if isinstance(value, str | datetime) else f"`{value!r}`"
        is_time = isinstance(value, str) and _LIKE_A_DAY.match(value)
        advice = f": times in text have no unit, leave out `:{unit}`" if is_time else ""
        raise ValueError(f"{shown[:80]} is no number of {UNIT_NAMES[unit]} since 1970{advice}")
    if isinstance(number, int):
        instant = number // 1_000 if unit == "ns" else number * WHOLE_FACTORS[unit]
    else:
        scaled = number / 1e3 if unit == "ns" else number * REAL_FACTORS[unit]
        if not math.isfinite(scaled):
            raise ValueError(f"`{value}` is no finite number of {UNIT_NAMES[unit]} since 1970")
        instant = round(scaled)
    if not EARLIEST <= instant <= LATEST:
        raise ValueError(
            f"`{value}` {UNIT_NAMES[unit]} since 1970 lie outside the years 1 to 9999 of UTC"
        )
    return instant

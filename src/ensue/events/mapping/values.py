"""Instants from single values of records: text, numbers with a unit, datetimes.

In comes one value; out go microseconds since 1970, or a `ValueError` with the problem. Integers are
exact, and fractions of a microsecond are cut off. Reals are rounded to the nearest microsecond,
since seconds in a double are not exact in any case. `instants` does the same for whole columns.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from ensue.events.event import instant_of
from ensue.events.times import EARLIEST, LATEST, local_time, parse_time

WHOLE_FACTORS = {"s": 1_000_000, "ms": 1_000, "us": 1}
REAL_FACTORS = {"s": 1e6, "ms": 1e3, "us": 1.0}
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

_is_whole = re.compile(r"[+-]?[0-9]{1,19}").fullmatch
_is_real = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?").fullmatch


def mapped_instant(value: Any, unit: str | None, zone: ZoneInfo | None) -> int:
    """The instant of a value; times without an offset are in the `zone`."""
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
        raise ValueError(f"{shown[:80]} is no number of {UNIT_NAMES[unit]} since 1970")
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

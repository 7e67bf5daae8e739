"""Durations as text: `10 s`, `1.5 h`, and back."""

from __future__ import annotations

import re
from decimal import Decimal

from ensue.lang.syntax import Duration

MICROSECONDS = {
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
# A million days: any sum of such a duration and a time stays far inside 64 bits.
LONGEST_DURATION = 1_000_000 * MICROSECONDS["d"]
DURATION_RANGE = "a duration is from 0.001 ms to 1000000 d, in steps of 0.001 ms"
# Longer numbers are out of range in any case, and Python is slow to read them or refuses.
_MOST_DIGITS = 25
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def parse_duration(text: str) -> Duration:
    """The duration of a text. Raises ValueError, with a message for users, if it is none."""
    found = _TEXT.fullmatch(text)
    if not found or found[2] not in MICROSECONDS:
        units = ", ".join(f"`{unit}`" for unit in MICROSECONDS)
        raise ValueError(
            f"`{text}` is no duration: write a number and one of {units}, as in `10 s`"
        )
    if len(found[1]) > _MOST_DIGITS:
        raise ValueError(
            f"the duration has a number of {len(found[1]):,} characters: {DURATION_RANGE}"
        )
    microseconds = Decimal(found[1]) * MICROSECONDS[found[2]]
    if microseconds > LONGEST_DURATION:
        raise ValueError(f"`{text}` is longer than a million days: {DURATION_RANGE}")
    if microseconds != int(microseconds):
        raise ValueError(f"`{text}` is not a whole number of microseconds, the finest step of time")
    return Duration(int(microseconds))


def exact_microseconds(written: str) -> int:
    """The microseconds of a well-formed duration. Raises ValueError if it is out of range."""
    number = written.rstrip("dhminsu \t\r\n\f\v")
    unit = written[len(number) :].strip()
    if len(number) > _MOST_DIGITS:
        raise ValueError(f"the duration has a number of {len(number)} characters")
    exact = Decimal(number) * MICROSECONDS[unit]
    if exact == 0:
        raise ValueError("the duration is zero")
    if exact != int(exact):
        raise ValueError(f"`{written}` is no whole number of microseconds")
    if exact > LONGEST_DURATION:
        raise ValueError(f"`{written}` is longer than a million days")
    return int(exact)


def print_duration(duration: Duration) -> str:
    """In the largest unit in which it is a whole number; otherwise in decimals of milliseconds."""
    for unit, size in sorted(MICROSECONDS.items(), key=lambda each: -each[1]):
        if duration.microseconds % size == 0:
            return f"{duration.microseconds // size} {unit}"
    return f"{Decimal(duration.microseconds) / 1_000} ms"

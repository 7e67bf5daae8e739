"""Rewrites durations of other languages.

In comes `5m`, `90 seconds`, `1h30m`, `2 weeks`, `PT5M` or `00:05:00`; out goes `5 min`, `90 s`,
`90 min`, `14 d`, `5 min`, `5 min`, or nothing where it is no duration. One amount in a unit that
we have keeps its number; a sum is told in the largest unit in which it is whole.
"""

from __future__ import annotations

import re

from ensue.lang.durations import MICROSECONDS, print_duration
from ensue.lang.syntax import Duration

UNITS = {
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "mn", "min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
}
SECONDS = {unit: size / MICROSECONDS["s"] for unit, size in MICROSECONDS.items()}
_OTHERS = {
    **dict.fromkeys(("us", "usec", "micros", "microsecond", "microseconds"), 1),
    **dict.fromkeys(("w", "wk", "week", "weeks"), 7 * MICROSECONDS["d"]),
    **dict.fromkeys(("mo", "month", "months"), 30 * MICROSECONDS["d"]),
    **dict.fromkeys(("y", "yr", "year", "years"), 365 * MICROSECONDS["d"]),
}

NUMBER = r"\d+(?:[.,]\d+)?"
AMOUNT = rf"{NUMBER}\s*[A-Za-z]+(?:\s*(?:,\s*|and\s+)?{NUMBER}\s*[A-Za-z]+)*"
ISO = r"P(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+S)?)?"
CLOCK = r"\d{1,2}:\d\d(?::\d\d)?"
_PART = re.compile(rf"({NUMBER})\s*([A-Za-z]+)")
_ISO_PART = re.compile(r"(\d+)([DHMS])")


def written_duration(text: str) -> str | None:
    """A duration of another language in our form; None if the text is no duration."""
    text = text.strip()
    if re.fullmatch(AMOUNT, text, re.IGNORECASE):
        return _sum_of([(number.replace(",", "."), unit) for number, unit in _PART.findall(text)])
    if len(text) > 1 and re.fullmatch(ISO, text):
        return _sum_of([(number, unit.lower()) for number, unit in _ISO_PART.findall(text)])
    if re.fullmatch(CLOCK, text):
        parts = text.split(":")
        return _sum_of(list(zip(parts, ("h", "m", "s"), strict=False)))
    return None


def _sum_of(parts: list[tuple[str, str]]) -> str | None:
    units = [unit.lower() for _, unit in parts]
    if len(parts) == 1 and units[0] in UNITS:
        return f"{parts[0][0]} {UNITS[units[0]]}"
    sizes = [MICROSECONDS[UNITS[each]] if each in UNITS else _OTHERS.get(each) for each in units]
    if not parts or None in sizes:
        return None
    total = sum(
        float(number) * size for (number, _), size in zip(parts, sizes, strict=True) if size
    )
    return print_duration(Duration(round(total))) if total >= 1 else None

"""Times in text by a pattern, with the directives of `strptime` that logs need.

In come a pattern such as `%d/%b/%Y:%H:%M:%S %z` and a text; out go microseconds since 1970. White
space in a pattern stands for any white space in the text, also none before `%e`; all else stands
for itself. Names of months are English whatever the locale is. Text without an offset is a time of
the zone that the caller names, and text without a year a time of the year that the caller names.
RFC 3339 is read by `times`, and whole columns are read by `mapping.patterned`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from ensue.events.times import EARLIEST, LATEST, local_time, microseconds_of

MONTHS: Final = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
FULL_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAYS: Final = "mon|tue|wed|thu|fri|sat|sun"

DIRECTIVES: Final[Mapping[str, str]] = {
    "%Y": r"(?P<Y>\d{4})",
    "%y": r"(?P<y>\d{2})",
    "%m": r"(?P<m>1[0-2]|0?[1-9])",
    "%b": rf"(?P<b>{'|'.join(MONTHS)})",
    "%B": rf"(?P<B>{'|'.join(FULL_MONTHS)})",
    "%d": r"(?P<d>3[01]|[12]\d|0?[1-9])",
    "%e": r"\s*(?P<e>3[01]|[12]\d|0?[1-9])",
    "%j": r"(?P<j>36[0-6]|3[0-5]\d|[12]\d\d|0?[1-9]\d|0?0?[1-9])",
    "%H": r"(?P<H>2[0-3]|[01]?\d)",
    "%I": r"(?P<I>1[0-2]|0?[1-9])",
    "%p": r"(?P<p>[ap]m)",
    "%M": r"(?P<M>[0-5]?\d)",
    "%S": r"(?P<S>60|[0-5]?\d)",
    "%f": r"(?P<f>\d{1,9})",
    "%z": r"(?P<z>z|[+-]\d\d:?\d\d)",
    "%Z": r"(?P<Z>[a-z][a-z0-9_+/-]*)",
    "%s": r"(?P<s>-?\d{1,11})",
    "%a": rf"(?:{_WEEKDAYS})",
    "%A": r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)",
    "%%": "%",
}
"""The directives, each with the text that it stands for."""

YearOf = Callable[[Callable[[int], datetime]], int]
"""Chooses the year of a time without one; it is given the local time as a function of the year."""

_ELEMENT = re.compile(r"%.?|\s+|[^%\s]+", re.DOTALL)
# Fields of which a pattern has at most one, since each says the same thing.
_ONE_OF: Final = (("Y", "y"), ("m", "b", "B"), ("d", "e"), ("H", "I"), ("z", "Z"))


class TimePattern:
    """A pattern that has been read. Raises ValueError where it says no time."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.regex, fields = _compiled(pattern)
        self.fields = frozenset(fields)
        self._match = re.compile(self.regex, re.IGNORECASE | re.ASCII).fullmatch
        self._is_epoch = "s" in fields
        self.has_year = self._is_epoch or bool(fields & {"Y", "y"})
        self.has_zone = self._is_epoch or bool(fields & {"z", "Z"})

    def read(
        self, text: str, zone: ZoneInfo | None = None, year: int | YearOf | None = None
    ) -> int:
        """Microseconds since 1970. Raises ValueError for text that does not fit the pattern.

        Text without an offset is local time in `zone`, or in UTC.
        """
        match = self._match(text.strip())
        if match is None:
            raise ValueError(f"`{text[:60]}` does not fit the pattern `{self.text}`")
        parts = {name: value for name, value in match.groupdict().items() if value is not None}
        fraction = int(parts["f"][:6].ljust(6, "0")) if "f" in parts else 0
        try:
            whole = int(parts["s"]) * 1_000_000 if self._is_epoch else _instant(parts, zone, year)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"`{text[:60]}` is no time: {error}") from None
        instant = whole + fraction
        if not EARLIEST <= instant <= LATEST:
            raise ValueError(f"`{text[:60]}` lies outside the years 1 to 9999 of UTC")
        return instant


@lru_cache(maxsize=1024)
def time_pattern(pattern: str) -> TimePattern:
    """The pattern that has been read, kept. Raises ValueError with what is wrong with it."""
    return TimePattern(pattern)


def is_pattern(text: str | None) -> bool:
    """Whether a text that says how times are read is a pattern, and not a unit."""
    return text is not None and "%" in text


def _compiled(pattern: str) -> tuple[str, set[str]]:
    written: list[str] = []
    fields: set[str] = set()
    for element in _ELEMENT.findall(pattern.strip()):
        if element.startswith("%"):
            if element not in DIRECTIVES:
                raise ValueError(
                    f"`{element}` is no directive of a time pattern: there are"
                    f" {', '.join(DIRECTIVES)}"
                )
            field = element[1]
            if field in fields:
                raise ValueError(f"`{element}` stands twice in the time pattern `{pattern}`")
            if field not in "aA%":
                fields.add(field)
            written.append(DIRECTIVES[element])
        else:
            written.append(r"\s+" if element.isspace() else re.escape(element))
    for group in _ONE_OF:
        both = [f"%{each}" for each in group if each in fields]
        if len(both) > 1:
            raise ValueError(f"`{both[0]}` and `{both[1]}` say the same in `{pattern}`: write one")
    if "I" in fields and "p" not in fields:
        raise ValueError(f"`%I` in `{pattern}` needs `%p` (AM or PM), or write `%H`")
    has_day = "j" in fields or (fields & {"m", "b", "B"} and fields & {"d", "e"})
    if "s" not in fields and not has_day:
        raise ValueError(
            f"`{pattern}` names no day: write `%m` or `%b` with `%d` or `%e`, `%j`, or `%s`"
        )
    # White space before `%e` is that of its own.
    return "".join(written).replace(r"\s+\s*(?P<e>", r"\s*(?P<e>"), fields


def _instant(parts: Mapping[str, str], zone: ZoneInfo | None, year: int | YearOf | None) -> int:
    """The instant without its fraction of a second."""
    if "Y" in parts:
        year = int(parts["Y"])
    elif "y" in parts:
        year = full_year(int(parts["y"]))
    elif year is None:
        raise ValueError("it has no year, and none was given")
    elif not isinstance(year, int):
        year = year(lambda each: _local(parts, each))
    local = _local(parts, year)
    if "z" in parts:
        return microseconds_of(local.replace(tzinfo=UTC)) - _offset(parts["z"])
    named = _named(parts["Z"]) if "Z" in parts else zone
    if named is None:
        return microseconds_of(local.replace(tzinfo=UTC))
    return local_time(local, named)


def full_year(digits: int) -> int:
    """The year of two digits, as POSIX reads them."""
    return digits + (1900 if digits >= 69 else 2000)


def _local(parts: Mapping[str, str], year: int) -> datetime:
    """What clocks show, without the fraction of a second. Raises ValueError for no day."""
    hour = int(parts.get("H", 0))
    if "I" in parts:
        hour = int(parts["I"]) % 12 + (12 if parts["p"].lower() == "pm" else 0)
    if "j" in parts:
        day = datetime(year, 1, 1) + timedelta(days=int(parts["j"]) - 1)
        if day.year != year:
            raise ValueError(f"the year {year} has no day {parts['j']}")
    else:
        day = datetime(year, _month(parts), int(parts.get("d") or parts["e"]))
    # A leap second is the end of its minute, as in RFC 3339 text.
    return day + timedelta(
        hours=hour, minutes=int(parts.get("M", 0)), seconds=int(parts.get("S", 0))
    )


def _month(parts: Mapping[str, str]) -> int:
    if "m" in parts:
        return int(parts["m"])
    names, name = (MONTHS, parts["b"]) if "b" in parts else (FULL_MONTHS, parts["B"])
    return names.index(name.lower()) + 1


def _offset(text: str) -> int:
    """An offset from UTC in microseconds, of `Z`, `+0200` or `+02:00`."""
    if text in "zZ":
        return 0
    digits = text[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-minutes if text[0] == "-" else minutes) * 60_000_000


@lru_cache(maxsize=256)
def _named(name: str) -> ZoneInfo | None:
    if name.upper() in ("Z", "UTC", "GMT"):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"there is no time zone `{name}`") from None

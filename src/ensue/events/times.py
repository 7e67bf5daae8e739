"""Instants: conversions between RFC 3339 text and microseconds since 1970 (UTC).

Text may have any offset; instants are written in UTC with a `Z`. Digits beyond microseconds are cut
off, never rounded, so that no instant moves forward. The second `:60` is the first instant of the
next minute: the clock of an engine has no leap seconds. A space may replace the `T`, as RFC 3339
allows. Text that is only nearly RFC 3339 (without an offset, or a date alone) is refused, because a
guess would silently move events in time; if the user has named a time zone, text without an offset
is local time there.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000

# `datetime.fromisoformat` also reads other forms, so that the form is checked first.
_has_shape = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
).fullmatch

_is_of_an_access_log = re.compile(r"\[?[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8}.*").fullmatch

# Forms of ISO 8601 and of databases: a comma before the fraction, `+0200`, `+02`, `UTC`.
_is_nearly = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]+))?"
    r" ?(?:Z|UTC|GMT|([+-][0-9]{2}):?([0-9]{2})?)?"
).fullmatch

_is_count = re.compile(r"[0-9]{9,19}(?:\.[0-9]+)?").fullmatch
_DIGITS = {"s": 11, "ms": 14, "us": 17, "ns": 19}
"""The most digits of a present time as a number in a unit, for a guess of the unit."""

EXAMPLE = "2024-05-06T07:08:09.5Z"


def datetime_of(microseconds: int) -> datetime:
    """The instant of microseconds since 1970, as a datetime in UTC."""
    # timedelta is exact in microseconds; a float of seconds is not.
    return EPOCH + timedelta(microseconds=microseconds)


def microseconds_of(instant: datetime) -> int:
    """The inverse of `datetime_of`. The datetime must be aware."""
    delta = instant - EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds


EARLIEST = microseconds_of(datetime.min.replace(tzinfo=UTC))
LATEST = microseconds_of(datetime.max.replace(tzinfo=UTC))


def parse_time(text: str, zone: ZoneInfo | None = None) -> int:
    """The instant of an RFC 3339 text, in microseconds since 1970.

    With a `zone`, text without an offset is local time there. Raises `ValueError` for any other
    text, and for instants outside the years 1 to 9999 of UTC.
    """
    is_local = zone is not None and not _has_shape(text) and bool(_has_shape(f"{text}Z"))
    if not is_local and not _has_shape(text):
        raise ValueError(f"{_quoted(text)} is no RFC 3339 time{_hint(text)}")
    leap = text[17:19] == "60"
    plain = f"{text[:17]}59{text[19:]}" if leap else text
    try:
        read = datetime.fromisoformat(plain.upper())
        instant = microseconds_of(read) if zone is None or not is_local else local_time(read, zone)
    except ValueError as error:
        raise ValueError(f"{_quoted(text)} is no RFC 3339 time: {error}") from None
    if leap:
        instant += SECOND - instant % SECOND
    if not EARLIEST <= instant <= LATEST:
        raise ValueError(f"{_quoted(text)} lies outside the years 1 to 9999 of UTC")
    return instant


def local_time(naive: datetime, zone: ZoneInfo) -> int:
    """The instant of a local time in a zone; of two such instants the first.

    Raises `ValueError` for a time that clocks skip when they are put forward.
    """
    # `astimezone` fails near the first and the last day of the calendar.
    offset = naive.replace(tzinfo=zone, fold=0).utcoffset() or timedelta()
    instant = microseconds_of(naive.replace(tzinfo=UTC)) - offset // timedelta(microseconds=1)
    if EARLIEST <= instant <= LATEST:
        shown = datetime_of(instant).astimezone(zone).replace(tzinfo=None)
        if shown != naive.replace(fold=0):
            raise ValueError(f"the clocks of `{zone.key}` never show this time")
    return instant


def format_time(microseconds: int) -> str:
    """The instant as RFC 3339 text in UTC, without superfluous digits."""
    if not EARLIEST <= microseconds <= LATEST:
        raise ValueError(
            f"{microseconds} microseconds since 1970 lie outside the years 1 to 9999 of UTC"
        )
    text = datetime_of(microseconds).isoformat()[:-6]
    return f"{text.rstrip('0')}Z" if microseconds % SECOND else f"{text}Z"


def _quoted(text: str) -> str:
    return f"`{text}`" if len(text) <= 60 else f"`{text[:60]}...`"


def _hint(text: str) -> str:
    """The advice for the most frequent near misses."""
    if _has_shape(f"{text}Z"):
        return f": the offset is missing, write `{text}Z` if it is UTC, or name a time zone"
    if (near := _of_near(text)) and _has_shape(near) and near != text:
        return f": write it as `{near}`"
    if _is_of_an_access_log(text):
        return (
            ": let the web server write it so, nginx by `$time_iso8601` and Apache by"
            " `%{%Y-%m-%dT%H:%M:%S}t`"
        )
    if _is_count(text):
        unit = next(unit for unit, digits in _DIGITS.items() if len(text.split(".")[0]) <= digits)
        return f": if it counts since 1970, say in which unit, as `time=COLUMN:{unit}`"
    return f": write it like `{EXAMPLE}` or `2024-05-06T09:08:09+02:00`"


def _of_near(text: str) -> str | None:
    """The RFC 3339 text of a time in the form of another standard; in UTC without an offset."""
    found = _is_nearly(text)
    if found is None:
        return None
    moment, fraction, hours, minutes = found.groups()
    offset = f"{hours}:{minutes or '00'}" if hours else "Z"
    return f"{moment}.{fraction}{offset}" if fraction else f"{moment}{offset}"

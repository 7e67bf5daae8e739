"""Instants: conversions between RFC 3339 text and microseconds since 1970 (UTC).

Text may have any offset; instants are written in UTC with a `Z`. Digits beyond microseconds are cut
off, never rounded, so that no instant moves forward. The second `:60` is the first instant of the
next minute: the clock of an engine has no leap seconds. Forms that ISO 8601 allows beside RFC 3339
and that can mean only one instant are read as well: without seconds, the basic form without
separators (`20240506T070809Z`), a comma before the fraction, a space for the `T` or before the
offset, and the offsets `+0200`, `+02` and `UTC`. Text without an offset, or a date alone, is
refused, because a guess would silently move events in time; if the user has named a time zone, text
without an offset is local time there. Any other form needs a pattern (`time_patterns`).
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

_OFFSET = (
    r" ?(?:(?P<Z>[Zz]|UTC|GMT)"
    r"|(?P<z>[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9]|[+-](?:[01][0-9]|2[0-3])))?"
)
ISO_FORMS = (
    r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})[Tt ](?P<H>[0-9]{2}):(?P<M>[0-9]{2})"
    rf"(?::(?P<S>[0-9]{{2}})(?:[.,](?P<f>[0-9]+))?)?{_OFFSET}",
    r"(?P<Y>[0-9]{4})(?P<m>[0-9]{2})(?P<d>[0-9]{2})[Tt ](?P<H>[0-9]{2})(?P<M>[0-9]{2})"
    rf"(?:(?P<S>[0-9]{{2}})(?:[.,](?P<f>[0-9]+))?)?{_OFFSET}",
)
"""The forms of ISO 8601 that are read, with the names of the directives of `time_patterns`."""
_has_form = tuple(re.compile(form).fullmatch for form in ISO_FORMS)

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
    given, is_local = text, False
    if not _has_shape(text):
        written = _rewritten(text)
        if written is None:
            raise ValueError(f"{_quoted(text)} is no RFC 3339 time{_hint(text)}")
        given, is_local = written
        if is_local and zone is None:
            raise ValueError(
                f"{_quoted(text)} is no RFC 3339 time: the offset is missing, write `{text}Z` if it"
                " is UTC, or name a time zone"
            )
    leap = given[17:19] == "60"
    plain = f"{given[:17]}59{given[19:]}" if leap else given
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
    if _is_of_an_access_log(text):
        return ": give its pattern, as `time=COLUMN:%d/%b/%Y:%H:%M:%S %z`"
    if _is_count(text):
        unit = next(unit for unit, digits in _DIGITS.items() if len(text.split(".")[0]) <= digits)
        return f": if it counts since 1970, say in which unit, as `time=COLUMN:{unit}`"
    return f": write it like `{EXAMPLE}` or `2024-05-06T09:08:09+02:00`"


def _rewritten(text: str) -> tuple[str, bool] | None:
    """Text of another form as RFC 3339 text, and whether its offset is missing; None for no form.

    Text without an offset gets none here either.
    """
    found = next((match for form in _has_form if (match := form(text))), None)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction = found.group(
        "Y", "m", "d", "H", "M", "S", "f"
    )
    moment = f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}"
    if fraction:
        moment = f"{moment}.{fraction}"
    if found["Z"]:
        return f"{moment}Z", False
    offset = found["z"]
    if not offset:
        return moment, True
    return f"{moment}{offset[:3]}:{offset[3:].removeprefix(':') or '00'}", False

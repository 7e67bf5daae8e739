"""Instants as RFC 3339 text and as microseconds."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.events.times import (
    EARLIEST,
    LATEST,
    datetime_of,
    format_time,
    microseconds_of,
    parse_time,
)

from .vocabulary import instants


@given(instants)
def test_formatting_and_parsing_is_the_identity(instant: int) -> None:
    assert parse_time(format_time(instant)) == instant


@given(instants)
def test_datetimes_and_microseconds_are_each_others_inverse(instant: int) -> None:
    assert microseconds_of(datetime_of(instant)) == instant


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), st.integers(-1439, 1439))
def test_every_offset_names_the_same_instant(naive: datetime, minutes: int) -> None:
    local = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert parse_time(local.isoformat()) == microseconds_of(local.astimezone(UTC))


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01z", 1_000_000),
        ("1970-01-01T00:00:00-00:00", 0),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T23:59:59.9Z", -100_000),
        ("1970-01-01T00:00:00.1234569Z", 123_456),
        ("1969-12-31T23:59:59.9999999Z", -1),
        ("1970-01-01T00:00:00." + "0" * 500 + "9Z", 0),
        ("0001-01-01T00:00:00Z", EARLIEST),
        ("9999-12-31T23:59:59.999999Z", LATEST),
    ],
)
def test_a_time_is_read_to_the_microsecond_and_cut_off_there(text: str, instant: int) -> None:
    assert parse_time(text) == instant


@pytest.mark.parametrize("second", ["60", "60.5", "60.999999999"])
def test_a_leap_second_is_the_first_instant_of_the_next_minute(second: str) -> None:
    next_minute = parse_time("2017-01-01T00:00:00Z")
    assert parse_time(f"2016-12-31T23:59:{second}Z") == next_minute
    assert parse_time(f"2017-01-01T00:59:{second}+01:00") == next_minute


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2024-05-06",
        "2024-05-06T07Z",
        "20240506T7:08:09Z",
        "2024-05-06T070809Z",
        "2024-W19-1T07:08:09Z",
        "2024-05-06T07:08,5Z",
        "2024-05-06T07:08:09.Z",
        "2024-05-06T07:08:09+2",
        "2024-05-06T07:08:09 CET",
        "2024-05-06  07:08:09Z",
        "2024-05-06T07:08:09  Z",
        "2024-05-06T07:08:09+24:00",
        "2024-05-06T07:08:09+01:60",
        "2024-05-06T07:08:09+01:00:00",
        "2024-05-06T24:00:00Z",
        "2024-05-06T07:08:61Z",
        "2024-02-30T07:08:09Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:60Z",
        " 2024-05-06T07:08:09Z",
        "2024-05-06T07:08:09Z\n",
        "٢٠٢٤-05-06T07:08:09Z",
        "2024-05-06\u200a07:08:09Z",
    ],
)
def test_anything_else_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no RFC 3339 time|outside the years"):
        parse_time(text)


def test_a_missing_offset_is_named() -> None:
    with pytest.raises(ValueError, match="write `2024-05-06T07:08:09Z` if it is UTC"):
        parse_time("2024-05-06T07:08:09")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2024-05-06 07:08:09,123", "write `2024-05-06 07:08:09,123Z` if it is UTC"),
        ("20240506T0708", "write `20240506T0708Z` if it is UTC"),
        ("06/May/2024:07:08:09 +0200", "time=COLUMN:%d/%b/%Y:%H:%M:%S %z"),
        ("2024-05-06T07:08:09+25:00", "write it like `2024"),
    ],
)
def test_a_refused_time_is_answered_with_how_it_is_written_or_read(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("2024-05-06T07:08Z", "2024-05-06T07:08:00Z"),
        ("2024-05-06 07:08+02:00", "2024-05-06T05:08:00Z"),
        ("20240506T070809Z", "2024-05-06T07:08:09Z"),
        ("20240506 0708+02", "2024-05-06T05:08:00Z"),
        ("2024-05-06T07:08:09,5Z", "2024-05-06T07:08:09.5Z"),
        ("2024-05-06T07:08:09.5+0200", "2024-05-06T05:08:09.5Z"),
        ("2024-05-06 07:08:09-03", "2024-05-06T10:08:09Z"),
        ("2024-05-06 07:08:09 UTC", "2024-05-06T07:08:09Z"),
        ("2024-05-06 07:08:09 +0200", "2024-05-06T05:08:09Z"),
        ("20161231T235960Z", "2017-01-01T00:00:00Z"),
    ],
)
def test_other_forms_of_iso_8601_are_read(text: str, plain: str) -> None:
    assert parse_time(text) == parse_time(plain)


def test_a_space_may_stand_for_the_t() -> None:
    assert parse_time("2024-05-06 07:08:09Z") == parse_time("2024-05-06T07:08:09Z")


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-05-06T09:08:09", "2024-05-06T07:08:09Z"),
        ("2024-01-06 09:08:09.25", "2024-01-06T08:08:09.25Z"),
        ("2024-05-06T07:08:09Z", "2024-05-06T07:08:09Z"),
        ("2024-05-06T07:08:09-01:00", "2024-05-06T08:08:09Z"),
        # This hour comes twice when the clocks are put back: the first is meant.
        ("2024-10-27T02:30:00", "2024-10-27T00:30:00Z"),
        ("2024-05-06T23:59:60", "2024-05-06T22:00:00Z"),
    ],
)
def test_text_without_an_offset_is_local_time_in_a_zone(text: str, utc: str) -> None:
    assert parse_time(text, BERLIN) == parse_time(utc)


def test_a_time_that_the_clocks_leave_out_is_refused() -> None:
    with pytest.raises(ValueError, match="the clocks of `Europe/Berlin` never show this time"):
        parse_time("2024-03-31T02:30:00", BERLIN)


def test_a_long_text_is_cut_short_in_the_message() -> None:
    with pytest.raises(ValueError, match="RFC 3339") as caught:
        parse_time("x" * 100_000)
    assert len(str(caught.value)) < 300


@given(st.text())
def test_no_text_raises_anything_but_a_value_error(text: str) -> None:
    with suppress(ValueError):
        parse_time(text)


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (10_000_000, "1970-01-01T00:00:10Z"),
        (1_500_000, "1970-01-01T00:00:01.5Z"),
        (1, "1970-01-01T00:00:00.000001Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (EARLIEST, "0001-01-01T00:00:00Z"),
    ],
)
def test_text_has_no_more_digits_than_needed(instant: int, text: str) -> None:
    assert format_time(instant) == text


@pytest.mark.parametrize("instant", [EARLIEST - 1, LATEST + 1])
def test_an_instant_that_no_text_can_name_is_refused(instant: int) -> None:
    with pytest.raises(ValueError, match="outside the years 1 to 9999"):
        format_time(instant)

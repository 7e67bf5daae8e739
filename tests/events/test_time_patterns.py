"""Times in text by a pattern of directives."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from ensue.events.time_patterns import time_pattern
from ensue.events.times import format_time


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("%d/%b/%Y:%H:%M:%S %z", "10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"),
        ("%y%m%d %H%M%S", "081109 203615", "2008-11-09T20:36:15Z"),
        ("%Y-%m-%d %H:%M:%S.%f", "2017-05-16 00:00:00.0081239", "2017-05-16T00:00:00.008123Z"),
        ("%a %b %d %H:%M:%S %Y", "Sun Dec 04 04:47:44 2005", "2005-12-04T04:47:44Z"),
        ("%s.%f", "1700000000.25", "2023-11-14T22:13:20.25Z"),
        ("%j %Y %I:%M %p", "060 2024 12:05 AM", "2024-02-29T00:05:00Z"),
        ("%m/%d/%Y %I:%M:%S %p", "7/4/2026 1:02:03 pm", "2026-07-04T13:02:03Z"),
        ("%Y-%m-%dT%H:%M:%S%z", "2026-07-04T13:02:03+05:30", "2026-07-04T07:32:03Z"),
        ("%Y-%m-%d %H:%M:%S %Z", "2026-07-04 13:02:03 Europe/Berlin", "2026-07-04T11:02:03Z"),
        ("%Y-%m-%d %H:%M:%S", "2016-12-31 23:59:60", "2017-01-01T00:00:00Z"),
        ("100%% %Y-%m-%d", "100% 2026-07-04", "2026-07-04T00:00:00Z"),
    ],
)
def test_text_is_read_by_its_pattern(pattern: str, text: str, expected: str) -> None:
    assert format_time(time_pattern(pattern).read(text)) == expected


@pytest.mark.parametrize("text", ["Dec  1 06:55:46", "Dec 1 06:55:46", "dec 01 06:55:46"])
def test_a_year_that_is_not_written_is_given(text: str) -> None:
    pattern = time_pattern("%b %e %H:%M:%S")

    assert format_time(pattern.read(text, year=2015)) == "2015-12-01T06:55:46Z"
    with pytest.raises(ValueError, match="it has no year"):
        pattern.read(text)


def test_text_without_an_offset_is_local_time_of_the_zone() -> None:
    pattern = time_pattern("%Y-%m-%d %H:%M:%S")

    read = pattern.read("2026-01-04 12:00:00", ZoneInfo("Europe/Berlin"))
    assert format_time(read) == "2026-01-04T11:00:00Z"
    with pytest.raises(ValueError, match="never show this time"):
        pattern.read("2026-03-29 02:30:00", ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("%Y-%m-%d", "2026-02-30"),
        ("%Y-%m-%d", "2026-02-3x"),
        ("%Y-%m-%d", ""),
        ("%Y %j", "2026 366"),
        ("%Y-%m-%d %Z", "2026-01-01 Nowhere/Else"),
        ("%s", "99999999999999"),
    ],
)
def test_text_that_is_no_time_is_refused(pattern: str, text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        time_pattern(pattern).read(text)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("%Q", "`%Q` is no directive"),
        ("%Y-%m-%d %", "`%` is no directive"),
        ("%H:%M", "names no day"),
        ("%I %d %m", "needs `%p`"),
        ("%Y %Y %m %d", "stands twice"),
        ("%m %b %d", "say the same"),
    ],
)
def test_a_pattern_that_says_no_time_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        time_pattern(pattern)

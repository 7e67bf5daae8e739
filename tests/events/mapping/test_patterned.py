"""Times of a pattern in columns: what is read there is what is read one by one."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.events.mapping.instants import instants_in
from ensue.events.mapping.values import mapped_instant
from ensue.events.times import parse_time

PATTERNS = (
    "%d/%b/%Y:%H:%M:%S %z",
    "%y%m%d %H%M%S",
    "%Y-%m-%d %I:%M:%S %p",
    "%Y %j %H:%M:%S.%f",
    "[%a %b %e %H:%M:%S %Y]",
    "%B %d, %Y %H:%M",
    "%s.%f",
    "%Y-%m-%dT%H:%M:%S%Z",
)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("pattern", PATTERNS)
@given(
    moments=st.lists(
        st.datetimes(datetime(1970, 1, 2), datetime(2068, 1, 1), timezones=st.just(UTC)), max_size=5
    ),
    zone=st.sampled_from([None, BERLIN]),
)
def test_a_column_is_read_as_its_values_are(
    pattern: str, moments: list[datetime], zone: ZoneInfo | None
) -> None:
    texts: list[str | None] = [each.strftime(pattern) for each in moments]
    texts += [
        "31/Feb/2024:07:08:09 +0000",
        "nothing",
        "",
        None,
        "240230 990000",
        "2024 366 1:1:1.5",
    ]

    found = instants_in(pa.array(texts, pa.string()), pattern, zone)

    for text, value, missing, unread in zip(
        texts, found.values.tolist(), found.missing.tolist(), found.unread.tolist(), strict=True
    ):
        assert missing == (text is None)
        if text is not None and not unread:
            assert value == mapped_instant(text, pattern, zone)
    # What is read one by one is rare: the name of a zone, and what is no time at all.
    if pattern != PATTERNS[-1]:
        for text, unread in zip(texts, found.unread.tolist(), strict=True):
            if unread:
                with pytest.raises(ValueError, match=r"pattern|no time|never show|outside"):
                    mapped_instant(text, pattern, zone)


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-06T07:08Z",
        "20240506T070809Z",
        "2024-05-06 07:08:09,5 +0200",
        "2024-05-06 07:08:09 UTC",
        "20240506 0708-03",
    ],
)
def test_forms_of_iso_8601_are_read_in_columns(text: str) -> None:
    found = instants_in(pa.array([text, "2024-05-06T07:08:09Z"]), None, None)

    assert found.values.tolist() == [parse_time(text), parse_time("2024-05-06T07:08:09Z")]
    assert not found.unread.any()

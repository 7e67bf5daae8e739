"""Years of times that have none: row by row and in columns alike."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ensue.events.mapping.instants import instants_in
from ensue.events.mapping.values import mapped_instant
from ensue.events.mapping.years import Years
from ensue.events.times import format_time, microseconds_of

PATTERN = "%b %d %H:%M:%S"
MOMENTS = st.datetimes(datetime(2014, 6, 1), datetime(2017, 6, 1), timezones=st.just(UTC)).map(
    lambda each: each.replace(microsecond=0)
)


def read(texts: list[str], first: int = 2015) -> list[str]:
    years = Years(first)
    return [format_time(mapped_instant(each, PATTERN, None, years))[:10] for each in texts]


def test_the_year_moves_on_where_times_go_back_by_more_than_half_a_year() -> None:
    texts = ["Nov 30 10:00:00", "Dec 31 23:59:59", "Jan  1 00:00:00", "Dec 31 10:00:00"]

    # The last is a year later: logs may be silent for long, and are out of order by hours.
    assert read(texts[:3]) == ["2015-11-30", "2015-12-31", "2016-01-01"]
    assert read([*texts[:3], "Jan  2 12:00:00", texts[3]])[-1] == "2016-12-31"


def test_a_line_that_comes_a_little_late_stays_in_its_year() -> None:
    texts = ["Dec 31 23:59:59", "Jan  1 00:00:01", "Dec 31 23:59:58", "Jan  1 00:00:02"]

    assert read(texts) == ["2015-12-31", "2016-01-01", "2015-12-31", "2016-01-01"]


def test_a_leap_day_is_of_a_year_that_has_it() -> None:
    assert read(["Dec 31 00:00:00", "Feb 29 00:00:00"]) == ["2015-12-31", "2016-02-29"]


@given(st.lists(MOMENTS, max_size=12), st.integers(1, 4))
def test_columns_in_blocks_are_read_as_rows_are(moments: list[datetime], blocks: int) -> None:
    texts = [each.strftime(PATTERN) for each in moments]
    one_by_one: list[int | None] = []
    years = Years(2015)
    for text in texts:
        try:
            one_by_one.append(mapped_instant(text, PATTERN, None, years))
        except ValueError:
            one_by_one.append(None)

    years = Years(2015)
    found: list[int | None] = []
    for part in np.array_split(np.array(texts, object), blocks):
        column = instants_in(pa.array(part.tolist(), pa.string()), PATTERN, None, years)
        found += [
            None if unread else value
            for value, unread in zip(column.values.tolist(), column.unread.tolist(), strict=True)
        ]

    assert found == one_by_one


@given(st.lists(MOMENTS, min_size=1, max_size=12))
def test_rows_that_are_read_again_have_the_years_they_had(moments: list[datetime]) -> None:
    near = np.array([microseconds_of(each) for each in moments])
    texts = pa.array([each.strftime(PATTERN) for each in moments])

    found = instants_in(texts, PATTERN, None, Years(1999), near)

    assert found.values.tolist() == near.tolist()

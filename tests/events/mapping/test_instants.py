"""Times and integers of columns of text: what is read is what is read of each text alone."""

from __future__ import annotations

from itertools import combinations

import pyarrow as pa
import pytest

from ensue.events.mapping.instants import instants_in, whole_numbers_in
from ensue.events.times import parse_time

TEXTS = [
    "2024-05-06T07:08:09Z",
    "2024-05-06 07:08:09.5+02:00",
    "2024-05-06T07:08:09.1234567Z",
    "2024-05-06t07:08:09z",
    "2024-05-06T07:08Z",
    "2024-05-06T07Z",
    "2024-05-06",
    "2024-05-06T07:08:60Z",
    "2024-02-30T07:08:09Z",
    "0000-05-06T07:08:09Z",
    "0001-01-01T00:00:00+23:59",
    "1500-01-01T00:00:00.1234567Z",
    "2024-05-06T07:08:09",
    "soon",
    "",
]
USUAL = {*TEXTS[:6], TEXTS[10], TEXTS[11]}
"""Texts that a column has to read itself."""


def _alone(text: str | None) -> int | None:
    try:
        return None if text is None else parse_time(text)
    except ValueError:
        return None


@pytest.mark.parametrize("least", [1, 2, 3])
def test_a_time_is_read_in_a_column_as_it_is_alone(least: int) -> None:
    for texts in combinations([*TEXTS, None], least):
        found = instants_in(pa.array(texts, pa.string()), None, None)

        read = [
            int(value) if not gone else None
            for value, gone in zip(found.values, found.unread | found.missing, strict=True)
        ]
        alone = [_alone(text) for text in texts]
        # What is not read in a column is read by itself later.
        assert read == [
            None if one is None else other for one, other in zip(read, alone, strict=True)
        ]
        assert [one for one, text in zip(read, texts, strict=True) if text in USUAL] == [
            other for other, text in zip(alone, texts, strict=True) if text in USUAL
        ]
        assert found.missing.tolist() == [text is None for text in texts]


def test_integers_have_digits_alone() -> None:
    texts = [
        "5",
        "-7",
        "007",
        "+5",
        "0x1f",
        "1_0",
        " 5",
        "5\n",
        "",
        None,
        "9" * 18,
        "9" * 19,
        "\u0663",
    ]

    numbers, ok = whole_numbers_in(pa.array(texts, pa.string()))

    read = [int(each) if good else None for each, good in zip(numbers, ok, strict=True)]
    assert read == [5, -7, 7, *[None] * 7, 10**18 - 1, None, None]

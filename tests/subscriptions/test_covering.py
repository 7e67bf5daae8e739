"""Covering against publications: never wrong, and exact where it can be told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ensue.errors import LibraryError, UsageError
from ensue.events.event import Event
from ensue.subscriptions import Filter, covers
from ensue.subscriptions.covering import counterexample

from .strategies import conjunctive, events, filters, plain_filters


def filter_of(predicate: Any) -> Filter:
    try:
        return Filter(predicate)
    except (LibraryError, UsageError):
        assume(False)
        raise


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(filters | conjunctive, filters | conjunctive, st.lists(events, min_size=20, max_size=40))
def test_covering_is_never_wrong(one: Any, other: Any, published: list[Event]) -> None:
    general, special = filter_of(one), filter_of(other)
    told = covers(general, special)

    if told is True:
        for event in published:
            assert not special.matches(event) or general.matches(event)
    if told is False:
        shown = counterexample(general, special)
        assert shown is not None
        assert special.matches(shown)
        assert not general.matches(shown)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(plain_filters)
def test_every_filter_covers_itself_narrowed(predicate: Any) -> None:
    general = filter_of(predicate)
    narrowed = Filter.parse(f"q > 5 AND ({general})")

    assert covers(general, narrowed) is not False
    assert covers("q > 3", narrowed) is True


@pytest.mark.parametrize(
    ("general", "special", "expected"),
    [
        ("x > 3", "x > 5", True),
        ("x > 5", "x > 3", False),
        ("x >= 5", "x > 5", True),
        ("x > 5", "x >= 5", False),
        ("x != 5", "x > 5", True),
        ("x != 5", "x >= 5", False),
        ("x < 5 OR x >= 5", "x > 2", True),
        ("NOT (x > 5)", "x <= 5", True),
        ("x <= 5", "NOT (x > 5)", False),  # NaN is not above 5, and not below
        ("x < 10 OR x >= 10", "x != 3", False),  # NaN again
        ("x > 1e308", "x > 1e308 AND NOT (x <= 1e308)", True),
        ("x < 1.7976931348623157e308", "x < 1e308", True),
        ("x LIKE 'a%'", "x LIKE 'ab%'", True),
        ("x LIKE 'ab%'", "x LIKE 'a%'", False),
        ("x LIKE '%c'", "x LIKE '%bc'", True),
        ("x LIKE '%b%'", "x LIKE 'ab%'", True),
        ("x LIKE '%b%'", "x = 'abc'", True),
        ("x LIKE 'a%' AND x LIKE '%z'", "x LIKE 'a%y%z'", True),
        ("x NOT LIKE 'b%'", "x LIKE 'a%'", True),
        ("x NOT LIKE 'ab%'", "x LIKE 'a%'", False),
        ("EXISTS x", "x != 1", True),
        ("EXISTS x", "NOT EXISTS x", False),
        ("x = 1", "EXISTS x", False),
        ("EXISTS type", "x = 1", True),
        ("x IN ('a', 'b', 'c')", "x IN ('b', 'a')", True),
        ("x IN ('a', 'b')", "x IN ('a', 'c')", False),
        ("x = 'a' OR x = 'b'", "x = 'a'", True),
        ("x = 'a' OR y = 'b'", "y = 'b'", False),  # without x the left side is in error
        ("(EXISTS x AND x = 'a') OR y = 'b'", "y = 'b' AND NOT EXISTS x", True),
        ("x > 3", "x > 3 AND y = 2", True),
        ("x > 3 AND y = 2", "x > 3", False),
        ("x = 7", "x = '7'", True),
        ("x = '7'", "x = 7", False),  # 7.0 and '07' are equal to 7
        ("time > 2024-01-01T00:00:00Z", "time > 2024-02-01T00:00:00Z", True),
        ("time > 2024-02-01T00:00:00Z", "time > 2024-01-01T00:00:00Z", False),
        ("tags HAS ANY ('a', 'b')", "tags HAS ALL ('a', 'c')", True),
        ("tags HAS ALL ('a', 'b')", "tags HAS ANY ('a', 'b')", False),
        ("tags HAS ONLY ('a', 'b')", "tags HAS ONLY ('a')", True),
        ("y = 1", "x > 2 AND x < 1", True),
        ("x = 1", "y = 1 XOR y = 1", True),
        ("LENGTH(x) > 3", "LENGTH(x) > 3 AND y = 1", True),
        ("LENGTH(x) > 3", "y = 1", False),
        ("LENGTH(x) > 3", "LENGTH(x) > 4", None),
    ],
)
def test_covering_of_content(general: str, special: str, expected: bool | None) -> None:
    assert covers(general, special) is expected


@pytest.mark.parametrize(
    ("general", "special", "expected"),
    [
        ("start AFTER(10 s) (a > 1)", "start AFTER(10 s) (a > 2)", True),
        ("start AFTER(10 s) (a > 1)", "start AFTER(5 s) (a > 1)", True),
        ("start AFTER (a > 1)", "start AFTER(5 s) (a > 1)", True),
        ("start AFTER(5 s) (a > 1)", "start AFTER(10 s) (a > 1)", None),
        ("end AFTER(10 s) (a > 1)", "start AFTER(10 s) (a > 1)", None),
        ("start AFTER(10 s) (a > 1)", "start AFTER(10 s, 3 TIMES) (a > 1)", True),
        ("start AFTER(10 s, 3 TIMES) (a > 1)", "start AFTER(10 s) (a > 1)", None),
        ("start BEFORE(10 s) (a > 1)", "start BEFORE(9 s) (a > 3)", True),
        ("start DURING (a > 1)", "start DURING (a > 2) AND b = 1", True),
        ("OVERLAPS (a > 1)", "OVERLAPS (a > 2)", True),
        ("OVERLAPS (a > 1)", "MEETS (a > 2)", None),
        ("x FILTER(<=) (a > 1)", "x FILTER(<, 5) (a > 2)", True),
        ("x FILTER(=, 5) (a > 1)", "x FILTER(=, 4) (a > 1)", True),
        ("x FILTER(=, 5) (a > 1)", "x FILTER(=, 5) (a > 2)", None),
        (
            "start AFTER(10 s) (end DURING (a > 1))",
            "start AFTER(10 s) (end DURING (a > 2) AND c = 1)",
            True,
        ),
        ("b = 1", "start AFTER(10 s) (a > 1) AND b = 1", True),
        ("start AFTER(10 s) (a > 1)", "b = 1", False),
        ("NOT start AFTER(5 s) (a > 2)", "NOT start AFTER(10 s) (a > 1)", True),
        ("w IS_A Red", "w IS_A Red AND x = 1", True),
        ("w IS_A ANY (Red, White)", "w IS_A Red", True),
        ("w IS_A Red", "w IS_A White", None),
    ],
)
def test_covering_of_terms(general: str, special: str, expected: bool | None) -> None:
    assert covers(general, special) is expected

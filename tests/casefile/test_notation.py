"""The short texts of a case file."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from ensue.casefile.case import ExpectedFinding, seconds_text
from ensue.casefile.notation import (
    read_event_text,
    read_finding,
    read_output_text,
    read_time,
)


@pytest.mark.parametrize(
    ("given", "microseconds"),
    [
        (3, 3_000_000),
        (Decimal("0.1"), 100_000),
        ("1.000001", 1_000_001),
        ("-2", -2_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        (datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), 5_000_000),
    ],
)
def test_a_time_is_seconds_or_rfc_3339(given: object, microseconds: int) -> None:
    assert read_time(given) == microseconds


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("yesterday", "no time"),
        ("1.0000001", "no time"),
        (Decimal("0.0000001"), "6 decimal places"),
        (Decimal("inf"), "no number"),
        (10**20, "outside the years"),
        (True, "a number of seconds"),
        (datetime(2024, 1, 1), "no offset"),
    ],
)
def test_what_is_no_time_is_refused_with_the_reason(given: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_time(given)


def test_an_event_text_has_a_time_and_a_type_and_maybe_a_source_and_data() -> None:
    assert read_event_text("1.5 A") == {"time": 1_500_000, "type": "A"}
    assert read_event_text('2 A from gps {"x": "a from b"}') == {
        "time": 2_000_000,
        "type": "A",
        "source": "gps",
        "data": {"x": "a from b"},
    }
    assert read_event_text('2 A {"x": 1}')["data"] == {"x": 1}


@pytest.mark.parametrize("text", ["", "1", "A", "1 A gps", "1 A from", '1 A {"x": }', '1 {"x": 1}'])
def test_what_is_no_event_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no event|no time|no JSON"):
        read_event_text(text)


def test_an_output_text_without_labels_expects_none_to_be_active() -> None:
    assert read_output_text("4 Out") == {"trigger": "4", "type": "Out", "labels": ""}
    assert read_output_text("4 Out a,b")["labels"] == "a,b"


def test_an_output_text_is_compared_by_data_only_if_there_is_some() -> None:
    assert "data" not in read_output_text("4 Out l1")
    assert read_output_text('4 Out l1 {"x": 1}')["data"] == {"x": 1}
    assert read_output_text('4 Out {"x": 1}')["labels"] == ""


def test_what_the_clock_completed_is_named_by_its_time() -> None:
    fields = read_output_text("timer@6.5 Out")

    assert (fields["trigger"], fields["time"]) == ("timer", 6_500_000)


@pytest.mark.parametrize(
    "text", ["4", "timer Out", "4 Out b,a", "4 Out a, b", "4 Out a,a", "4 Out ,a"]
)
def test_what_is_no_output_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"output|no time|sorted"):
        read_output_text(text)


def test_a_finding_may_name_its_place() -> None:
    assert read_finding("unknown-port") == ExpectedFinding("unknown-port")
    assert read_finding("3:14 unknown-port") == ExpectedFinding("unknown-port", 3, 14)
    with pytest.raises(ValueError, match="no finding"):
        read_finding("line 3")


@pytest.mark.parametrize(
    ("microseconds", "text"), [(6_000_000, "6"), (1, "0.000001"), (10_000_000, "10"), (0, "0")]
)
def test_times_are_shown_as_seconds_without_useless_digits(microseconds: int, text: str) -> None:
    assert seconds_text(microseconds) == text

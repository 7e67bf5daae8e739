"""Whether events fit their declared types."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ensue
from ensue.errors import EventError
from ensue.events.conformance import conform, conform_value, fits
from ensue.events.event import Event
from ensue.events.types import INTEGER_RANGES, ValueType

from .vocabulary import NOTIFY, exactly, json_values, types_from, value_types, values_of


def notify(data: Any, type_name: str = "DataNotify") -> Event:
    return Event("1", "test", type_name, 0, data)


def problems_of(event: Event) -> tuple[str, ...]:
    with pytest.raises(EventError) as caught:
        conform(event, NOTIFY)
    return caught.value.problems


def test_an_event_in_normal_form_is_given_back_itself() -> None:
    event = notify({"SourceID": 3, "Value": 4.5})
    assert conform(event, NOTIFY) is event


def test_a_whole_number_fits_a_real_and_is_held_as_one() -> None:
    held = conform(notify({"SourceID": 3, "Value": 4}), NOTIFY).data["Value"]
    assert exactly(held) == exactly(4.0)


@pytest.mark.parametrize("value", [3, 3.0])
def test_a_real_without_a_fraction_fits_an_integer_and_is_held_as_one(value: float) -> None:
    held = conform(notify({"SourceID": value, "Value": 4.5}), NOTIFY).data["SourceID"]
    assert exactly(held) == exactly(3)


@pytest.mark.parametrize("value", [3.5, 70_000.0, float("nan"), float("inf"), 1e300])
def test_any_other_real_fits_no_integer(value: float) -> None:
    (problem,) = problems_of(notify({"SourceID": value, "Value": 4.5}))
    assert "a whole number from -32768 to 32767" in problem


def test_a_value_that_a_rule_makes_is_no_integer_if_it_is_a_real() -> None:
    """Only events from outside are read that way: what a rule makes has the type that it has."""
    assert not fits(3.0, ValueType("short"))


def test_an_event_that_changes_leaves_the_original_as_it_was() -> None:
    event = notify({"SourceID": 3, "Value": 4})
    conform(event, NOTIFY)
    assert exactly(event.data["Value"]) == exactly(4)


def test_an_event_of_an_undeclared_type_may_hold_anything() -> None:
    event = notify([1, "two"], "Unknown")
    assert conform(event, NOTIFY) is event


def test_attributes_that_no_type_declares_are_let_through() -> None:
    event = notify({"SourceID": 3, "Value": 4.5, "note": {"deep": [1]}})
    assert conform(event, NOTIFY) is event


def test_null_fits_every_attribute() -> None:
    event = notify({"SourceID": None, "Value": None})
    assert conform(event, NOTIFY) is event


def test_all_problems_are_named_at_once_inherited_attributes_too() -> None:
    problems = problems_of(notify({"Value": "high"}))
    assert problems == (
        "attribute `SourceID` of `DataNotify` is missing: a `short` (a whole number from -32768 to"
        " 32767) is needed, or null",
        'attribute `Value` of `DataNotify`: "high" was given, a `float` (a finite number of at most'
        " 3.4028235e38 in size) is needed",
    )


@pytest.mark.parametrize("data", [None, 3, "text", [1]])
def test_data_that_is_no_object_is_one_problem(data: Any) -> None:
    (problem,) = problems_of(notify(data))
    assert "must be an object with `SourceID`, `Value`" in problem


@pytest.mark.parametrize("data", [None, {}, {"extra": 1}])
def test_a_type_without_attributes_needs_no_data(data: Any) -> None:
    event = notify(data, "Bare")
    assert conform(event, NOTIFY) is event


def test_a_type_without_attributes_still_refuses_data_that_is_no_object() -> None:
    (problem,) = problems_of(notify([1], "Bare"))
    assert "no attributes" in problem


def test_a_message_cuts_a_large_value_short() -> None:
    (problem,) = problems_of(notify({"SourceID": "x" * 10**6, "Value": 1.0}))
    assert len(problem) < 300


@pytest.mark.parametrize("name", INTEGER_RANGES)
def test_an_integer_fits_within_its_range_and_not_one_beyond(name: str) -> None:
    low, high = INTEGER_RANGES[name]
    assert fits(low, ValueType(name))
    assert fits(high, ValueType(name))
    assert not fits(low - 1, ValueType(name))
    assert not fits(high + 1, ValueType(name))


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("short", True),
        ("short", 3.0),
        ("short", "3"),
        ("float", True),
        ("float", "1.5"),
        ("float", 3.5e38),
        ("float", float("inf")),
        ("double", float("nan")),
        ("double", 10**400),
        ("boolean", 1),
        ("boolean", "true"),
        ("char", ""),
        ("char", "ab"),
        ("char", 65),
        ("string", 3),
        ("string", b"bytes"),
        ("octet", "a"),
        ("timestamp", 0),
        ("timestamp", "2024-05-06"),
        ("timestamp", datetime(2024, 5, 6)),
        ("timestamp", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
        ("sequence<short>", 3),
        ("sequence<short>", "abc"),
        ("sequence<short>", {"0": 1}),
        ("sequence<short>", [1, "2"]),
        ("sequence<sequence<boolean>>", [[True], [0]]),
    ],
)
def test_a_value_that_does_not_fit_is_refused(type_name: str, value: Any) -> None:
    type_ = ValueType.of(type_name)
    assert not fits(value, type_)
    with pytest.raises(ValueError, match=r"needed|RFC 3339"):
        conform_value(value, type_)


def test_a_float_keeps_all_digits_of_its_double() -> None:
    assert conform_value(3.1, ValueType("float")) == 3.1


def test_the_largest_float_fits_as_people_write_it() -> None:
    assert fits(3.4028235e38, ValueType("float"))
    assert fits(-3.4028234663852886e38, ValueType("float"))


def test_a_character_outside_the_basic_plane_is_one_character() -> None:
    assert fits("\U0001f600", ValueType("char"))


@pytest.mark.parametrize(
    "value",
    [
        "2024-05-06T09:08:09.5+02:00",
        datetime(2024, 5, 6, 9, 8, 9, 500_000, timezone(timedelta(hours=2))),
        datetime(2024, 5, 6, 7, 8, 9, 500_000, UTC),
    ],
)
def test_a_timestamp_is_held_as_a_datetime_in_utc(value: Any) -> None:
    held = conform_value(value, ValueType("timestamp"))
    assert held == datetime(2024, 5, 6, 7, 8, 9, 500_000, UTC)
    assert held.tzinfo is UTC


def test_a_sequence_is_brought_to_normal_form_element_by_element() -> None:
    type_ = ValueType.of("sequence<sequence<double>>")
    assert exactly(conform_value(((1, None), [2.5]), type_)) == exactly([[1.0, None], [2.5]])


def test_a_misfit_in_a_sequence_is_named_by_its_place() -> None:
    with pytest.raises(ValueError, match="at place 1, at place 0, "):
        conform_value([[True], [0]], ValueType.of("sequence<sequence<boolean>>"))


@given(st.data())
def test_a_value_in_normal_form_is_not_touched(data: st.DataObject) -> None:
    type_ = data.draw(value_types)
    value = data.draw(st.none() | values_of(type_))
    assert conform_value(value, type_) is value


@given(value_types, json_values)
def test_bringing_a_value_to_normal_form_twice_is_as_good_as_once(
    type_: ValueType, value: Any
) -> None:
    if fits(value, type_):
        once = conform_value(value, type_)
        assert conform_value(once, type_) is once


@given(json_values)
def test_no_data_raises_anything_but_an_event_error(data: Any) -> None:
    types = types_from(T={"a": "short", "b": "sequence<timestamp>"})
    with suppress(EventError):
        conform(Event("1", "test", "T", 0, data), types)


@pytest.mark.parametrize("engine", ["reference", "step", "batch"])
def test_a_real_beyond_the_exact_ones_is_no_whole_number(engine: str) -> None:
    """9007199254740993 is written as a double, which holds 9007199254740992: refused."""
    library = ensue.parse(
        "eventtype A { attribute long long n; };"
        " A correlation R (A a) a { case true: push new A { n = a.n }; }"
    )

    def made(number: float) -> list[object]:
        event = {"id": "1", "source": "s", "type": "A", "time": "2024-01-01T00:00:00Z"}
        outputs = library.start(engine).push({**event, "data": {"n": number}})
        return [each.data["n"] for each in outputs]

    assert made(9007199254740991.0) == [2**53 - 1]
    assert made(9007199254740993) == [2**53 + 1]
    for number in (9007199254740993.0, -1e18, 1e300):
        with pytest.raises(EventError):
            made(number)

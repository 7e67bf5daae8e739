"""Events that come again are known, for as long as at least so many others have not come since."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ensue.events.event import Event
from ensue.server.station.record.known import KnownIdentities


def event(number: int, **more: Any) -> Event:
    return Event.of("A", time=number, id=str(number), **more)


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 8))
def test_the_latest_are_known_and_what_never_came_is_new(numbers: list[int], count: int) -> None:
    known = KnownIdentities(count)
    taken: list[int] = []
    for number in numbers:
        is_new = known.is_new(event(number))
        if number not in taken:
            assert is_new
        if number in taken[-count:]:
            assert not is_new
        if is_new:
            taken.append(number)


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=12), max_size=12),
    st.integers(1, 8),
    st.sampled_from([{}, {"phase": "start"}, {"source": "s" * 500}, {"subject": "x"}]),
)
def test_many_at_once_are_seen_as_one_by_one_is(
    batches: list[list[int]], count: int, more: dict[str, Any]
) -> None:
    at_once, in_turn = KnownIdentities(count), KnownIdentities(count)
    for numbers in batches:
        events = [event(number, **(more if number % 3 == 0 else {})) for number in numbers]
        assert at_once.are_new(events) == [in_turn.is_new(each) for each in events]


def test_an_event_that_came_without_a_time_is_known_by_its_id() -> None:
    known = KnownIdentities(10)
    first, later = event(1), Event.of("A", time=2, id="1")

    assert known.are_new([first], {0}) == [True]
    assert known.are_new([later, event(3)], {0}) == [False, True]
    # One of the sender's own time is another.
    assert known.is_new(later)
    assert not known.is_new(Event.of("A", time=9, id="1"), is_stamped=True)


def test_halves_of_an_interval_and_other_sources_are_others() -> None:
    known = KnownIdentities(10)

    assert known.is_new(event(1, phase="start"))
    assert known.is_new(event(1, phase="end"))
    assert known.is_new(event(1, source="elsewhere"))
    assert not known.is_new(event(1, phase="end"))
    known.clear()
    assert known.is_new(event(1, phase="end"))

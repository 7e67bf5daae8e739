"""Events that come again are known, for as long as at least so many others have not come since."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ensue.events.event import Event
from ensue.server.station.record.known import Known


def event(number: int, **more: Any) -> Event:
    return Event.of("A", time=number, id=str(number), **more)


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 8))
def test_the_latest_are_known_and_what_never_came_is_new(numbers: list[int], count: int) -> None:
    known = Known(count)
    taken: list[int] = []
    for number in numbers:
        is_new = known.is_new(event(number))
        if number not in taken:
            assert is_new
        if number in taken[-count:]:
            assert not is_new
        if is_new:
            taken.append(number)


def test_halves_of_an_interval_and_other_sources_are_others() -> None:
    known = Known(10)

    assert known.is_new(event(1, phase="start"))
    assert known.is_new(event(1, phase="end"))
    assert known.is_new(event(1, source="elsewhere"))
    assert not known.is_new(event(1, phase="end"))
    known.clear()
    assert known.is_new(event(1, phase="end"))

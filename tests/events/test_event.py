"""An event as a value: how it is made, shown and sent on."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from ensue.errors import EventError
from ensue.events.event import Event, Rejected

from .vocabulary import events


@pytest.mark.parametrize(
    "time", [1_500_000, "1970-01-01T00:00:01.5Z", datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)]
)
def test_a_time_may_be_given_in_three_ways(time: Any) -> None:
    assert Event.of("A", time=time).time == 1_500_000


@pytest.mark.parametrize("time", [True, 1.5, None, datetime(2024, 1, 1), "yesterday", 10**30])
def test_what_is_no_time_is_refused(time: Any) -> None:
    with pytest.raises(ValueError, match=r"time|years"):
        Event.of("A", time=time)


def test_an_event_without_an_id_gets_a_fresh_one() -> None:
    first, second = Event.of("A", time=0), Event.of("A", time=0)
    assert first.id
    assert first.id != second.id


def test_keywords_become_extensions_and_none_is_left_out() -> None:
    event = Event.of("A", time=0, subject="door", partitionkey=None, hops=3)
    assert event.extensions == {"subject": "door", "hops": 3}


def test_a_member_with_a_place_of_its_own_is_no_extension() -> None:
    with pytest.raises(ValueError, match="`specversion` is no extension"):
        Event.of("A", time=0, specversion="1.0")


def test_an_event_shows_its_time_as_people_write_it() -> None:
    event = Event.of("Alarm", time=1_500_000, id="1", source="s", data={"x": 1}, subject="door")
    assert repr(event) == (
        "Event(type='Alarm', time=1970-01-01T00:00:01.5Z, id='1', source='s', data={'x': 1},"
        " subject='door')"
    )


def test_an_event_shows_itself_even_at_a_time_beyond_the_calendar() -> None:
    assert "us" in repr(Event("1", "s", "A", 10**30))


def test_what_an_event_holds_cannot_break_the_notebook() -> None:
    shown = Event.of("<script>", time=0, data={"x": "<b>"})._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown


@pytest.mark.parametrize("data", [None, 3, "text", [1]])
def test_data_that_is_no_mapping_has_no_attributes(data: Any) -> None:
    assert Event("1", "s", "A", 0, data).attributes == {}


@given(events)
def test_an_event_survives_pickling(event: Event) -> None:
    assert pickle.loads(pickle.dumps(event)) == event


def test_what_was_rejected_and_why_survives_pickling() -> None:
    rejected = Rejected(3, b"{", ("no JSON",))
    error = EventError(["one", "two"])
    assert pickle.loads(pickle.dumps(rejected)) == rejected
    assert pickle.loads(pickle.dumps(error)).problems == ("one", "two")


def test_importing_the_room_does_not_load_pyarrow() -> None:
    code = "import sys, ensue.events.records.reading; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_mapping_of_extensions_is_answered_with_their_names() -> None:
    """It would become an extension that is called `extensions`."""
    with pytest.raises(ValueError, match=r"Event\.of\('A', \.\.\., tenant='x', level=3\)"):
        Event.of("A", time=0, extensions={"tenant": "x", "level": 3})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Event\.of\('A', \.\.\., tenant=\.\.\.\)"):
        Event.of("A", time=0, extensions={})  # type: ignore[arg-type]

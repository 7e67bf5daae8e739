"""Publications: their intervals, their halves, and what contradicts itself."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest

from ensue.errors import EventError
from ensue.events.event import Event
from ensue.history import History


def publication(number: int, second: int, **members: Any) -> dict[str, Any]:
    return {
        "id": f"e{number}",
        "source": "test",
        "type": "Reading",
        "time": f"2024-01-01T00:00:{second:02}Z",
        **members,
    }


def test_an_interval_is_open_until_its_end_comes(url: str) -> None:
    x = publication(9, 20)
    with History.open(url) as history:
        history.add(publication(1, 5, phase="start", data={"level": 1, "door": "north"}))
        assert history.matches("start DURING (door = 'north')", x)
        assert not history.matches("start AFTER(1 h) (door = 'north')", x)

        history.add(publication(1, 10, phase="end", data={"level": 2}))
        assert not history.matches("start DURING (door = 'north')", x)
        assert history.matches("start AFTER(10 s) (door = 'north' AND level = 2)", x)
        assert not history.matches("start AFTER(10 s) (level = 1)", x)

        (joined,) = history.find("TRUE")
        assert joined.data == {"level": 2, "door": "north"}
        assert joined.extensions == {"endtime": "2024-01-01T00:00:10Z"}
        assert len(history) == 1


def test_the_halves_of_an_interval_make_the_same_in_any_order_and_number(url: str) -> None:
    start = publication(1, 5, phase="start", data={"a": 1, "b": 1})
    end = publication(1, 10, phase="end", data={"b": 2})
    expected = None
    for order in permutations((start, end, start, end)):
        number = order.index(start), order.index(end), len(order)
        with History.open(url) as history:
            history.add_all(dict(each, source=f"{number}") for each in order)
            (found,) = history.find(f"source = '{number}'")
        shape = (found.time, found.data, dict(found.extensions))
        expected = expected or shape
        assert shape == expected
    assert expected is not None
    assert expected[1] == {"a": 1, "b": 2}


def test_an_end_is_asked_as_the_whole_interval_that_it_closes(url: str) -> None:
    with History.open(url) as history:
        history.add(publication(1, 2, data={"kind": "alarm"}))
        history.add(publication(2, 5, phase="start", data={"door": "north"}))
        end = publication(2, 30, phase="end")

        assert history.matches("door = 'north' AND start AFTER(5 s) (kind = 'alarm')", end)
        assert not history.matches("end AFTER(5 s) (kind = 'alarm')", end)


def test_a_reference_that_is_missing_never_matches_not_even_denied(url: str) -> None:
    x = publication(9, 20, phase="start")
    with History.open(url) as history:
        history.add(publication(1, 5))
        for text in ("end AFTER (TRUE)", "OVERLAPS (TRUE)", "nothing FILTER(=) (TRUE)"):
            assert not history.matches(text, x)
            assert not history.matches(f"NOT {text}", x)
        assert history.matches("AFTER (TRUE)", x)


def test_a_publication_is_never_compared_with_itself(url: str) -> None:
    x = publication(1, 5, data={"n": 1})
    with History.open(url) as history:
        history.add(x)
        assert not history.matches("start DURING (TRUE)", x)
        assert not history.matches("n FILTER(=, 1) (TRUE)", x)
        assert history.find("start DURING (TRUE)") == []

        history.add(publication(2, 5, data={"n": 1}))
        assert history.matches("n FILTER(=, 1) (TRUE)", x)
        assert [each.id for each in history.find("start DURING (TRUE)")] == ["e1", "e2"]


def test_the_same_source_and_id_again_take_the_place_of_what_was_there(url: str) -> None:
    with History.open(url) as history:
        history.add(publication(1, 5, data={"n": 1}))
        history.add(publication(1, 6, data={"m": 2}))

        (found,) = history.find("TRUE")
        assert found.data == {"m": 2}
        assert history.find("n = 1") == []
        assert history.find("m = 2", since="2024-01-01T00:00:06Z") == [found]


def test_what_has_changed_is_asked_anew(url: str) -> None:
    """FILTER remembers the latest matches of its filter; a change must reach them."""
    x = publication(9, 20, data={"n": 5})
    with History.open(url) as history:
        history.add_all(publication(number, 5, data={"n": number}) for number in range(1, 5))
        assert not history.matches("n FILTER(=, 3) (n < 10)", x)
        history.add(publication(3, 5, data={"n": 5}))
        assert history.matches("n FILTER(=, 3) (n < 10)", x)
        history.add(publication(3, 5, data={"n": 50}))
        assert not history.matches("n FILTER(=, 3) (n < 10)", x)
        assert not history.matches("n FILTER(=, 3) (n < 5)", x)


def test_two_that_hold_one_history_see_what_the_other_writes(lasting_url: str) -> None:
    x = publication(9, 20, data={"n": 5})
    with History.open(lasting_url) as one, History.open(lasting_url) as other:
        for number in range(1, 4):
            assert not one.matches(f"n FILTER(=, 2) (m = {number})", x)
            other.add(publication(number, 5, data={"n": 5, "m": number}))
            assert one.matches(f"n FILTER(=, 2) (m = {number})", x)
            assert one.matches(f"start AFTER(1 min) (m = {number})", x)
        other.add(publication(1, 5, data={"n": 6, "m": 1}))
        assert not one.matches("n FILTER(=, 2) (m = 1)", x)
        assert len(one) == 3


def test_times_in_data_are_kept_as_text(url: str) -> None:
    when = datetime(2024, 5, 6, tzinfo=UTC)
    with History.open(url) as history:
        history.add(Event.of("T", time=0, id="1", data={"due": when, "all": (1, 2)}))
        (found,) = history.find("due = '2024-05-06T00:00:00Z'")
        assert found.data == {"due": "2024-05-06T00:00:00Z", "all": [1, 2]}
        assert history.find("due > 2024-05-05T00:00:00Z") == [found]


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"endtime": "2024-01-01T00:00:01Z"}, "before it starts"),
        ({"endtime": "yesterday"}, "`endtime`"),
        ({"endtime": 5}, "`endtime`"),
        ({"phase": "middle"}, "`start`, `end` or `instant`"),
        ({"phase": "start", "endtime": "2024-01-01T00:00:09Z"}, "no end yet"),
        ({"phase": "end", "endtime": "2024-01-01T00:00:09Z"}, "`time` is the end"),
        ({"timeuntil": "2024-01-01T00:00:01Z"}, "`timeuntil` lies before"),
        ({"endtimeuntil": "2024-01-01T00:00:09Z"}, "without `endtime`"),
        (
            {"endtime": "2024-01-01T00:00:09Z", "endtimeuntil": "2024-01-01T00:00:08Z"},
            "`endtimeuntil` lies before",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(members: dict[str, Any], problem: str) -> None:
    with History.open("memory:") as history, pytest.raises(EventError, match=problem):
        history.add(publication(1, 5, **members))


def test_those_before_a_refused_event_are_kept(url: str) -> None:
    with History.open(url) as history:
        history.add(publication(7, 8, phase="start"))
        for bad in (publication(2, 5, phase="x"), publication(7, 3, phase="end"), {"id": "e"}):
            with pytest.raises(EventError):
                history.add_all([publication(1, 5), bad, publication(3, 5)])
            assert [each.id for each in history.find()] == ["e1", "e7"]


def test_a_span_begins_with_since_and_ends_before_until(url: str) -> None:
    with History.open(url) as history:
        history.add_all(publication(number, number) for number in (5, 3, 4, 1, 2))
        since, until = "2024-01-01T00:00:02Z", "2024-01-01T00:00:05Z"

        assert [each.id for each in history.find(since=since, until=until)] == ["e2", "e3", "e4"]
        assert [each.id for each in history.find("TRUE", since, until, limit=2)] == ["e2", "e3"]
        assert [each.id for each in history.find("type = 'Reading'", until=since)] == ["e1"]


def test_a_replay_gives_the_events_as_they_came_in_the_order_of_time(url: str) -> None:
    came = [
        publication(1, 5, phase="start", data={"a": 1}),
        publication(2, 6),
        publication(3, 7, phase="start"),
        publication(3, 7, phase="end"),
        publication(1, 9, phase="end", data={"a": 2}),
        publication(4, 9, endtime="2024-01-01T00:00:20Z"),
        publication(5, 30, phase="start"),
    ]
    with History.open(url) as history:
        history.add_all(came)
        replayed = [(each.id, each.extensions.get("phase"), each.data) for each in history.replay()]
        assert replayed == [(each["id"], each.get("phase"), each.get("data")) for each in came]
        late = history.replay("2024-01-01T00:00:07Z", "2024-01-01T00:00:09Z")
        assert [each.id for each in late] == ["e3", "e3"]

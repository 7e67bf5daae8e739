"""Publications as bytes: whatever was added is found again as it was."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.engine.inputs import EventLike
from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import decode, encode
from ensue.events.event import Event
from ensue.history import History
from ensue.history.bodies import body_of, event_in, halves_in, kept_publication
from ensue.history.publication import joined
from tests.history.test_publications import publication

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**66), 2**66)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS
)
_DATA = st.recursive(
    _SCALARS | st.datetimes(timezones=st.timezones()).filter(lambda each: 2 < each.year < 9998),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(_DATA, st.dictionaries(st.sampled_from(["subject", "rank", "id", "data"]), _TEXTS))
def test_an_event_comes_back_as_json_gives_it(data: Any, extensions: dict[str, str]) -> None:
    event = Event("e", "tests", "Some", 1_700_000_000_000_000, data, extensions)

    kept = kept_publication(event)

    assert kept.event == decode(encode(event))
    assert event_in(body_of(kept)) == kept.event


@given(_DATA, _DATA)
def test_both_halves_of_an_interval_come_back(first: Any, second: Any) -> None:
    opening = kept_publication(Event("e", "tests", "Some", 5, first, {"phase": "start"}))
    closing = kept_publication(Event("e", "tests", "Some", 9, second, {"phase": "end"}))

    body = body_of(joined(opening, closing))

    assert halves_in(body) == (opening.event, closing.event)
    assert event_in(body).time == 5


def test_data_of_bytes_come_back_as_bytes(tmp_path: Path) -> None:
    event = Event("e", "tests", "Some", 5, b"\x00\xff", {"datacontenttype": "image/png"})
    with History.open(f"sqlite:{tmp_path / 'history.db'}") as history:
        history.add(event)

        assert history.find() == [event]


@pytest.mark.parametrize("data", ["\ud800", {"n": {"m": ["\udc00"]}}, {"a": object()}])
def test_what_json_cannot_say_is_refused_and_the_rest_is_kept(data: Any, url: str) -> None:
    refused: list[str] = []
    bad = Event("bad", "tests", "Some", 5, data)
    batch: list[EventLike] = [publication(1, 1), bad, publication(2, 2)]
    with History.open(url) as history:
        kept = history.add_all(batch, on_refused=lambda _, error: refused.append(str(error)))

        assert kept == 2
        assert [each.id for each in history.find()] == ["e1", "e2"]
        assert "`bad` cannot be written as JSON" in refused[0]
        with pytest.raises(EventError, match="cannot be written as JSON"):
            history.add(bad)


@pytest.mark.parametrize("number", [1, 2, 99])
def test_a_history_of_another_format_is_refused_and_left_as_it_is(
    number: int, tmp_path: Path
) -> None:
    path = tmp_path / "history.db"
    History.open(f"sqlite:{path}").close()
    file = sqlite3.connect(path)
    file.execute("UPDATE ensue_state SET format = ?", (number,))
    file.execute("DROP TABLE ensue_events")
    file.commit()

    with pytest.raises(UsageError, match=f"is of format {number}, .* begin a new history"):
        History.open(f"sqlite:{path}")

    tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
    assert "ensue_events" not in tables
    file.close()

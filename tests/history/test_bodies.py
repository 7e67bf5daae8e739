"""Publications as bytes: whatever was added is found again as it was, and older forms are read."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.engine.inputs import EventLike, as_event
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


OLD_TABLES = """
CREATE TABLE ensue_publications (
    seq INTEGER NOT NULL PRIMARY KEY, identity BLOB NOT NULL UNIQUE, start BIGINT NOT NULL,
    start_until BIGINT NOT NULL, finish BIGINT NOT NULL, finish_until BIGINT NOT NULL,
    span SMALLINT NOT NULL, body BLOB NOT NULL
);
CREATE INDEX ensue_publications_start ON ensue_publications (start);
CREATE TABLE ensue_postings (
    entry BLOB NOT NULL, seq BIGINT NOT NULL, PRIMARY KEY (entry, seq)
) WITHOUT ROWID;
INSERT INTO ensue_publications SELECT * FROM ensue_events;
DROP TABLE ensue_events;
DROP TABLE ensue_entries;
DROP TABLE ensue_identities;
DROP TABLE ensue_recent;
"""
"""Turns a history into one of formats 1 and 2."""


@pytest.mark.parametrize("number", [1, 2])
def test_a_history_of_an_older_format_is_read_and_written(number: int, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    events = [publication(each, each, data={"n": each}) for each in range(3)]
    events.append(publication(9, 9, data={"n": 9}, phase="start"))
    with History.open(f"sqlite:{path}") as history:
        history.add_all(events)
    file = sqlite3.connect(path)
    if number == 1:
        for seq, event in enumerate(events[:3], 1):
            text = encode(as_event(event))
            file.execute("UPDATE ensue_events SET body = ? WHERE seq = ?", (text, seq))
    file.executescript(OLD_TABLES)
    file.execute("UPDATE ensue_state SET format = ?", (number,))
    file.commit()
    file.close()
    with History.open(f"sqlite:{path}") as history:
        history.add(publication(3, 3, data={"n": 3}))
        history.add(publication(2, 2, data={"n": -2}))
        history.add(publication(9, 12, phase="end"))

        assert [each.id for each in history.find("n > 0")] == ["e1", "e3", "e9"]
        assert history.find("n = 9")[0].extensions["endtime"] == "2024-01-01T00:00:12Z"
        assert [each.id for each in history.find("n < 0")] == ["e2"]
        assert len(history) == 5
    with sqlite3.connect(path) as file:
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
        assert "ensue_publications" not in tables


def test_a_history_of_a_later_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    History.open(f"sqlite:{path}").close()
    file = sqlite3.connect(path)
    file.execute("UPDATE ensue_state SET format = 99")
    file.commit()

    with pytest.raises(UsageError, match="format 99"):
        History.open(f"sqlite:{path}")

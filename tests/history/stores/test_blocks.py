"""Postings in blocks, and publications in columns: the same history as one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import EventError
from ensue.events.event import Event
from ensue.history import History
from ensue.history.postings import entries_of, keys_of
from ensue.history.stores import blocks
from ensue.history.stores.grouping import rows_of_alike
from ensue.history.stores.identities import Sizes
from ensue.history.stores.sql import SqlStore
from ensue.history.stores.sqlite import sqlite_engine

NUMBERS = st.lists(st.integers(1, 2**40), min_size=1, max_size=600, unique=True).map(sorted)
DENSE = st.lists(st.integers(1, 3_000), min_size=1, max_size=900, unique=True).map(sorted)
VALUES = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["5", "TRUE", "a", "x" * 99])
)
DATA = st.dictionaries(st.sampled_from(["n", "type", "deep", "N" * 130, "N" * 131]), VALUES)


@given(st.one_of(NUMBERS, DENSE), st.data())
def test_a_block_gives_back_what_was_put_into_it(numbers: list[int], data: st.DataObject) -> None:
    rows = list(blocks.rows_of({b"k": numbers}))
    found = [each for _, last, earlier in rows for each in blocks.numbers_in(last, earlier)[::-1]]
    gone = set(data.draw(st.lists(st.sampled_from(numbers))))
    left = [
        rest
        for _, last, earlier in rows
        if (rest := blocks.without(last, earlier, gone)) is not None
    ]

    assert found == numbers
    assert all(len(earlier) <= blocks.LONGEST for _, _, earlier in rows)
    assert all(last - min(blocks.numbers_in(last, each)) < blocks.REACH for _, last, each in rows)
    assert blocks.numbers_of(left) == set(numbers) - gone


@given(st.lists(DATA | st.just({"deep": {"n": [1]}}) | st.text(max_size=2), max_size=20))
def test_keys_of_many_are_the_keys_of_each(data: list[Any]) -> None:
    events = [Event(str(number), "s", "T", number, each) for number, each in enumerate(data)]
    expected: dict[bytes, list[int]] = {}
    for number, event in enumerate(events, 7):
        for key in keys_of(event):
            expected.setdefault(key, []).append(number)

    assert entries_of(events, 7) == expected


PLAIN = st.sampled_from(["n", "type", "N" * 130, "N" * 131])


@given(st.lists(PLAIN, unique=True), st.data())
def test_rows_of_events_that_are_alike_are_those_of_each(
    names: list[str], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.tuples(*[VALUES for _ in names]), min_size=1, max_size=40))
    events = [
        Event(str(number), "s" * (1 + number % 2), "T", number, dict(zip(names, each, strict=True)))
        for number, each in enumerate(rows)
    ]
    found = rows_of_alike(events, 7)

    assert found is None or found == list(blocks.rows_of(entries_of(events, 7)))


def test_long_blocks_of_events_that_are_alike_are_cut() -> None:
    events = [Event(str(n), "s", "T", n, {"n": n % 3, "u": f"{n}"}) for n in range(16_000)]
    assert rows_of_alike(events, 1) == list(blocks.rows_of(entries_of(events, 1)))
    assert rows_of_alike([*events, *events], 1) is None
    assert rows_of_alike([*events, Event("x", "s", "T", 1, {"m": 1})], 1) is None


def _events(count: int) -> list[Event]:
    return [
        Event(f"e{n}", "s", "T", 1_000 * n, {"n": n % 7, "even": n % 2 == 0, "own": n})
        for n in range(count)
    ]


def _fail(_: object, error: EventError) -> None:
    raise AssertionError(error)


def test_events_kept_in_columns_are_found_like_others(address: Callable[[str], str]) -> None:
    events = _events(700)
    asked = ("n = 3", "n = 3 AND even = TRUE", "own > 690", "n > 4 OR own = 5", "own = 699")
    with History.open("memory:") as expected, History.open(address("sqlite")) as history:
        expected.add_all(events)
        history.add_read(events, _fail)

        for text in asked:
            assert history.find(text) == expected.find(text), text
        x = Event("x", "s", "T", 1_000 * 700, {"n": 3})
        for text in ("start AFTER(1 s) (own = 10)", "n FILTER(=, 3) (even = TRUE)"):
            assert history.matches(text, x) == expected.matches(text, x), text
        assert history.find() == events


@pytest.mark.parametrize("store", ["memory", "sqlite", "parquet"])
def test_what_comes_again_in_columns_takes_the_place_of_the_first(
    store: str, address: Callable[[str], str]
) -> None:
    again = Event("e5", "s", "T", 9_000_000, {"n": 100})
    end = Event("e6", "s", "T", 9_000_001, {"n": 100}, {"phase": "end"})
    with History.open(address(store)) as history:
        history.add_read(_events(20), _fail)
        history.add_read([*_events(10), again, end], _fail)

        assert len(history) == 20
        assert [each.id for each in history.find("n = 100")] == ["e5", "e6"]
        assert [each.id for each in history.find("own = 5")] == []


def test_an_identity_is_known_also_when_it_has_moved(tmp_path: Path) -> None:
    store = SqlStore(sqlite_engine(str(tmp_path / "h.db")), Sizes(recent=50))
    with History(store, max_count=90) as history:
        for begin in range(0, 120, 10):
            history.add_read(_events(120)[begin : begin + 10], _fail)
        history.add_read([Event("e40", "s", "T", 9_000_000, {"n": 100})], _fail)
        history.add_read([Event("e5", "s", "T", 9_000_001, {"n": 100})], _fail)

        assert len(history) == 90
        assert [each.id for each in history.find("n = 100")] == ["e40", "e5"]
        assert len(history.find("own >= 0")) == 88


def test_what_is_given_up_leaves_the_index_too(address: Callable[[str], str]) -> None:
    with History.open(address("sqlite"), max_count=300) as history:
        history.add_read(_events(2_000), _fail)

        store = history._store
        with store.reading():
            left = store._open.exec_driver_sql("SELECT seq, earlier FROM ensue_entries").fetchall()  # type: ignore[attr-defined]
            identities = store._open.exec_driver_sql("SELECT seq FROM ensue_recent").fetchall()  # type: ignore[attr-defined]
        assert len(identities) == 300
        # A block that reaches over the edge is left until its end has gone.
        assert min(last for last, _ in left) > 1_700
        assert [each.data["own"] for each in history.find("n = 0")] == list(range(1_701, 2_000, 7))

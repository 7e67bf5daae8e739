"""Identities: what is known is found however it was written; what is new is hardly asked for."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event as listening

from ensue.errors import HistoryError
from ensue.events.event import Event
from ensue.history import History
from ensue.history.stores.identities import Sieve, Sizes
from ensue.history.stores.sql import SqlStore
from ensue.history.stores.sqlite import sqlite_engine

SMALL = Sizes(fewest=1, recent=10, smallest=64, page=3)
"""A sieve is used from the first event on, moved often, and soon full."""


def small(folder: str | Path, max_count: int | None = None, sizes: Sizes = SMALL) -> History:
    return History(SqlStore(sqlite_engine(f"{folder}/h.db"), sizes), max_count=max_count)


def events(numbers: Sequence[int], value: int) -> list[Event]:
    return [Event(f"e{each}", "s", "T", 1_000 * each, {"v": value}) for each in numbers]


def refuse(_: object, error: Exception) -> None:
    raise AssertionError(error)


def held(history: History) -> dict[str, int]:
    found = history.find()
    assert len({each.id for each in found}) == len(found) == len(history)
    return {each.id: each.data["v"] for each in found}


def fail_behind(history: History, given_now: list[Event]) -> None:
    with history.together():
        history.add_read(given_now, refuse)
        raise ZeroDivisionError


BATCHES = st.lists(
    st.tuples(st.booleans(), st.sampled_from(["columns", "rows", "fails"]),
              st.lists(st.integers(0, 60), max_size=15, unique=True)),
    max_size=12,
)  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(BATCHES)
def test_two_writers_keep_each_publication_once(batches: list[tuple[bool, str, list[int]]]) -> None:
    expected: dict[str, int] = {}
    with (
        TemporaryDirectory() as folder,
        small(folder) as one,
        small(folder) as other,
    ):
        for value, (is_one, how, numbers) in enumerate(batches):
            history = one if is_one else other
            given_now = events(numbers, value)
            if how == "fails":
                with pytest.raises(ZeroDivisionError):
                    fail_behind(history, given_now)
                continue
            if how == "columns":
                history.add_read(given_now, refuse)
            else:
                history.add_all(given_now)
            expected |= {each.id: value for each in given_now}

        assert held(one) == held(other) == expected


def test_what_was_given_up_may_come_again(tmp_path: Path) -> None:
    with small(tmp_path, max_count=20) as history:
        for begin in range(0, 100, 10):
            history.add_read(events(range(begin, begin + 10), 1), refuse)
        history.add_read(events(range(10), 2), refuse)

        assert held(history) == {
            **{f"e{each}": 1 for each in range(90, 100)},
            **{f"e{each}": 2 for each in range(10)},
        }


def test_new_publications_are_not_asked_for(tmp_path: Path) -> None:
    asked: list[str] = []
    with small(tmp_path, sizes=replace(SMALL, smallest=1 << 20)) as history:
        history.add_read(events(range(1_000), 1), refuse)
        engine: Any = history._store._engine  # type: ignore[attr-defined]

        def note(*given: Any) -> None:
            asked.append(given[2])

        listening.listen(engine, "before_cursor_execute", note)
        history.add_read(events(range(1_000, 2_000), 1), refuse)

        assert [each for each in asked if "half IN" in each] == []
        history.add_read(events([5, 2_001], 2), refuse)

        assert [each for each in asked if "half IN" in each] != []
        assert held(history)["e5"] == 2


def test_a_failed_write_is_forgotten(tmp_path: Path) -> None:
    with small(tmp_path) as history, sqlite3.connect(f"{tmp_path}/h.db") as beside:
        history.add_read(events(range(30), 1), refuse)
        beside.execute(
            "CREATE TRIGGER broken BEFORE INSERT ON ensue_entries"
            " BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
        beside.commit()
        with pytest.raises(HistoryError, match="full"):
            history.add_read(events(range(30, 60), 2), refuse)
        beside.execute("DROP TRIGGER broken")
        beside.commit()
        history.add_read(events(range(20, 60), 3), refuse)

        assert held(history) == {f"e{each}": 1 if each < 20 else 3 for each in range(60)}


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=200), st.integers(0, 50))
def test_a_sieve_never_finds_too_little(numbers: list[int], room: int) -> None:
    sieve = Sieve(room, smallest=64)
    halves = np.array(numbers, np.int64)
    sieve.add(halves[::2])

    assert sieve.may_hold(halves[::2]).all()


def test_a_sieve_that_is_not_full_finds_hardly_too_much() -> None:
    generator = np.random.default_rng(7)
    halves = generator.integers(-(2**63), 2**63 - 1, 400_000, dtype=np.int64)
    sieve = Sieve(100_000, smallest=64)
    sieve.add(halves[:200_000])

    assert not sieve.is_full
    assert sieve.may_hold(halves[200_000:]).mean() < 0.01

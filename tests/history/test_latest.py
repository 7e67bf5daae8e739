"""What is stored, from the latest back to the earliest, and gone on with from any place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from ensue.history import History
from ensue.history.asking.newest import Place

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


def event(name: str, second: int, **members: Any) -> dict[str, Any]:
    time = (BEGIN + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")
    return {"id": name, "source": "test", "type": "Reading", "time": time, **members}


def paged(history: History, size: int, **wanted: Any) -> list[str]:
    """The ids of all that is wanted, asked for so many publications at a time."""
    found: list[str] = []
    after: Place | None = None
    while page := list(islice(history.latest(after=after, **wanted), size)):
        found += [each.event.id for each in page if each.event is not None]
        after = page[-1].place
    return found


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_every_publication_comes_once_whatever_the_pages(url: str, size: int) -> None:
    seconds = [5, 3, 3, 9, 3, 0, 9, 7]
    with History.open(url) as history:
        history.add_all(event(f"e{n}", second) for n, second in enumerate(seconds))

        # By time, and of one time by arrival, the latest first.
        assert paged(history, size) == ["e6", "e3", "e7", "e0", "e4", "e2", "e1", "e5"]


def test_a_span_a_filter_and_a_text_are_taken_together(url: str) -> None:
    with History.open(url) as history:
        history.add_all(
            event(f"e{n}", n, data={"room": "Küche" if n % 2 else "cellar", "level": n % 4})
            for n in range(12)
        )
        since, until = (BEGIN + timedelta(seconds=each) for each in (2, 10))

        assert paged(history, 5, filter="level = 3") == ["e11", "e7", "e3"]
        assert paged(history, 5, text="KÜCHE", since=since, until=until) == ["e9", "e7", "e5", "e3"]
        assert paged(history, 5, text="küche", filter="level = 1", until=until) == [
            "e9",
            "e5",
            "e1",
        ]
        assert paged(history, 5, text='"room": nothing') == []


def test_an_interval_counts_by_its_end_and_an_open_one_by_its_start(url: str) -> None:
    with History.open(url) as history:
        history.add(event("open", 4, phase="start"))
        history.add(event("long", 1, phase="start"))
        history.add(event("long", 8, phase="end"))
        history.add_all([event("a", 2), event("b", 6)])
        history.add(event("old", -(10**9), phase="start"))

        assert paged(history, 2) == ["long", "b", "open", "a", "old"]
        assert paged(history, 2, until=BEGIN + timedelta(seconds=5)) == ["open", "a", "old"]
        assert paged(history, 2, filter="type = 'Reading'", since=BEGIN) == [
            "long", "b", "open", "a"
        ]  # fmt: skip


def test_an_index_that_finds_few_and_the_pages_of_all_agree(url: str) -> None:
    with History.open(url) as history:
        history.add_all(
            event(f"e{n}", n // 3, data={"name": "rare" if n % 500 == 0 else f"n{n}"})
            for n in range(2_500)
        )

        assert paged(history, 700, filter="name = 'rare'") == [
            "e2000", "e1500", "e1000", "e500", "e0"
        ]  # fmt: skip
        assert paged(history, 700, filter="name LIKE '%are'") == [
            "e2000", "e1500", "e1000", "e500", "e0"
        ]  # fmt: skip

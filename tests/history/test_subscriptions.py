"""Temporal filters among the subscriptions of an index."""

from __future__ import annotations

from random import Random

import pytest

from ensue.history import History
from ensue.subscriptions import Filter, Index
from tests.history.generator import Generator


@pytest.mark.parametrize("seed", range(6))
def test_an_index_with_a_history_matches_what_the_history_does(seed: int) -> None:
    made = Generator(Random(5000 + seed))
    filters = {f"s{number}": Filter.parse(made.filter(depth=2)) for number in range(30)}
    with History.open("memory:") as history:
        index = Index(history=history)
        for name, each in filters.items():
            index.add(name, each)
        matched = 0
        for number in range(25):
            event = made.event(number)
            expected = [name for name, each in filters.items() if history.matches(each, event)]
            assert list(index.match(event)) == expected
            matched += len(expected)
            history.add(event)
        assert matched > 20


def test_a_filter_asks_a_history_that_it_is_given() -> None:
    wanted = Filter.parse("start AFTER(10 s) (level = 'error')")
    error = {"id": "1", "source": "s", "type": "T", "time": "2024-05-06T07:00:00Z"}
    now = {**error, "id": "2", "time": "2024-05-06T07:00:05Z"}
    with History.open("memory:") as history:
        history.add({**error, "data": {"level": "error"}})

        assert wanted.matches(now, history=history)
        assert not wanted.matches(now)

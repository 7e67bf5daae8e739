"""Backtests: what a filter or a library gives over a history is what it gave live."""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.events.event import Event
from ensue.history import History
from ensue.history.replaying import replay_library
from tests.history.generator import Generator
from tests.history.test_runs import LOGINS, _logins, _shown


def _in_time_order(made: Generator, count: int) -> list[Event]:
    """Events as they come, with the ends of some intervals apart from their starts."""
    events = []
    for number in range(count):
        event = made.event(number)
        events.append(event)
        if event.extensions.get("phase") == "start" and made.random.random() < 0.6:
            end = event.time + made.random.randrange(4)
            changed = {"a": 7}
            events.append(Event(event.id, event.source, event.type, end, changed, {"phase": "end"}))
    return sorted(events, key=lambda each: each.time)


@pytest.mark.parametrize("seed", range(2))
def test_a_filter_matches_in_a_backtest_what_it_matched_live(url: str, seed: int) -> None:
    """The hunt `backtests` plays as many seeds as there is time for."""
    with History.open(url) as history:
        compare_backtests(4000 + seed, history)


def compare_backtests(seed: int, history: History) -> int:
    """Backtests of random filters beside what they matched live; returns how many events."""
    made = Generator(Random(seed), ticks=30)
    events = _in_time_order(made, 40)
    filters = [made.filter(depth=2) for _ in range(6)]
    live: dict[str, list[tuple[str, int]]] = {text: [] for text in filters}
    for event in events:
        for text in filters:
            if history.matches(text, event):
                live[text].append((event.id, event.time))
        history.add(event)
    since = events[len(events) // 2].time
    for text in filters:
        again = [(each.id, each.time) for each in history.backtest(text)]
        late = [(each.id, each.time) for each in history.backtest(text, since=since)]

        assert sorted(again) == sorted(live[text]), text
        assert sorted(late) == sorted(each for each in live[text] if each[1] >= since), text
    return sum(map(len, live.values()))


def test_a_library_puts_out_in_a_backtest_what_it_put_out_live(url: str) -> None:
    _compare_library(url, "auto")


@pytest.mark.parametrize("engine", ["reference", "step", "batch"])
def test_a_backtest_is_the_same_on_every_engine(engine: str) -> None:
    _compare_library("memory:", engine)


def _compare_library(url: str, engine: str) -> None:
    library = ensue.parse(LOGINS)
    with History.open(url) as history:
        run = library.start(history=history)
        live = [_shown(each) for event in _logins(Random(5), 80) for each in run.push(event)]
        again = [_shown(each) for each in history.backtest(library, engine=engine)]

    assert live
    assert again == live


def test_much_is_replayed_in_a_file() -> None:
    library = ensue.parse(LOGINS)
    with History.open("memory:") as history:
        run = library.start(history=history)
        live = [_shown(each) for event in _logins(Random(6), 80) for each in run.push(event)]
        again = replay_library(history, library, None, None, held_in_memory=10)
        assert [_shown(each) for each in again] == live

"""Backtests: what a filter or a library gives over a history is what it gave live."""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.events.event import Event
from ensue.history import History, replaying
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


@pytest.mark.parametrize("seed", range(8))
def test_a_filter_matches_in_a_backtest_what_it_matched_live(url: str, seed: int) -> None:
    made = Generator(Random(4000 + seed), ticks=30)
    events = _in_time_order(made, 40)
    filters = [made.filter(depth=2) for _ in range(6)]
    live: dict[str, list[tuple[str, int]]] = {text: [] for text in filters}
    with History.open(url) as history:
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


@pytest.mark.parametrize("engine", ["auto", "reference", "step", "batch"])
def test_a_library_puts_out_in_a_backtest_what_it_put_out_live(url: str, engine: str) -> None:
    library = ensue.parse(LOGINS)
    with History.open(url) as history:
        run = library.start(history=history)
        live = [_shown(each) for event in _logins(Random(5), 80) for each in run.push(event)]
        again = [_shown(each) for each in history.backtest(library, engine=engine)]

    assert live
    assert again == live


def test_much_is_replayed_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "HELD_IN_MEMORY", 10)
    library = ensue.parse(LOGINS)
    with History.open("memory:") as history:
        run = library.start(history=history)
        live = [_shown(each) for event in _logins(Random(6), 80) for each in run.push(event)]
        assert [_shown(each) for each in history.backtest(library)] == live

"""Histories in every store answer temporal filters as the definitions do.

Every round writes the same events, singly and in batches, to a history in memory, in SQLite and in
Parquet. Before each write one filter is asked of all, surely and possibly, and compared with the
definitions (`judge`); at the end of a round what `find` gives is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from ensue.events.event import Event
from ensue.history import History
from ensue.lang.expressions.text.parsing import parse_expression
from tests.history.generator import Generator
from tests.history.judge import Judge, Known

SHORT = (1,)
Histories = Sequence[tuple[str, History]]


def hunt(seed: int) -> Mapping[str, int]:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder)
        urls = ("memory:", f"sqlite:{path / 'h.db'}", f"parquet:{path / 'h'}")
        return play(seed, [(url, stack.enter_context(History.open(url))) for url in urls])


def play(seed: int, histories: Histories) -> Counter[str]:
    random = Random(seed)
    uncertain = random.random() < 0.3
    made = Generator(Random(seed), ticks=random.choice([8, 20, 60]), uncertain=uncertain)
    stored: list[Known] = []
    waiting: list[Event] = []
    tried = Counter[str]()
    for number in range(8 if uncertain else 24):
        event = made.event(number)
        text = made.filter(depth=random.choice([1, 2] if uncertain else [1, 2, 3]))
        tried["filters"] += 1
        tried["matches"] += _ask(text, event, Judge(stored), histories)
        waiting.append(event)
        if random.random() < 0.6:
            _keep(waiting, histories)
            stored = [*stored, *map(Known.of, waiting)]
            waiting = []
    _keep(waiting, histories)
    stored = [*stored, *map(Known.of, waiting)]
    tried["events found"] = _find(made.filter(depth=2), Judge(stored), histories)
    return tried


def _ask(text: str, event: Event, judge: Judge, histories: Histories) -> bool:
    """Whether the event matches the filter; raises where a store says otherwise."""
    expression, known = parse_expression(text), Known.of(event)
    surely = judge.matches(expression, known)
    possibly = judge.matches(expression, known, True)
    for name, history in histories:
        given = history.matches(text, event), history.possibly(text, event)
        if given != (surely, possibly):
            raise AssertionError(
                f"{name}: `{text}` of {event!r} is {given}, not {surely, possibly}"
            )
    return surely


def _find(text: str, judge: Judge, histories: Histories) -> int:
    """How many events a filter finds; raises where a store finds others."""
    expression = parse_expression(text)
    expected = sorted(each.event.id for each in judge.stored if judge.matches(expression, each))
    for name, history in histories:
        found = sorted(event.id for event in history.find(text))
        if found != expected:
            raise AssertionError(f"{name}: `{text}` finds {found}, not {expected}")
    return len(expected)


def _keep(events: Sequence[Event], histories: Histories) -> None:
    for _, history in histories:
        history.add_all(events)

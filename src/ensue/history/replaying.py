"""A backtest: a filter or a library over a span of a history, as if its events came again.

Events come as they first came, the halves of an interval apart, in the order of their times. What
asks the history is asked of a scratch one that holds what had come before, so that an answer is
the one that a live run would have had. The scratch history is in memory, or in a file that is
deleted at the end if there is much of it; the history itself is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol, Self

from ensue.engine.inputs import Instant, time_microseconds
from ensue.engine.run import Run
from ensue.engine.running.admission import Publications
from ensue.errors import EventError
from ensue.events.event import Event
from ensue.history.asking.prepared import asks_history
from ensue.history.store import Store
from ensue.history.stores.memory import MemoryStore
from ensue.lang.expressions.tree import Expression
from ensue.library import Library

HELD_IN_MEMORY: Final = 100_000
"""The most publications that are replayed in memory; more are replayed in a file."""

OnRefused = Callable[[Event, EventError], None]


class Replayed(Publications, Protocol):
    """What a backtest needs of a history: its events again, and a scratch history beside it."""

    def __len__(self) -> int: ...

    def replay(
        self, since: Instant | None = None, until: Instant | None = None
    ) -> Iterator[Event]: ...

    def matches(self, filter: Expression, event: Event) -> bool: ...  # noqa: A002

    def add_all(self, events: Iterable[Event]) -> int: ...

    def over(self, store: Store) -> Self:
        """A history over another store, with the ontology of this one."""

    def close(self) -> None: ...


def _let_pass(event: Event, error: EventError) -> None:
    """What does not fit its type was refused in the live run too."""


def replay_filter(
    history: Replayed, expression: Expression, since: Instant | None, until: Instant | None
) -> Iterator[Event]:
    """The events of a span that match a filter, each asked of what had come before it."""
    with _scratch(history, HELD_IN_MEMORY) as scratch:
        for event in _after_the_rest(history, scratch, since, until):
            if scratch.matches(expression, event):
                yield event
            scratch.add(event)


def replay_library(
    history: Replayed,
    library: Library,
    since: Instant | None,
    until: Instant | None,
    engine: str = "auto",
    on_refused: OnRefused = _let_pass,
    held_in_memory: int = HELD_IN_MEMORY,
) -> Iterator[Event]:
    """The outputs of a library over a span; timers up to `until` fire."""
    with ExitStack() as scratches:
        if asks_history(library.checked.tree.definitions):
            scratch = scratches.enter_context(_scratch(history, held_in_memory))
            run = library.start(engine, history=scratch)
            events = _after_the_rest(history, scratch, since, until)
        else:
            run = library.start(engine)
            events = history.replay(since, until)
        for event in events:
            yield from _pushed(run, event, on_refused)
        yield from run.finish_iter(until)


def _pushed(run: Run, event: Event, on_refused: OnRefused) -> Iterator[Event]:
    try:
        return run.push_iter(event)
    except EventError as error:
        on_refused(event, error)
        return iter(())


def _after_the_rest(
    history: Replayed, scratch: Replayed, since: Instant | None, until: Instant | None
) -> Iterator[Event]:
    """The events of a span, once the scratch history holds those before it."""
    events = history.replay(None, until)
    if since is None:
        return events
    begin = time_microseconds(since)
    first: list[Event] = []

    def before() -> Iterator[Event]:
        for event in events:
            if event.time >= begin:
                first.append(event)
                return
            yield event

    scratch.add_all(before())
    return chain(first, events)


@contextmanager
def _scratch(history: Replayed, held_in_memory: int) -> Iterator[Replayed]:
    if len(history) <= held_in_memory:
        yield history.over(MemoryStore())
        return
    from ensue.history.stores.sql import SqlStore
    from ensue.history.stores.sqlite import sqlite_engine

    with TemporaryDirectory(prefix="ensue-replay-") as folder:
        engine = sqlite_engine(str(Path(folder) / "scratch.db"), durable=False)
        with closing(history.over(SqlStore(engine))) as scratch:
            yield scratch

"""Correlations as steps of a channel: events in, what follows from them out.

One step holds one run of a library by the step engine, for one consumer. With a name, only that
correlation runs, over what the channel carries; without one, the whole library does, rules over
rules included. Time passes for it with its events and, where it has timers, with the channel's
clock, which is asked to tell when the next of them is due: a little later than that, so that events
made before can arrive. Events that it cannot use are handed on with the reason. What a correlation
means is the engine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ensue.channel.policies import Reason
from ensue.channel.wants import Correlated, Want
from ensue.errors import EventError
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import EventPort, LibraryTree, Timeout, TimerPort
from ensue.library import Library

LEAST_GRACE = 1_000
MOST_GRACE = 1_000_000


class CorrelationStep:
    def __init__(self, wanted: Correlated) -> None:
        library = chosen(wanted)
        self._run = library.start(engine="step", lateness=wanted.lateness)
        self._read_any = False
        self.grace = _grace(library)
        self._drops: list[tuple[Event, Reason]] = []

    def read(self, event: Event) -> Sequence[Event]:
        self._read_any = True
        try:
            made = self._run.push(event)
        except EventError:
            self._drops.append((event, Reason.MALFORMED))
            return ()
        if self._run.late:
            self._drops.extend((late, Reason.LATE) for late in self._run.late)
            self._run.late.clear()
        return made

    def advance(self, now: int) -> Sequence[Event]:
        # Before its first event it has not started, and a clock could only make that event late.
        return self._run.advance(now) if self._read_any else ()

    def next_due(self) -> int | None:
        return None if self.grace is None else self._run.next_due()

    def finish(self) -> Sequence[Event]:
        return self._run.finish()

    def take_drops(self) -> Sequence[tuple[Event, Reason]]:
        drops, self._drops = self._drops, []
        return drops


def chosen(wanted: Correlated) -> Library:
    """The library that runs: the one correlation, or all of them."""
    if wanted.name is None:
        return wanted.library
    checked = wanted.library.checked
    one = next(each for each in checked.tree.correlations if each.name == wanted.name)
    tree = LibraryTree((*checked.tree.types, one))
    return Library(CheckedLibrary(tree, checked.types))


def ports_of(wanted: Correlated) -> Iterator[Want]:
    """What the correlations read, as wants for the look-up."""
    for correlation in chosen(wanted).correlations:
        for port in correlation.ports:
            if isinstance(port, EventPort):
                yield Want(port.type, port.source, port.where)


def _grace(library: Library) -> int | None:
    """A tenth of the shortest period, within bounds; None for a library without timers."""
    periods = [period for each in library.correlations for period in _periods(each)]
    if not periods:
        return None
    return max(LEAST_GRACE, min(MOST_GRACE, min(periods) // 10))


def _periods(part: Any) -> Iterator[int]:
    """Every period of a timer, anywhere in a syntax tree."""
    waiting = [part]
    while waiting:
        part = waiting.pop()
        if isinstance(part, TimerPort):
            yield part.period.microseconds
        elif isinstance(part, Timeout):
            yield part.after.microseconds
        elif isinstance(part, tuple):
            waiting.extend(part)
        elif is_dataclass(part):
            waiting.extend(getattr(part, each.name) for each in fields(part))

"""The step of a correlation: events in, events that the correlation pushes out.

One step holds one run of a library on the step engine, for one consumer. With a name, only that
correlation runs; without one the whole library does, rules over rules included. Time passes with
the events and, where the correlation has timers, with the channel's clock, which calls `advance` a
little after the next timer is due, so that events made before can still arrive. Events that are
late or malformed are handed on as drops. What a correlation means is defined by the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ensue.channel.lookup.interests import selected_library
from ensue.channel.lookup.wants import Correlated
from ensue.channel.policies import Reason
from ensue.errors import EventError
from ensue.events.event import Event
from ensue.lang.syntax import Timeout, TimerPort
from ensue.library import Library

SHORTEST_GRACE = 1_000
LONGEST_GRACE = 1_000_000
"""Bounds of the grace, in microseconds."""


class CorrelationStep:
    """A `Step` that runs one correlation, or all correlations of a library."""

    def __init__(self, wanted: Correlated) -> None:
        library = selected_library(wanted)
        self._run = library.start(engine="step", lateness=wanted.lateness)
        self._has_started = False
        self.grace = _grace(library)
        self._drops: list[tuple[Event, Reason]] = []

    def read(self, event: Event) -> Sequence[Event]:
        self._has_started = True
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
        # Time starts with the first event: the clock could only make that event late.
        return self._run.advance(now) if self._has_started else ()

    def next_due(self) -> int | None:
        return None if self.grace is None else self._run.next_due()

    def finish(self) -> Sequence[Event]:
        return self._run.finish()

    def take_drops(self) -> Sequence[tuple[Event, Reason]]:
        drops, self._drops = self._drops, []
        return drops


def _grace(library: Library) -> int | None:
    """A tenth of the shortest period, within bounds; None for a library without timers."""
    periods = [period for each in library.correlations for period in _periods(each)]
    if not periods:
        return None
    return max(SHORTEST_GRACE, min(LONGEST_GRACE, min(periods) // 10))


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

"""The step of a correlation: events come in, and the events that the correlation pushes come out.

One step contains one run of a library on the step engine, for one consumer. With a name, that
correlation runs, and those that it reads, whose outputs go nowhere else; without one, the whole
library runs. Time passes with the events and, if the correlation has timers, with the channel's
clock. The clock calls `advance` a little (`grace`) after the next timer is due, so that earlier
events can still arrive. Events that are late, malformed or dated too far ahead are returned as
drops. If very many timers fire at once, their outputs are returned in several parts. The engine
defines the meaning of a correlation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import islice
from typing import Any

from ensue.channel.lookup.interests import selected_library
from ensue.channel.lookup.wants import Correlated
from ensue.channel.policies import Reason
from ensue.engine.timing.jumps import NONE, max_jump
from ensue.errors import EventError
from ensue.events.event import Event
from ensue.lang.syntax import Timeout, TimerPort
from ensue.library import Library

SHORTEST_GRACE = 1_000
LONGEST_GRACE = 1_000_000
"""Bounds of the grace, in microseconds."""

OUTPUTS_AT_ONCE = 1024
_LONG_AGO = -(1 << 62)


class CorrelationStep:
    """A `DeliveryStep` that runs one correlation, or all correlations of a library.

    `now` returns the time of day if the channel runs on a wall clock, and is None otherwise.
    """

    def __init__(self, wanted: Correlated, now: Callable[[], int] | None) -> None:
        library = selected_library(wanted)
        # The run itself accepts every jump: `_is_ahead` also compares with the time of day.
        self._start = partial(library.start, engine="step", lateness=wanted.lateness, max_jump=NONE)
        self._run = self._start()
        self._max_jump = max_jump(library.checked, wanted.max_jump)
        self._longest_jump = max_jump(library.checked, None)
        self._now = now
        self._latest: int | None = None
        self.grace = _grace(library)
        self._unread_outputs: Iterator[Event] | None = None
        self._drops: list[tuple[Event, Reason]] = []

    def read(self, event: Event) -> Sequence[Event]:
        if self._is_ahead(event.time):
            self._drops.append((event, Reason.AHEAD))
            return ()
        if self._latest is not None and event.time - self._latest > self._longest_jump:
            self._restart()
        try:
            self._unread_outputs = self._run.push_iter(event)
        except EventError:
            self._drops.append((event, Reason.MALFORMED))
            return ()
        if self._latest is None or event.time > self._latest:
            self._latest = event.time
        if self._run.late:
            self._drops.extend((late, Reason.LATE) for late in self._run.late)
            self._run.late.clear()
        return self._next_outputs()

    def _is_ahead(self, time: int) -> bool:
        """Whether a time lies too far ahead of both the stream and the time of day."""
        latest = self._latest
        if latest is not None and time - latest <= self._max_jump:
            return False
        if self._now is not None:
            return time - self._now() > self._max_jump
        return latest is not None

    def advance(self, now: int) -> Sequence[Event]:
        # Time starts with the first event. Advanced before it, the clock could make it late.
        if self._latest is None:
            return ()
        due = None if self._unread_outputs is not None else self._run.next_due()
        if due is not None and now - due > self._longest_jump:
            self._restart()
            return ()
        if self._unread_outputs is None:
            self._unread_outputs = self._run.advance_iter(now)
        return self._next_outputs()

    def _restart(self) -> None:
        """Start a new run, since the stream lies so far back that its timers would never end."""
        self._run = self._start()
        self._latest = self._unread_outputs = None

    def _next_outputs(self) -> Sequence[Event]:
        """The next part of the unread outputs."""
        assert self._unread_outputs is not None
        outputs = list(islice(self._unread_outputs, OUTPUTS_AT_ONCE))
        if len(outputs) < OUTPUTS_AT_ONCE:
            self._unread_outputs = None
        return outputs

    def next_due(self) -> int | None:
        if self.grace is None:
            return None
        # Unread outputs are due at once.
        return self._run.next_due() if self._unread_outputs is None else _LONG_AGO

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
    """The periods of all timers in a syntax tree."""
    unvisited = [part]
    while unvisited:
        part = unvisited.pop()
        if isinstance(part, TimerPort):
            yield part.period.microseconds
        elif isinstance(part, Timeout):
            yield part.after.microseconds
        elif isinstance(part, tuple):
            unvisited.extend(part)
        elif is_dataclass(part):
            unvisited.extend(getattr(part, each.name) for each in fields(part))

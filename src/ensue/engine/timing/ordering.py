"""Puts a stream in order: events may come out of order within an allowed lateness.

In come events as they arrive; out come the events that no earlier one can precede any more, by time
and then by arrival. An event older than (the latest time so far - the lateness) comes too late, and
one further ahead of that time than the clock may jump (`jumps`) comes too early: both are handed
back as such, never dropped. Where enough events agree on a later time, the clock begins anew
(`agreeing`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

from ensue.engine.instance import ENDLESS
from ensue.engine.timing.agreeing import Dissent, TimeRun
from ensue.events.event import Event


class Ordering:
    """`latest` is the latest time so far.

    No event up to `reach` is too far ahead. It is raised now and then and not with every event, so
    that a routine which reads events in order compares two numbers and computes none. It is an
    integer once an event has come: a comparison with a float takes longer.
    """

    def __init__(self, lateness: int, max_jump: float = math.inf) -> None:
        self.lateness = lateness
        self.max_jump = max_jump
        self.latest: int | float = -math.inf
        self.reach: int | float = -math.inf
        self.dissent = Dissent()
        self._arrived = 0
        self._waiting: list[tuple[int, int, Event]] = []

    @property
    def settled(self) -> int | None:
        """The time up to which the order is final."""
        return None if isinstance(self.latest, float) else self.latest - self.lateness

    def is_late(self, time: int) -> bool:
        return self.settled is not None and time < self.settled

    def is_ahead(self, time: int) -> bool:
        """Whether the clock would jump too far; where it begins is not known before an event."""
        return time - self.latest > self.max_jump and self.latest > -math.inf

    def is_believed(self, time: int, read: int) -> bool:
        """Whether the clock is to begin anew at a time that is too far ahead.

        `read` is the number of events that were read. Each call counts as an event.
        """
        return self.dissent.vote(TimeRun(time, time), self.max_jump, read)

    def begin_anew(self) -> list[Event]:
        """Forget the clock; what waited is settled now."""
        self.latest = self.reach = -math.inf
        return list(self.rest())

    def add(self, event: Event) -> None:
        """Take an event that is not late."""
        heapq.heappush(self._waiting, (event.time, self._arrived, event))
        self._arrived += 1
        self.observe(event.time)

    def observe(self, time: int) -> None:
        """The stream has come as far as this time."""
        self.latest = max(self.latest, time)
        self.reach = min(self.latest + self.max_jump, ENDLESS)

    def bound_jumps(self, max_jump: float) -> None:
        """Let the clock jump as far as this from now on."""
        self.max_jump = max_jump
        self.reach = -math.inf

    def ready(self) -> Iterator[Event]:
        settled = self.settled
        while self._waiting and settled is not None and self._waiting[0][0] <= settled:
            yield heapq.heappop(self._waiting)[2]

    @property
    def waiting(self) -> list[Event]:
        """The events that wait, in order."""
        return [event for _, _, event in sorted(self._waiting, key=lambda each: each[:2])]

    @property
    def next_waiting(self) -> int | None:
        """The time of the first event that waits."""
        return self._waiting[0][0] if self._waiting else None

    def restore(self, latest: int | None, waiting: Sequence[Event]) -> None:
        """Go on from a saved order: its latest time, and the events that waited."""
        for event in waiting:
            self.add(event)
        self.latest = -math.inf if latest is None else latest
        self.reach = -math.inf

    def rest(self) -> Iterator[Event]:
        """The events that still wait, in order; for the end of a stream."""
        while self._waiting:
            yield heapq.heappop(self._waiting)[2]

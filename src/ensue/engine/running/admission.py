"""Events on their way into a run: each is taken into the order, is late, or is refused.

In come events as they arrive. An event that does not fit its type, or lies further ahead than the
clock may jump (`ensue.engine.timing.jumps`), is refused with `EventError`, and the run goes on as
if it had never come. An event from before the time up to which the order is final is kept in
`late`. Every other event waits in the `Ordering` until nothing earlier can come. Where enough
events agree that the stream is elsewhere, it begins anew (`ensue.engine.timing.agreeing`).

Rules may ask a history while events are read (`Publications`): an event is read with the history
as it stands before that event, and is kept there afterwards. The history itself, its stores and
its terms are in `ensue.history`; here is what a run needs of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Protocol

from ensue.engine.counts import Counts
from ensue.engine.running.snapshots import SavedHistory
from ensue.engine.timing.jumps import jump_problem
from ensue.engine.timing.ordering import Ordering
from ensue.errors import EventError
from ensue.events import cloudevents
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.expressions.asking import AskingScope, TemporalStore
from ensue.lang.expressions.evaluation import SCOPE_OF


class Publications(TemporalStore, Protocol):
    """A history that a run asks, and keeps its events in."""

    def check(self, event: Event) -> None:
        """Raises `EventError` if an event cannot be kept."""

    def add(self, event: Event) -> None: ...


def with_history(parts: Iterator[list[Event]], publications: Publications) -> Iterator[list[Event]]:
    """Parts of outputs, each made while predicates can ask the history of publications."""
    while True:
        token = SCOPE_OF.set(partial(AskingScope, history=publications))
        try:
            part = next(parts, None)
        finally:
            SCOPE_OF.reset(token)
        if part is None:
            return
        yield part


class Admission:
    """The way into one run. `history` is where a run by the definitions writes what it reads."""

    def __init__(
        self,
        types: TypeSystem,
        counts: Counts,
        ordering: Ordering,
        publications: Publications | None,
        history: SavedHistory | None,
    ) -> None:
        self.types = types
        self.late: list[Event] = []
        self.before: list[Event] | None = None
        """Events that are read before the clock begins anew, if it is to do so."""
        self._counts = counts
        self._ordering = ordering
        self._publications = publications
        self._history = history

    def admit(self, event: Event) -> bool:
        """Take an event that fits, or raise `EventError`. False if it comes too late."""
        ready = conform(event, self.types)
        if self._publications is not None:
            self._publications.check(ready)
        if self._ordering.is_ahead(ready.time):
            self._begin_anew(ready.time)
        if self._history is not None:
            self._history.append(("event", cloudevents.encode(ready).decode()))
        return self._is_in_time(ready)

    def admit_all(self, events: Iterable[Event]) -> None:
        """Take all of several events, or raise `EventError` and take none of them.

        An event that is taken into the order and then not read would be lost.
        """
        conformed = [conform(event, self.types) for event in events]
        latest, furthest = self._ordering.latest, self._ordering.max_jump
        for place, event in enumerate(conformed):
            if event.time - latest > furthest and latest > -math.inf:
                if place == 0:
                    self._begin_anew(event.time)
                    latest = event.time
                    continue
                raise EventError([jump_problem(event.time, int(latest), furthest)])
            latest = max(latest, event.time)
        for event in conformed:
            self._is_in_time(event)

    def takes(self, event: Event) -> bool:
        """Whether an event would be taken now."""
        try:
            ready = conform(event, self.types)
        except EventError:
            return False
        return not self._ordering.is_ahead(ready.time)

    def _begin_anew(self, time: int) -> None:
        """Begin a new stream if enough events agree on a time that is too far ahead, or raise."""
        latest = int(self._ordering.latest)
        if not self._ordering.is_believed(time, self._counts.events):
            raise EventError([jump_problem(time, latest, self._ordering.max_jump)])
        self.before = [*(self.before or ()), *self._ordering.begin_anew()]
        self._counts.begun_anew += 1
        if self._history is not None:
            self._history[:] = [each for each in self._history if each[0] == "library"][-1:]

    def _is_in_time(self, event: Event) -> bool:
        """Count an event, and put it into the order, or among the late events."""
        self._counts.events += 1
        if self._ordering.is_late(event.time):
            self._counts.late += 1
            self.late.append(event)
            if self._publications is not None:
                self._publications.add(event)
            return False
        self._ordering.add(event)
        return True

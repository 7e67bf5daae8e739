"""The steps of groups (`any_of`, `all_of`) and of wants with a Python test.

In comes an event that the look-up found for one consumer; out come the events that the consumer is
called with: the event itself, one event for a whole conjunction, or none. The step of a correlation
is in `correlation`, which is loaded only when a correlation is wanted.

A conjunction keeps the last event that satisfied each part. Once every part is satisfied, the
consumer gets an event of type `GROUP` with these events in its data, and the conjunction starts
again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from ensue.channel.delivery.steps import DeliveryStep
from ensue.channel.lookup.wants import AllOf, AnyOf, Correlated, EventWant, Wants
from ensue.channel.policies import Reason
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.events.types import TypeSystem

GROUP = "ensue.channel.group"


def step_for(
    wants: Wants, types: TypeSystem, owner: str, now: Callable[[], int] | None = None
) -> DeliveryStep:
    """The step for wants of the consumer `owner`; `now` returns the time of day, if it is known."""
    match wants:
        case EventWant():
            return WantStep(wants, types)
        case AnyOf(parts):
            return AnyStep([step_for(part, types, owner, now) for part in parts])
        case AllOf(parts):
            return AllStep([step_for(part, types, owner, now) for part in parts], owner)
        case Correlated():
            from ensue.channel.delivery.correlation import CorrelationStep

            return CorrelationStep(wants, now)


class WantStep:
    """Passes events that match one want."""

    grace = None

    def __init__(self, wanted: EventWant, types: TypeSystem) -> None:
        self._wanted = wanted
        self._types = types

    def read(self, event: Event) -> Sequence[Event]:
        return (event,) if matches(self._wanted, event, self._types) else ()

    def advance(self, now: int) -> Sequence[Event]:  # noqa: ARG002 - part of the protocol
        return ()

    def next_due(self) -> int | None:
        return None

    def finish(self) -> Sequence[Event]:
        return ()

    def take_drops(self) -> Sequence[tuple[Event, Reason]]:
        return ()


class GroupStep(ABC):
    """A step over several parts, which all read every event."""

    def __init__(self, parts: Sequence[DeliveryStep]) -> None:
        self._parts = parts
        self.grace = _least(part.grace for part in parts)

    def read(self, event: Event) -> Sequence[Event]:
        return self._combine([part.read(event) for part in self._parts])

    def advance(self, now: int) -> Sequence[Event]:
        return self._combine([part.advance(now) for part in self._parts])

    def next_due(self) -> int | None:
        return _least(part.next_due() for part in self._parts)

    def finish(self) -> Sequence[Event]:
        return self._combine([part.finish() for part in self._parts])

    def take_drops(self) -> Sequence[tuple[Event, Reason]]:
        return [drop for part in self._parts for drop in part.take_drops()]

    @abstractmethod
    def _combine(self, passed: Sequence[Sequence[Event]]) -> Sequence[Event]:
        """The events that the group passes, from those that each part has just passed."""


class AnyStep(GroupStep):
    """Passes the events that any part passes, each once."""

    def _combine(self, passed: Sequence[Sequence[Event]]) -> Sequence[Event]:
        return list({id(event): event for events in passed for event in events}.values())


class AllStep(GroupStep):
    """Passes one event of type `GROUP` when every part has been satisfied."""

    def __init__(self, parts: Sequence[DeliveryStep], owner: str) -> None:
        super().__init__(parts)
        self._owner = owner
        self._satisfied: dict[int, Event] = {}
        self._groups_built = 0

    def _combine(self, passed: Sequence[Sequence[Event]]) -> Sequence[Event]:
        for number, events in enumerate(passed):
            if events:
                self._satisfied.pop(number, None)
                self._satisfied[number] = events[-1]
        if len(self._satisfied) < len(self._parts):
            return ()
        events = list({id(event): event for event in self._satisfied.values()}.values())
        self._satisfied.clear()
        self._groups_built += 1
        return (_group(f"{self._owner}:{self._groups_built}", self._owner, events),)


def matches(wanted: EventWant, event: Event, types: TypeSystem) -> bool:
    """Whether an event has the type and source of a want and passes its predicate and test."""
    if wanted.type is not None and not types.is_subtype(event.type, wanted.type):
        return False
    if wanted.source is not None and wanted.source != event.source:
        return False
    if wanted.where is not None:
        from ensue.lang.expressions.evaluation import holds

        if not holds(wanted.where, event):
            return False
    if wanted.test is None:
        return True
    answer = wanted.test(event)
    if answer is True or answer is False:
        return answer
    raise UsageError(f"a test returns `True` or `False`; this one returned `{answer!r}`")


def _group(identity: str, owner: str, events: Sequence[Event]) -> Event:
    """An event with other events in its data, each with its CloudEvents attributes."""
    members = [
        {"id": e.id, "source": e.source, "type": e.type, "time": e.at, "data": e.data}
        | dict(e.extensions)
        for e in events
    ]
    causes = {"causes": ",".join(event.id for event in events)}
    latest = max(event.time for event in events)
    return Event(identity, f"ensue/channel/{owner}", GROUP, latest, {"events": members}, causes)


def _least(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)


def has_correlation(wants: Wants) -> bool:
    match wants:
        case Correlated():
            return True
        case AnyOf(parts) | AllOf(parts):
            return any(has_correlation(part) for part in parts)
        case _:
            return False

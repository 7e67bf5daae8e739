"""Events that go to a service, until it has them; each goes there once.

An event is told by its identity: what the service is known to have is not sent again, and what is
queued already gets one more ticket that waits for it. What is queued survives a broken connection.
Where another gateway brings events to the service, or the gateways have not agreed yet which one
does, they are only held, until they are seen there or the link opens.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ensue.events.event import Event
from ensue.federation.links.counts import Seen, ServiceCounts
from ensue.federation.links.receipts import MOST_RESTING, Ticket
from ensue.federation.messages.attributes import expiry_of


class WantedEvent(NamedTuple):
    """An event for a service: for its clients or in transit, and the link that it came over."""

    event: Event
    in_transit: bool
    identity: int
    source: str


@dataclass(eq=False, slots=True)
class Queued:
    """An event for the service, its origin, and the waiters to tell once it is delivered."""

    event: Event
    in_transit: bool
    identity: int
    source: str
    tickets: list[Ticket]


@dataclass(eq=False, slots=True)
class HeldEvent:
    """An event that is not to be sent for now. Without tickets, its source has let go of it."""

    since: float
    event: Event
    in_transit: bool
    source: str
    tickets: list[Ticket]


class ServiceOutbox:
    def __init__(self, counts: ServiceCounts) -> None:
        self.filled = asyncio.Event()
        self.seen = Seen()
        self._counts = counts
        self._queue: deque[Queued] = deque()
        self._queued: dict[int, Queued] = {}
        self._held: dict[int, HeldEvent] = {}
        self._gone = 0

    def __len__(self) -> int:
        """Events that wait to be published."""
        return len(self._queue)

    def mark(self) -> int:
        """A place behind everything that is queued now, for `has_passed`."""
        return self._gone + len(self._queue)

    def has_passed(self, mark: int) -> bool:
        return self._gone >= mark

    def begin_session(self) -> None:
        """A connection is new: what waits may be at the service by now, and another gateway may
        have taken this one's place there."""
        now = time.monotonic()
        while self._queue:
            queued = self._queue.popleft()
            self._gone += 1
            if queued.identity in self.seen:
                self._confirm(queued)
            else:
                self._queued.pop(queued.identity, None)
                self._held[queued.identity] = HeldEvent(
                    now, queued.event, queued.in_transit, queued.source, queued.tickets
                )

    def send(self, wanted: WantedEvent, ticket: Ticket | None) -> None:
        """Queue an event for the service, once."""
        event, in_transit, identity, source = wanted
        if identity in self.seen:
            self._counts.duplicates += 1
            if ticket is not None:
                ticket.confirm()
            return
        queued = self._queued.get(identity)
        if queued is None:
            queued = self._queued[identity] = Queued(event, in_transit, identity, source, [])
            self._queue.append(queued)
            self.filled.set()
        else:
            self._counts.duplicates += 1
            queued.in_transit = queued.in_transit and in_transit
        if ticket is not None:
            queued.tickets.append(ticket)

    def hold(self, wanted: WantedEvent, ticket: Ticket | None) -> None:
        """Keep an event until it is seen at the service, or the link opens.

        Without a ticket another gateway brings it there, and not more of them are kept than may
        have to be brought when that one fails.
        """
        event, in_transit, identity, source = wanted
        if identity in self.seen:
            if ticket is not None:
                ticket.confirm()
            return
        held = self._held.get(identity)
        if held is None:
            held = self._held[identity] = HeldEvent(time.monotonic(), event, in_transit, source, [])
        else:
            held.source = source
            held.in_transit = held.in_transit and in_transit
        if ticket is not None:
            held.tickets.append(ticket)
        elif len(self._held) > MOST_RESTING:
            self._confirm_held(next(iter(self._held)))

    def note(self, identity: int) -> None:
        """The service has the event."""
        self.seen.add(identity)
        if self._held:
            self._confirm_held(identity)

    def release(self, before: float) -> None:
        """Let go of events that others must have brought on by now."""
        while self._held and next(iter(self._held.values())).since < before:
            self._confirm_held(next(iter(self._held)))

    def _confirm_held(self, identity: int) -> None:
        held = self._held.pop(identity, None)
        for each in () if held is None else held.tickets:
            each.confirm()

    def has_held(self, sources: Collection[str]) -> bool:
        """Whether something was kept that came over links which carry events."""
        return any(each.source in sources for each in self._held.values())

    def send_held(self, sources: Collection[str]) -> None:
        """The link carries events: what was kept for the service goes there, if it came over links
        that carry events too. Of the others, another gateway has to bring it."""
        held = [(key, each) for key, each in self._held.items() if each.source in sources]
        for identity, each in held:
            del self._held[identity]
            self.send(WantedEvent(each.event, each.in_transit, identity, each.source), None)
            queued = self._queued.get(identity)
            if queued is not None:
                queued.tickets += each.tickets
            else:
                for ticket in each.tickets:
                    ticket.confirm()

    async def head(self, most: int) -> list[Queued]:
        """The next events to publish; waits for one. What has expired is dropped."""
        while True:
            while not self._queue:
                self.filled.clear()
                await self.filled.wait()
            self._drop_expired()
            if self._queue:
                return list(islice(self._queue, most))

    def published(self, batch: Sequence[Queued]) -> None:
        """The service has the events at the head of the queue."""
        self._gone += len(batch)
        for each in batch:
            self._queue.popleft()
            self.seen.add(each.identity)
            self._confirm(each)
        self._counts.sent += len(batch)

    def drop(self, queued: Queued, reason: str) -> None:
        """The event at the head of the queue cannot go to the service."""
        self._counts.dropped[reason] += 1
        self._gone += 1
        self._queue.popleft()
        self._confirm(queued)

    def _drop_expired(self) -> None:
        now = time.time_ns() // 1000
        while self._queue:
            expiry = expiry_of(self._queue[0].event)
            if expiry is None or expiry > now:
                return
            self.drop(self._queue[0], "expired")

    def _confirm(self, queued: Queued) -> None:
        self._queued.pop(queued.identity, None)
        for each in queued.tickets:
            each.confirm()

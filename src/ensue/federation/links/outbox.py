"""Events that go to a service, until it has them; each goes there once.

An event is told by its identity: what the service is known to have is not sent again, and what is
queued already gets one more ticket that waits for it. What is queued survives a broken connection.
Where another gateway brings events to the service, they are only held, until they are seen there.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from ensue.events.event import Event
from ensue.federation.links.counts import Counts, Seen
from ensue.federation.links.receipts import MOST_RESTING, Ticket
from ensue.federation.messages.attributes import expiry_of


@dataclass(eq=False, slots=True)
class Queued:
    """An event for the service, and all who wait for it to be there."""

    event: Event
    in_transit: bool
    identity: int
    tickets: list[Ticket]


class Outbox:
    def __init__(self, counts: Counts) -> None:
        self.filled = asyncio.Event()
        self.seen = Seen()
        self._counts = counts
        self._queue: deque[Queued] = deque()
        self._queued: dict[int, Queued] = {}
        self._held: dict[int, tuple[float, Event, bool]] = {}

    def __len__(self) -> int:
        """Events that wait to be published."""
        return len(self._queue)

    def begin_session(self) -> None:
        """A connection is new: what waits may be at the service by now."""
        for _ in range(len(self._queue)):
            queued = self._queue.popleft()
            if queued.identity in self.seen:
                self._confirm(queued)
            else:
                self._queue.append(queued)

    def send(self, event: Event, in_transit: bool, identity: int, ticket: Ticket | None) -> None:
        """Queue an event for the service, once."""
        if identity in self.seen:
            self._counts.duplicates += 1
            if ticket is not None:
                ticket.confirm()
            return
        queued = self._queued.get(identity)
        if queued is None:
            queued = self._queued[identity] = Queued(event, in_transit, identity, [])
            self._queue.append(queued)
            self.filled.set()
        else:
            self._counts.duplicates += 1
            queued.in_transit = queued.in_transit and in_transit
        if ticket is not None:
            queued.tickets.append(ticket)

    def hold(self, event: Event, in_transit: bool, identity: int) -> None:
        """Keep an event for a service that another gateway brings it to, until it is seen there."""
        if identity not in self.seen:
            self._held[identity] = time.monotonic(), event, in_transit
            if len(self._held) > MOST_RESTING:
                self._held.pop(next(iter(self._held)))

    def note(self, identity: int) -> None:
        """The service has the event."""
        self.seen.add(identity)
        if self._held:
            self._held.pop(identity, None)

    def release(self, before: float) -> None:
        """Let go of events that others must have brought on by now."""
        while self._held and next(iter(self._held.values()))[0] < before:
            self._held.pop(next(iter(self._held)))

    def send_held(self) -> None:
        """The link carries events from now on: what was kept for the service goes there."""
        held, self._held = self._held, {}
        for identity, (_, event, in_transit) in held.items():
            self.send(event, in_transit, identity, None)

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
        for each in batch:
            self._queue.popleft()
            self.seen.add(each.identity)
            self._confirm(each)
        self._counts.sent += len(batch)

    def drop(self, queued: Queued, reason: str) -> None:
        """The event at the head of the queue cannot go to the service."""
        self._counts.dropped[reason] += 1
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

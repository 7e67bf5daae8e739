"""Events that go to a service, until it has them; each goes there once.

An event is told by its identity: what the service is known to have is not sent again, and what is
queued already gets one more ticket that waits for it. What is queued survives a broken connection.
Three reasons keep an event from the queue. Another gateway brings it to the service, or the
gateways have not agreed yet which one does: it is held until it is seen there, or the link opens.
It is old, so that another gateway may be about to bring it too: it is held for a turn
(`routing.turns`). Or another gateway has its turn: the outbox rests until that is over. Events keep
their order: while one waits that is to be brought, those behind it wait too.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ensue.events.event import Event
from ensue.events.expiry import has_expired
from ensue.federation.links.bounds import Bounds
from ensue.federation.links.counts import ServiceCounts
from ensue.federation.links.receipts import Ticket
from ensue.federation.links.seen import Seen


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
    """An event that is not to be sent for now. Without tickets, its source has let go of it.

    `is_old`: another gateway may be about to bring it to the service.
    """

    since: float
    event: Event
    in_transit: bool
    source: str
    tickets: list[Ticket]
    is_old: bool


class ServiceOutbox:
    def __init__(self, counts: ServiceCounts, bounds: Bounds, seen: Seen) -> None:
        self.filled = asyncio.Event()
        self.seen = seen
        self.is_resting = False
        """Whether another gateway has its turn at the service."""
        self._bounds = bounds
        self._counts = counts
        self._queue: deque[Queued] = deque()
        self._queued: dict[int, Queued] = {}
        self._held: dict[int, HeldEvent] = {}
        self._to_bring: Counter[str] = Counter()
        """How many events with tickets are held, by their sources."""
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
        first = list(self._queue)
        self._gone += len(first)
        self._queue.clear()
        self._queued.clear()
        behind, self._held = self._held, {}
        self._to_bring.clear()
        for queued in first:
            wanted = WantedEvent(queued.event, queued.in_transit, queued.identity, queued.source)
            self.hold(wanted, queued.tickets, True)
        for identity, each in behind.items():
            wanted = WantedEvent(each.event, each.in_transit, identity, each.source)
            self.hold(wanted, each.tickets, True)

    def send(self, wanted: WantedEvent, tickets: Iterable[Ticket]) -> None:
        """Queue an event for the service, once."""
        if self._is_known(wanted, tickets):
            return
        event, in_transit, identity, source = wanted
        queued = self._queued[identity] = Queued(event, in_transit, identity, source, [*tickets])
        self._queue.append(queued)
        self.filled.set()

    def _is_known(self, wanted: WantedEvent, tickets: Iterable[Ticket]) -> bool:
        """Whether the service has an event, or it is queued: it need not be sent again."""
        if wanted.identity in self.seen:
            self._counts.duplicates += 1
            for each in tickets:
                each.confirm()
            return True
        queued = self._queued.get(wanted.identity)
        if queued is None:
            return False
        self._counts.duplicates += 1
        queued.in_transit = queued.in_transit and wanted.in_transit
        queued.tickets += tickets
        return True

    def hold(self, wanted: WantedEvent, tickets: Sequence[Ticket], is_old: bool) -> None:
        """Keep an event until it is seen at the service, or is sent after all.

        Without a ticket another gateway brings it there, and not more of them are kept than may
        have to be brought when that one fails.
        """
        if self._is_known(wanted, tickets):
            return
        event, in_transit, identity, source = wanted
        held = self._held.get(identity)
        if held is None:
            now = asyncio.get_running_loop().time()
            held = HeldEvent(now, event, in_transit, source, [], is_old)
            self._held[identity] = held
        else:
            if held.tickets:
                self._to_bring[held.source] -= 1
            held.source = source
            held.in_transit = held.in_transit and in_transit
            held.is_old = held.is_old or is_old
        held.tickets += tickets
        if held.tickets:
            self._to_bring[source] += 1
        elif len(self._held) - self._to_bring.total() > self._bounds.resting:
            self._let_go(next(key for key, each in self._held.items() if not each.tickets))

    def note(self, identity: int) -> None:
        """The service has the event."""
        self.seen.add(identity)
        if self._held:
            self._let_go(identity)

    def release(self, before: float, sources: Collection[str]) -> None:
        """Let go of events that others must have brought on by now: of links that carry none."""
        for identity, each in list(self._held.items()):
            if each.since >= before:
                return
            if each.source in sources:
                self._let_go(identity)

    def _let_go(self, identity: int) -> None:
        held = self._held.pop(identity, None)
        if held is None:
            return
        if held.tickets:
            self._to_bring[held.source] -= 1
        for each in held.tickets:
            each.confirm()

    def must_wait(self, sources: Iterable[str]) -> bool:
        """Whether an event would overtake others from links that carry events."""
        return self.is_resting or any(self._to_bring[each] for each in sources)

    def has_held(self, sources: Collection[str]) -> bool:
        """Whether something is held that came over links which carry events."""
        return any(each.source in sources for each in self._held.values())

    def has_old(self, sources: Collection[str]) -> bool:
        """Whether something of that may be brought by another gateway too."""
        return any(each.is_old and each.source in sources for each in self._held.values())

    def send_held(self, sources: Collection[str]) -> None:
        """What was held for the service goes there, if it came over links that carry events too.
        Of the others, another gateway has to bring it."""
        held = [(key, each) for key, each in self._held.items() if each.source in sources]
        for identity, each in held:
            del self._held[identity]
            if each.tickets:
                self._to_bring[each.source] -= 1
            wanted = WantedEvent(each.event, each.in_transit, identity, each.source)
            self.send(wanted, each.tickets)

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
        while self._queue and has_expired(self._queue[0].event, now):
            self.drop(self._queue[0], "expired")

    def _confirm(self, queued: Queued) -> None:
        self._queued.pop(queued.identity, None)
        for each in queued.tickets:
            each.confirm()

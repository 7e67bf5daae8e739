"""Hands entries of the journal to subscribers, from any number on, without a gap and without end.

A subscriber begins behind a number. As long as it is behind the feed, it is given pages of the
journal; once it has come up, it waits in an index of filters, and entries are handed to it as they
are written. Its queue is bounded: one that reads too slowly falls back to the journal, and so
loses nothing and holds no memory. All of this runs in the event loop of the server.

What a subscriber wants is a `SubscriberWish`: kinds of entries, a filter, a library that the server
runs, or a private library, which reads the events from a number on and whose outputs it is given.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ensue.errors import UsageError
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.events.expiry import EXPIRY, has_expired
from ensue.history import History
from ensue.lang.expressions.tree import TemporalTerm
from ensue.library import Library
from ensue.server.station.entries import (
    KIND_NAMES,
    FeedDelivery,
    JournalEntry,
    Live,
    weight_of,
)
from ensue.server.station.figures import StationFigures
from ensue.server.station.private_run import Allows, PrivateRun
from ensue.server.station.record.journal import ServerJournal
from ensue.subscriptions import Filter, Index
from ensue.subscriptions.concepts import terms_in

CHUNK: Final = 250
"""Entries that are matched before others have their turn in the event loop."""
_EXPIRES: Final = f'"{EXPIRY}"'.encode()
WAITING_BYTES: Final = 4 * 1024 * 1024
"""Bytes that wait for one subscriber; one delivery is always taken."""


def asks_of_history(filter_: Filter) -> bool:
    """Whether a filter has temporal terms, whose answers depend on other events."""
    return any(isinstance(each, TemporalTerm) for each in terms_in(filter_.expression))


@dataclass(frozen=True)
class SubscriberWish:
    """What a subscriber wants. `allows` says of each event whether it may have it."""

    kinds: frozenset[int]
    filter: Filter | None = None
    libraries: frozenset[str] | None = None
    correlations: frozenset[str] | None = None
    private: Library | None = None
    allows: Allows | None = None

    @cached_property
    def temporal(self) -> bool:
        """Whether the filter asks the history, and so is asked by the line."""
        return self.filter is not None and asks_of_history(self.filter)

    def admits(self, entry: JournalEntry) -> bool:
        """Whether the kind and the origin of an entry are wanted; its event is asked apart."""
        if entry.kind not in self.kinds:
            return False
        if self.libraries is not None and entry.library not in self.libraries:
            return False
        return self.correlations is None or entry.correlation in self.correlations


class Subscriber:
    """One subscriber. Iterate over `batches` for what it is given."""

    def __init__(self, feed: Feed, number: int, wanted: SubscriberWish, after: int) -> None:
        self._feed = feed
        self.number = number
        self.wanted = wanted
        self._first = self.position = after
        self.live_from = 0
        """A temporal subscription is asked of each event by the line from this entry on."""
        self.is_live = False
        self._queue: deque[FeedDelivery] = deque()
        self._queued_bytes = 0
        self._ready = asyncio.Event()
        self._closed = False
        self._is_idle = False
        self._patience: float | None = None
        self.private = (
            PrivateRun(wanted.private, after, wanted.allows, feed.most_keys)
            if wanted.private
            else None
        )

    async def batches(self, patience: float | None = None) -> AsyncIterator[list[FeedDelivery]]:
        """What it is given, as it comes; ends when it is closed.

        With `patience`, there is an empty list whenever nothing came for so many seconds.
        """
        self._patience = patience
        while not self._closed:
            self._is_idle = False
            found = self._feed.of_use(await (self._live() if self.is_live else self._catch_up()))
            if found or (self._is_idle and not self._closed):
                self._feed.figures.delivered += len(found)
                yield found

    async def _live(self) -> list[FeedDelivery]:
        await self._wait()
        found = list(self._queue)
        self._clear()
        return found

    def _clear(self) -> None:
        self._queue.clear()
        self._queued_bytes = 0

    async def _catch_up(self) -> list[FeedDelivery]:
        """The next page of the journal; once there is none, the subscriber goes live."""
        feed = self._feed
        if self.private is not None and (left := self.private.some()):
            return left
        if self.position >= feed.head:
            if self.private is None and self.position >= self.live_from:
                feed.go_live(self)
            else:
                # A private library always reads the journal, and is woken when there is more.
                await self._wait()
            return []
        if self.position < feed.floor:
            raise GoneError(self.position, feed.floor)
        entries = await asyncio.to_thread(feed.journal.page, self.position, feed.head)
        found: list[FeedDelivery] = []
        for place, entry in enumerate(entries):
            found += self._taken(entry)
            if self.private is not None and self.private.has_more:
                self.position = entry.seq
                return found
            if place % CHUNK == CHUNK - 1:
                await asyncio.sleep(0)
        self.position = entries[-1].seq if entries else feed.head
        return found

    def _taken(self, entry: JournalEntry) -> list[FeedDelivery]:
        """What this subscriber is given of one entry of the journal."""
        if self.private is not None:
            return self.private.read(entry)
        wanted = self.wanted
        if not wanted.admits(entry):
            return []
        if wanted.filter is not None or wanted.allows is not None:
            event = decode(entry.body)
            if wanted.filter is not None and not self._feed.passes(wanted.filter, event):
                return []
            if wanted.allows is not None and not wanted.allows(event):
                return []
        return [delivery_of(entry)]

    def give(self, deliveries: list[FeedDelivery], seq: int) -> None:
        """Hand over what was just written; one that is too slow goes back to the journal."""
        size = self._queued_bytes + sum(len(each.body) for each in deliveries)
        has_room = size <= WAITING_BYTES or (not self._queue and len(deliveries) == 1)
        if has_room and len(self._queue) + len(deliveries) <= self._feed.most_waiting:
            self._queue.extend(deliveries)
            self._queued_bytes = size
            self.position = seq
        else:
            # What waits is in the journal: it is read from there, behind what was given last.
            if self._queue:
                self.position = int(self._queue[0].id) - 1
                self._clear()
            self._feed.leave_live(self)
        self._ready.set()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._ready.wait()
        except TimeoutError:
            self._is_idle = True
        self._ready.clear()

    @property
    def first_id(self) -> str:
        """The id from which it goes on if it is given nothing."""
        return str(self._first) if self.private is None else self.private.first_id

    @property
    def passed(self) -> int:
        """The last entry that it has been given, or that it did not want.

        Between two batches, this is where another subscriber of the kind can go on.
        """
        return self._feed.head if self.is_live and not self._queue else self.position

    def wake(self) -> None:
        self._ready.set()

    def close(self) -> None:
        self._closed = True
        self._feed.remove(self)
        self._ready.set()


def delivery_of(entry: JournalEntry) -> FeedDelivery:
    return FeedDelivery(str(entry.seq), KIND_NAMES[entry.kind], entry.library, entry.body)


class GoneError(UsageError):
    """A subscriber names a number that the journal no longer holds."""

    def __init__(self, asked: int, floor: int) -> None:
        self.asked, self.floor = asked, floor
        super().__init__(
            f"entries up to {floor} are no longer in the journal, and {asked} was asked for: leave"
            " out the last event id to go on from now, or ask the history for what is missing"
        )


class Feed:
    """`head` is the last entry that was handed out, `floor` the last that is gone."""

    def __init__(
        self,
        journal: ServerJournal,
        history: History,
        most_waiting: int,
        most_keys: int,
        taken: Callable[[int], None],
        figures: StationFigures,
    ) -> None:
        self.journal = journal
        self.most_waiting = most_waiting
        self.most_keys = most_keys
        self.head = journal.last
        self.floor = max(0, journal.first - 1)
        self.subscribers: dict[int, Subscriber] = {}
        self.figures = figures
        self._history = history
        self._taken = taken
        self._live: dict[int, Subscriber] = {}
        self._unfiltered: dict[int, Subscriber] = {}
        self._temporal: dict[int, Subscriber] = {}
        self._index = Index(ontology=history.ontology)
        self._numbers = 0
        self._batches: deque[tuple[list[Live], int]] = deque()
        self._is_ready = asyncio.Event()

    # --- subscribers ----------------------------------------------------------------------------

    def add(self, wanted: SubscriberWish, after: int | None = None) -> Subscriber:
        """A subscriber behind a number; without one, from now on."""
        self._numbers += 1
        subscriber = Subscriber(self, self._numbers, wanted, self.head if after is None else after)
        self.subscribers[subscriber.number] = subscriber
        return subscriber

    def remove(self, subscriber: Subscriber) -> None:
        self.subscribers.pop(subscriber.number, None)
        self.leave_live(subscriber)

    def go_live(self, subscriber: Subscriber) -> None:
        """From the next entry on, the subscriber is handed what it wants."""
        wanted = subscriber.wanted
        if wanted.temporal:
            self._temporal[subscriber.number] = subscriber
        elif wanted.filter is None:
            self._unfiltered[subscriber.number] = subscriber
        else:
            self._index.add(subscriber.number, wanted.filter)
        self._live[subscriber.number] = subscriber
        subscriber.is_live = True

    def leave_live(self, subscriber: Subscriber) -> None:
        number = subscriber.number
        if self._live.pop(number, None) is None:
            return
        subscriber.is_live = False
        if number in self._index:
            self._index.remove(number)
        self._unfiltered.pop(number, None)
        self._temporal.pop(number, None)

    def passes(self, filter_: Filter, event: Event) -> bool:
        """Whether an event matches a filter, with the history as it stands."""
        return filter_.matches(event, self._history, self._history.ontology)

    # --- entries --------------------------------------------------------------------------------

    def of_use(self, found: list[FeedDelivery]) -> list[FeedDelivery]:
        """Deliveries without those whose events have expired, which are counted."""
        if not any(_EXPIRES in each.body for each in found):
            return found
        now = time.time_ns() // 1000
        kept = [
            each
            for each in found
            if _EXPIRES not in each.body or not has_expired(decode(each.body), now)
        ]
        self.figures.expired += len(found) - len(kept)
        return kept

    def extend(self, live: list[Live], weight: int) -> None:
        """Entries that were just written, of some weight. In the event loop."""
        self._batches.append((live, weight))
        self._is_ready.set()

    async def run(self) -> None:
        """Hand out entries for ever; cancelled at the end."""
        while True:
            await self._is_ready.wait()
            self._is_ready.clear()
            while self._batches:
                live, weight = self._batches.popleft()
                if not self._live:
                    self._hand_out(live)
                    self._taken(weight)
                    await asyncio.sleep(0)
                    continue
                for begin in range(0, len(live), CHUNK):
                    self._hand_out(live[begin : begin + CHUNK])
                    self._taken(weight_of(live[begin : begin + CHUNK]))
                    await asyncio.sleep(0)

    def _hand_out(self, live: list[Live]) -> None:
        given: dict[int, list[FeedDelivery]] = {}
        if self._live:
            for each in live:
                if each.event is not None:
                    self._match(each.entry, each.event, each.matched, given)
        self.head = live[-1].entry.seq
        for number, deliveries in given.items():
            self._live[number].give(deliveries, self.head)
        for subscriber in list(self.subscribers.values()):
            if not subscriber.is_live:
                subscriber.wake()

    def _match(
        self,
        entry: JournalEntry,
        event: Event,
        matched: tuple[int, ...],
        given: dict[int, list[FeedDelivery]],
    ) -> None:
        numbers = [*self._unfiltered]
        if matched:
            numbers += [each for each in matched if each in self._temporal]
        if len(self._index):
            numbers += self._index.match(event)
        delivery: FeedDelivery | None = None
        for number in numbers:
            wanted = self._live[number].wanted
            if wanted.admits(entry):
                if wanted.allows is not None and not wanted.allows(event):
                    continue
                if delivery is None:
                    delivery = delivery_of(entry)
                given.setdefault(number, []).append(delivery)

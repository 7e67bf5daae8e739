"""A link: one service of a gateway, kept connected, with what is on its way to it and from it.

A link makes an adapter, connects it, and runs five tasks over it: it receives events and hands them
to the gateway, publishes what is queued for the service, acknowledges what all destinations have
confirmed, follows what is wanted from the service, and exchanges control messages. When any of them
fails, the adapter is closed and a new one made after a pause that grows from try to try. What was
queued stays queued. What was not acknowledged comes again, and is told from new events by its
identity.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from ensue.errors import EnsueError, EventError, LinkError, UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import Adapter, Incoming, Outgoing, RefusedError, Service
from ensue.federation.counts import Counts, Seen
from ensue.federation.ending import end
from ensue.federation.messages.attributes import expiry_of, identity_of
from ensue.subscriptions import Filter

MOST_IN_FLIGHT = 4000
"""Events of one service that wait for their destinations; then no more are received."""
MOST_RESTING = 3000
"""Events that a link keeps which carries none."""
MOST_AT_ONCE = 500
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
_CONTROL_KEPT = 1000


@dataclass(eq=False, slots=True)
class Ticket:
    """A received event until all its destinations have it; then `token` is acknowledged."""

    link: Link
    session: int
    token: Any
    waiting: int = 0

    def confirm(self) -> None:
        self.waiting -= 1
        if self.waiting <= 0:
            self.link.complete(self)


@dataclass(eq=False, slots=True)
class Queued:
    """An event for the service, and all who wait for it to be there."""

    event: Event
    in_transit: bool
    identity: int
    tickets: list[Ticket] = field(default_factory=list)


class Listener(Protocol):
    """The gateway, as its links see it."""

    def route(self, link: Link, incoming: Sequence[Incoming]) -> None: ...

    def heard(self, link: Link, message: bytes) -> None: ...

    def connected(self, link: Link) -> None: ...


class Link:
    def __init__(self, service: Service, make: Callable[[Service], Adapter]) -> None:
        self.service = service
        self.counts = Counts()
        self.seen = Seen()
        self.is_connected = asyncio.Event()
        self.unusable: EnsueError | None = None
        """A mistake in the settings, which trying again does not mend."""
        self._make = make
        self._adapter: Adapter | None = None
        self._session = 0
        self._queue: deque[Queued] = deque()
        self._queued: dict[int, Queued] = {}
        self._filled = asyncio.Event()
        self._tickets: deque[Ticket] = deque()
        self._resting: deque[tuple[float, Incoming, Ticket]] = deque()
        self._held: dict[int, tuple[float, Event, bool]] = {}
        self._done: list[Any] = []
        self._acknowledging: list[Any] = []
        self._to_acknowledge = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._control: deque[bytes] = deque(maxlen=_CONTROL_KEPT)
        self._to_tell = asyncio.Event()
        self._wanted: list[Filter] = []
        self._may_forget = False
        self._to_follow = asyncio.Event()
        self._in_force = asyncio.Event()
        self._is_receiving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.service.name

    @property
    def in_flight(self) -> int:
        """Events of this service that are not acknowledged yet."""
        return len(self._tickets)

    @property
    def waiting(self) -> int:
        """Events that wait to be published at this service."""
        return len(self._queue)

    # --- the gateway's side -------------------------------------------------------------------

    def start(self, listener: Listener) -> None:
        self._task = asyncio.create_task(self._run(listener), name=f"link {self.name}")

    async def stop(self, patience: float) -> None:
        """Receive no more, let what is on its way arrive if it can, and end the connection."""
        self._is_receiving.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while self.is_connected.is_set() and self._is_busy():
                    await asyncio.sleep(0.01)
        if self._task is not None:
            await end([self._task])

    def _is_busy(self) -> bool:
        on_its_way = len(self._tickets) - len(self._resting)
        return bool(self._queue or on_its_way > 0 or self._done or self._acknowledging)

    def receive(self) -> None:
        """Begin to hand over events: the gateway knows by now who wants them."""
        self._is_receiving.set()

    def pause(self) -> None:
        self._is_receiving.clear()

    def want(self, wanted: list[Filter], may_forget: bool) -> None:
        """What is wanted elsewhere of this service. Nothing: the service may forget the gateway,
        unless those who wanted it may only be late to say so again."""
        if wanted == self._wanted and may_forget == self._may_forget:
            return
        self._wanted, self._may_forget = wanted, may_forget
        self._in_force.clear()
        self._to_follow.set()

    async def in_force(self, patience: float) -> bool:
        """Wait until what is wanted is told to the service."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._in_force.wait()
        return self._in_force.is_set()

    def send(self, event: Event, in_transit: bool, identity: int, ticket: Ticket | None) -> bool:
        """Queue an event for the service, once; tell whether it is new there."""
        if identity in self.seen:
            self.counts.duplicates += 1
            if ticket is not None:
                ticket.confirm()
            return False
        queued = self._queued.get(identity)
        if queued is None:
            queued = self._queued[identity] = Queued(event, in_transit, identity)
            self._queue.append(queued)
            self._filled.set()
            is_new = True
        else:
            self.counts.duplicates += 1
            queued.in_transit = queued.in_transit and in_transit
            is_new = False
        if ticket is not None:
            queued.tickets.append(ticket)
        return is_new

    def tell(self, message: bytes) -> None:
        self._control.append(message)
        self._to_tell.set()

    def ticket(self, token: Any) -> Ticket:
        made = Ticket(self, self._session, token)
        self._tickets.append(made)
        if len(self._tickets) >= MOST_IN_FLIGHT:
            self._has_room.clear()
        return made

    def complete(self, ticket: Ticket) -> None:
        """Acknowledge in order: services that keep a position know no other way."""
        if ticket.session != self._session:
            return
        while self._tickets and self._tickets[0].waiting <= 0:
            self._done.append(self._tickets.popleft().token)
        if self._done:
            self._to_acknowledge.set()
        if len(self._tickets) < MOST_IN_FLIGHT:
            self._has_room.set()

    def rest(self, incoming: Incoming) -> None:
        """Keep an event of a link that carries none: another gateway brings it where it is wanted.

        If that one fails, the event is still here when this link takes its place.
        """
        if incoming.event is not None:
            self.note(identity_of(incoming.event))
        ticket = self.ticket(incoming.token)
        ticket.waiting = 1
        self._resting.append((time.monotonic(), incoming, ticket))
        while len(self._resting) > MOST_RESTING:
            self._resting.popleft()[2].confirm()

    def hold(self, event: Event, in_transit: bool, identity: int) -> None:
        """Keep an event for a service that another gateway brings it to, until it is seen there."""
        if identity not in self.seen:
            self._held[identity] = time.monotonic(), event, in_transit
            if len(self._held) > MOST_RESTING:
                self._held.pop(next(iter(self._held)))

    def note(self, identity: int) -> None:
        """The service has the event."""
        self.seen.add(identity)
        self._held.pop(identity, None)

    def release(self, before: float) -> None:
        """Let go of events that others must have brought on by now."""
        while self._resting and self._resting[0][0] < before:
            self._resting.popleft()[2].confirm()
        while self._held and next(iter(self._held.values()))[0] < before:
            self._held.pop(next(iter(self._held)))

    def send_held(self) -> None:
        """The link carries events from now on: what was kept for the service goes there."""
        held, self._held = self._held, {}
        for identity, (_, event, in_transit) in held.items():
            self.send(event, in_transit, identity, None)

    def wake(self) -> list[tuple[Incoming, Ticket]]:
        """The events that were kept, for a link that carries events from now on."""
        kept = [(incoming, ticket) for _, incoming, ticket in self._resting]
        self._resting.clear()
        return kept

    async def announce(self, offered: Filter, is_offered: bool) -> None:
        if self._adapter is not None:
            if is_offered:
                await self._adapter.announce(offered)
            else:
                await self._adapter.unannounce(offered)

    async def lag(self) -> int | None:
        adapter = self._adapter
        if adapter is None or not self.is_connected.is_set():
            return None
        try:
            return await adapter.lag()
        except EnsueError:
            return None

    # --- the service's side -------------------------------------------------------------------

    async def _run(self, listener: Listener) -> None:
        pause = FIRST_PAUSE
        while True:
            began = time.monotonic()
            adapter = self._make(self.service)
            try:
                await self._serve(adapter, listener)
            except UsageError as error:
                self.unusable = error
                self._note(error)
            except LinkError as error:
                self._note(error)
            # A driver's own mistake must not end the link; it is told like any other trouble.
            except Exception as error:
                self._note(LinkError(f"service `{self.name}`: {type(error).__name__}: {error}"))
            finally:
                self.is_connected.clear()
                self._adapter = None
                with suppress(Exception):
                    await adapter.close()
            if time.monotonic() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            # Not all gateways of a service that comes back are to come in the same moment.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, LONGEST_PAUSE)
            self.counts.reconnects += 1

    def _note(self, error: EnsueError) -> None:
        self.counts.last_error = str(error)

    async def _serve(self, adapter: Adapter, listener: Listener) -> None:
        await adapter.connect()
        if adapter.capabilities.recalls:
            self.seen.update(map(identity_of, await adapter.recall()))
        self._begin_session()
        self._adapter = adapter
        listening = asyncio.Event()
        work: list[Coroutine[Any, Any, None]] = [
            self._follow(adapter, listening),
            self._receive(adapter, listener, listening),
            self._publish(adapter),
            self._acknowledge(adapter),
            self._speak(adapter),
            self._hear(adapter, listener),
        ]
        tasks = [asyncio.create_task(each) for each in work]
        self.is_connected.set()
        self.unusable = None
        listener.connected(self)
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for each in ended:
                each.result()
        finally:
            await end(tasks)

    def _begin_session(self) -> None:
        """What was on its way from the service comes again; what waits for it may be there."""
        self._session += 1
        self._tickets.clear()
        self._resting.clear()
        self._done.clear()
        self._acknowledging.clear()
        self._has_room.set()
        self._to_follow.set()
        self._in_force.clear()
        for _ in range(len(self._queue)):
            queued = self._queue.popleft()
            if queued.identity in self.seen:
                self._confirm(queued)
            else:
                self._queue.append(queued)

    async def _follow(self, adapter: Adapter, listening: asyncio.Event) -> None:
        while True:
            await self._to_follow.wait()
            self._to_follow.clear()
            wanted, may_forget = self._wanted, self._may_forget
            if wanted:
                await adapter.listen(wanted)
                listening.set()
            elif may_forget:
                listening.clear()
                await adapter.unlisten()
            if not self._to_follow.is_set():
                self._in_force.set()

    async def _receive(
        self, adapter: Adapter, listener: Listener, listening: asyncio.Event
    ) -> None:
        await listening.wait()
        coming = asyncio.create_task(adapter.receive())
        try:
            held, coming = await self._look_ahead(adapter, coming)
            if held:
                self.counts.received += len(held)
                listener.route(self, held)
            while True:
                # What a driver has handed out must not be let go, so the task is never cancelled
                # while the connection stands.
                incoming = await coming
                await self._is_receiving.wait()
                self.counts.received += len(incoming)
                listener.route(self, incoming)
                await listening.wait()
                await self._has_room.wait()
                coming = asyncio.create_task(adapter.receive())
        finally:
            await end([coming])

    async def _look_ahead(
        self, adapter: Adapter, coming: asyncio.Task[list[Incoming]]
    ) -> tuple[list[Incoming], asyncio.Task[list[Incoming]]]:
        """Events that came before the gateway knows its neighbours.

        They are only noted until then: others may have brought them here while it was away, and it
        may be about to bring them here itself.
        """
        held: list[Incoming] = []
        allowed = asyncio.create_task(self._is_receiving.wait())
        try:
            while not allowed.done() and len(held) < MOST_IN_FLIGHT:
                await asyncio.wait((coming, allowed), return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    held += coming.result()
                    self.seen.update(identity_of(each.event) for each in held if each.event)
                    coming = asyncio.create_task(adapter.receive())
            await allowed
        finally:
            allowed.cancel()
        return held, coming

    async def _publish(self, adapter: Adapter) -> None:
        while True:
            while not self._queue:
                self._filled.clear()
                await self._filled.wait()
            self._drop_expired()
            batch = [self._queue[place] for place in range(min(MOST_AT_ONCE, len(self._queue)))]
            if batch:
                await self._publish_batch(adapter, batch)

    async def _publish_batch(self, adapter: Adapter, batch: list[Queued]) -> None:
        """Publish the events at the head of the queue."""
        try:
            await adapter.publish([Outgoing(each.event, each.in_transit) for each in batch])
        except LinkError as error:
            self._published(batch[: error.confirmed])
            raise
        except (EventError, RefusedError) as error:
            confirmed = getattr(error, "confirmed", 0)
            self._published(batch[:confirmed])
            rest = batch[confirmed:]
            if len(rest) == 1:
                self._note(error)
                self._drop(rest[0], "refused")
                return
            # One of them is at fault, and the others need not wait for it.
            for each in rest:
                await self._publish_batch(adapter, [each])
        else:
            self._published(batch)

    def _published(self, batch: Sequence[Queued]) -> None:
        for each in batch:
            self._queue.popleft()
            self.counts.sent += 1
            self.seen.add(each.identity)
            self._confirm(each)

    def _drop_expired(self) -> None:
        now = time.time_ns() // 1000
        while self._queue:
            expiry = expiry_of(self._queue[0].event)
            if expiry is None or expiry > now:
                return
            self._drop(self._queue[0], "expired")

    def _drop(self, queued: Queued, reason: str) -> None:
        self.counts.dropped[reason] += 1
        self._queue.popleft()
        self._confirm(queued)

    def _confirm(self, queued: Queued) -> None:
        self._queued.pop(queued.identity, None)
        for each in queued.tickets:
            each.confirm()

    async def _acknowledge(self, adapter: Adapter) -> None:
        while True:
            await self._to_acknowledge.wait()
            self._to_acknowledge.clear()
            self._acknowledging, self._done = self._done, []
            if self._acknowledging:
                await adapter.acknowledge(self._acknowledging)
                self._acknowledging = []

    async def _speak(self, adapter: Adapter) -> None:
        while True:
            await self._to_tell.wait()
            self._to_tell.clear()
            while self._control:
                await adapter.tell(self._control[0])
                self._control.popleft()

    async def _hear(self, adapter: Adapter, listener: Listener) -> None:
        while True:
            for message in await adapter.hear():
                listener.heard(self, message)

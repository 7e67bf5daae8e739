"""A link: one service of a gateway, kept connected, with what is on its way to it and from it.

A link makes an adapter, connects it, and runs six tasks over it: it receives events and hands them
to the gateway, publishes what is queued for the service, acknowledges what all destinations have
confirmed, follows what is wanted from the service, and sends and hears control messages. When any
of them fails, the adapter is closed and a new one made after a pause that grows from try to try.
What was queued stays queued. What was not acknowledged comes again, and is told from new events by
its identity.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ensue.errors import EnsueError, EventError, LinkError, UsageError
from ensue.federation.adapters.base import (
    Adapter,
    Incoming,
    Outgoing,
    RefusedError,
    Service,
    broken,
)
from ensue.federation.ending import end
from ensue.federation.links.bounds import USUAL, Bounds
from ensue.federation.links.counts import ServiceCounts
from ensue.federation.links.outbox import Queued, ServiceOutbox
from ensue.federation.links.receipts import Receipts
from ensue.federation.links.seen import Seen
from ensue.federation.messages.attributes import identity_of
from ensue.subscriptions import Filter

MOST_AT_ONCE = 500
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
_CONTROL_KEPT = 1000


class Received(NamedTuple):
    """A message with the identity of its event. `is_old`: the event was known to be at the service,
    so that others may have brought it on already."""

    incoming: Incoming
    identity: int | None
    is_old: bool


class LinkOwner(Protocol):
    """The gateway, as its links see it."""

    def route(self, link: ServiceLink, received: Sequence[Received]) -> None: ...

    def heard(self, link: ServiceLink, message: bytes) -> None: ...

    def connected(self, link: ServiceLink) -> None: ...

    def keep(self) -> None:
        """Events are about to be acknowledged: let what is known of them outlive the process."""

    def carried(self, link: ServiceLink, identities: Sequence[int]) -> None:
        """Events have been acknowledged."""


class ServiceLink:
    def __init__(
        self,
        service: Service,
        make: Callable[[Service], Adapter],
        bounds: Bounds = USUAL,
        patience: float = 10.0,
        seen: Path | None = None,
    ) -> None:
        self.service = service
        self.bounds = bounds
        self.counts = ServiceCounts()
        self.receipts = Receipts(bounds)
        self.outbox = ServiceOutbox(self.counts, bounds, Seen(bounds.seen, seen))
        self.is_connected = asyncio.Event()
        self.was_connected = False
        """Whether the service has ever been there: before, nothing is meant for it."""
        self.unusable: EnsueError | None = None
        """A mistake in the settings, which trying again does not mend."""
        self._make = make
        self._adapter: Adapter | None = None
        self._control: deque[bytes] = deque(maxlen=_CONTROL_KEPT)
        self._to_tell = asyncio.Event()
        self._wanted: list[Filter] = []
        self._may_forget = False
        self._to_follow = asyncio.Event()
        self._in_force = asyncio.Event()
        self._is_receiving = asyncio.Event()
        self._is_listening = asyncio.Event()
        self._patience = patience
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.service.name

    # --- the gateway's side -------------------------------------------------------------------

    def start(self, listener: LinkOwner) -> None:
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
        return bool(len(self.outbox) or self.receipts.is_busy)

    def receive(self) -> None:
        """Begin to hand over events: the gateway knows by now which services want them."""
        self._is_receiving.set()

    def want(self, wanted: list[Filter], may_forget: bool) -> None:
        """What is wanted elsewhere of this service. Nothing: the service may forget the gateway,
        unless a service that wanted it may only be late to ask again."""
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

    def tell(self, message: bytes) -> None:
        self._control.append(message)
        self._to_tell.set()

    @property
    def can_be_asked(self) -> bool:
        """Whether the service itself tells which events it has."""
        return self._adapter is not None and self._adapter.capabilities.recalls

    async def catch_up(self, pause: float) -> bool:
        """Learn which events others have brought to the service until now, by asking it or by
        receiving them for a while; false if the connection is lost meanwhile."""
        adapter = self._adapter
        if adapter is None:
            return False
        if adapter.capabilities.sees_ahead and self._is_listening.is_set():
            return await self._look_ahead(adapter)
        if not adapter.capabilities.recalls:
            await asyncio.sleep(pause)
            return adapter is self._adapter
        try:
            known = await adapter.recall()
        except EnsueError:
            return False
        self.outbox.seen.update(map(identity_of, known))
        return adapter is self._adapter

    async def _look_ahead(self, adapter: Adapter) -> bool:
        """Learn which events stand at the service that have not been received yet."""
        try:
            async with asyncio.timeout(self._patience):
                async for events in adapter.ahead():
                    self.outbox.seen.update(map(identity_of, events))
        except (EnsueError, TimeoutError):
            return False
        return adapter is self._adapter

    async def announce(self, offered: Filter, is_offered: bool) -> bool:
        """Tell the service of an announcement or of its end; whether the service carries it now."""
        if self._adapter is None or not self.is_connected.is_set():
            return False
        if is_offered:
            return await self._adapter.announce(offered)
        await self._adapter.unannounce(offered)
        return False

    async def lag(self) -> int | None:
        adapter = self._adapter
        if adapter is None or not self.is_connected.is_set():
            return None
        try:
            return await adapter.lag()
        except EnsueError:
            return None

    # --- the service's side -------------------------------------------------------------------

    async def _run(self, listener: LinkOwner) -> None:
        pause = FIRST_PAUSE
        while True:
            began = asyncio.get_running_loop().time()
            adapter = self._make(self.service)
            try:
                await self._serve(adapter, listener)
            except UsageError as error:
                self.unusable = error
                self._note(error)
            except LinkError as error:
                self._note(error)
            # A driver's own mistake must not end the link; it is told like any other trouble.
            except asyncio.CancelledError as error:
                if _is_ending():
                    raise
                self._note(broken(self.service, "a driver has given up", error))
            except Exception as error:
                self._note(broken(self.service, type(error).__name__, error))
            finally:
                self.is_connected.clear()
                self._adapter = None
                with suppress(Exception):
                    await adapter.close()
            if asyncio.get_running_loop().time() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            # Not all gateways of a service that comes back are to come in the same moment.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, LONGEST_PAUSE)
            self.counts.reconnects += 1

    def _note(self, error: EnsueError) -> None:
        self.counts.last_error = str(error)

    async def _serve(self, adapter: Adapter, listener: LinkOwner) -> None:
        await adapter.connect()
        if adapter.capabilities.recalls:
            self.outbox.seen.update(map(identity_of, await adapter.recall()))
        self._begin_session()
        self._adapter = adapter
        self._is_listening.clear()
        work: list[Coroutine[Any, Any, None]] = [
            self._follow(adapter),
            self._receive(adapter, listener),
            self._publish(adapter),
            self._acknowledge(adapter, listener),
            self._speak(adapter),
            self._hear(adapter, listener),
        ]
        tasks = [asyncio.create_task(each) for each in work]
        self.is_connected.set()
        self.was_connected = True
        self.unusable = None
        listener.connected(self)
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for each in ended:
                each.result()
        finally:
            await end(tasks)

    def _begin_session(self) -> None:
        self.receipts.begin_session()
        self.outbox.begin_session()
        self._to_follow.set()
        self._in_force.clear()

    async def _follow(self, adapter: Adapter) -> None:
        while True:
            await self._to_follow.wait()
            self._to_follow.clear()
            wanted, may_forget = self._wanted, self._may_forget
            if wanted:
                await adapter.listen(wanted)
                self._is_listening.set()
            elif may_forget:
                self._is_listening.clear()
                await adapter.unlisten()
            if not self._to_follow.is_set():
                self._in_force.set()

    async def _receive(self, adapter: Adapter, listener: LinkOwner) -> None:
        await self._is_listening.wait()
        coming = asyncio.create_task(self._next(adapter))
        try:
            held, coming = await self._wait_to_receive(adapter, coming)
            if held:
                listener.route(self, held)
            while True:
                # What a driver has handed out must not be let go, so the task is never cancelled
                # while the connection stands.
                listener.route(self, await coming)
                await self._is_listening.wait()
                await self.receipts.has_room.wait()
                coming = asyncio.create_task(self._next(adapter))
        finally:
            await end([coming])

    async def _next(self, adapter: Adapter) -> list[Received]:
        """The next events. Which of them the service was known to have is told before anything
        else can happen, and all are known from here on."""
        came = await adapter.receive()
        self.counts.received += len(came)
        found = []
        for each in came:
            if each.event is None:
                found.append(Received(each, None, False))
                continue
            identity = identity_of(each.event)
            found.append(Received(each, identity, identity in self.outbox.seen))
            self.outbox.note(identity)
        return found

    async def _wait_to_receive(
        self, adapter: Adapter, coming: asyncio.Task[list[Received]]
    ) -> tuple[list[Received], asyncio.Task[list[Received]]]:
        """Events that came before the gateway knows its neighbours.

        They are only noted until then: others may have brought them here while it was away, and it
        may be about to bring them here itself.
        """
        held: list[Received] = []
        allowed = asyncio.create_task(self._is_receiving.wait())
        try:
            while not allowed.done() and len(held) < self.bounds.in_flight:
                await asyncio.wait((coming, allowed), return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    held += [each._replace(is_old=True) for each in coming.result()]
                    coming = asyncio.create_task(self._next(adapter))
            await allowed
        finally:
            allowed.cancel()
        return held, coming

    async def _publish(self, adapter: Adapter) -> None:
        while True:
            await self._publish_batch(adapter, await self.outbox.head(MOST_AT_ONCE))

    async def _publish_batch(self, adapter: Adapter, batch: list[Queued]) -> None:
        """Publish the events at the head of the queue."""
        try:
            await adapter.publish([Outgoing(each.event, each.in_transit) for each in batch])
        except LinkError as error:
            self.outbox.published(batch[: error.confirmed])
            raise
        except (EventError, RefusedError) as error:
            confirmed = getattr(error, "confirmed", 0)
            self.outbox.published(batch[:confirmed])
            rest = batch[confirmed:]
            if len(rest) == 1:
                self._note(error)
                self.outbox.drop(rest[0], "refused")
                return
            # One of them is at fault, and the others need not wait for it.
            for each in rest:
                await self._publish_batch(adapter, [each])
        else:
            self.outbox.published(batch)

    async def _acknowledge(self, adapter: Adapter, listener: LinkOwner) -> None:
        receipts = self.receipts
        while True:
            await receipts.to_acknowledge.wait()
            if tokens := receipts.acknowledging():
                listener.keep()
                await adapter.acknowledge(tokens)
                listener.carried(self, receipts.acknowledged())

    async def _speak(self, adapter: Adapter) -> None:
        while True:
            await self._to_tell.wait()
            self._to_tell.clear()
            while self._control:
                await adapter.tell(self._control[0])
                self._control.popleft()

    async def _hear(self, adapter: Adapter, listener: LinkOwner) -> None:
        while True:
            for message in await adapter.hear():
                listener.heard(self, message)


def _is_ending() -> bool:
    """Whether the task at work was told to end, and not only a driver's own within it."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0

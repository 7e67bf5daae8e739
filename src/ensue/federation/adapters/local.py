"""Services that are objects of this process: channels and brokers, found by name.

A program hands its own over with `provide`; a name that was not provided gets a new one. Events
in transit and control messages do not go over the object itself, whose clients would see them, but
beside it, over a service in memory of the same name.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import Adapter, Incoming, Outgoing, Service
from ensue.federation.adapters.memory.adapter import MemoryAdapter
from ensue.subscriptions import Filter

_provided: dict[str, Any] = {}


def provide(name: str, service: Any) -> None:
    """Let services with the address `channel:NAME` or `broker:NAME` be this object."""
    _provided[name] = service


def provided(name: str, kind: type, make: Callable[[str], Any]) -> Any:
    """The object of a name; a new one if none was provided."""
    found = _provided.get(name)
    if found is None:
        found = _provided[name] = make(name)
    if not isinstance(found, kind):
        raise UsageError(f"`{name}` is provided, and is no {kind.__name__}")
    return found


class LocalAdapter(Adapter):
    """What channels and brokers share."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._name = service.url.partition(":")[2].strip("/") or service.name
        self._side = MemoryAdapter(
            replace(service, url=f"memory:beside {service.kind} {self._name}")
        )
        self._loop: asyncio.AbstractEventLoop | None = None

    async def connect(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._side.connect()

    async def listen(self, wanted: Sequence[Filter]) -> None:
        await self._side.listen(wanted)
        self.subscribe(self.pushed_down(wanted))

    async def unlisten(self) -> None:
        self.unsubscribe()
        await self._side.unlisten()

    async def receive(self) -> list[Incoming]:
        return await self._side.receive()

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        places = [each for each in tokens if each is not None]
        if places:
            await self._side.acknowledge(places)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        for each in outgoing:
            if each.in_transit:
                await self._side.publish([each])
            else:
                self.push(each.event)
        await asyncio.sleep(0)

    async def tell(self, message: bytes) -> None:
        await self._side.tell(message)

    async def hear(self) -> list[bytes]:
        return await self._side.hear()

    async def close(self) -> None:
        self.unsubscribe()
        await self._side.close()

    def deliver(self, event: Event) -> None:
        """Called by the service with its events, in whatever thread."""
        if self._loop is not None and not self._loop.is_closed():
            inbox = self._side.events
            self._loop.call_soon_threadsafe(inbox.put, Incoming(event, None, False))

    @abstractmethod
    def subscribe(self, wanted: list[Filter]) -> None:
        """Call `deliver` once with each event that a filter matches, in place of earlier ones."""

    @abstractmethod
    def unsubscribe(self) -> None: ...

    @abstractmethod
    def push(self, event: Event) -> None: ...

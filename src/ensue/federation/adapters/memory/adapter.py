"""Events to and from a service in the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

from ensue.errors import LinkError
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.federation.adapters.base import Adapter, Capabilities, Incoming, Outgoing, Service
from ensue.federation.adapters.inbox import Inbox
from ensue.federation.adapters.memory.hub import HubConnection, hub
from ensue.subscriptions import Filter

RECALLED = 2000


class MemoryAdapter(Adapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="memory",
        driver="none",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=True,
        recalls=True,
        pushes_down="nothing",
        sees_ahead=True,
        encodings=("structured",),
    )

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._hub = hub(service.url.removeprefix("memory:") or service.name)
        self._connection = HubConnection(service.gateway)

    @property
    def events(self) -> Inbox[Incoming]:
        """What is on the way to the gateway."""
        return self._connection.events

    async def connect(self) -> None:
        self._check()
        self._connection = HubConnection(self.service.gateway)
        self._hub.connections.append(self._connection)

    async def listen(self, wanted: Sequence[Filter]) -> None:
        self._hub.listen(self._connection)

    async def unlisten(self) -> None:
        self._connection.is_listening = False
        self._hub.acknowledged.pop(self.service.gateway, None)

    async def receive(self) -> list[Incoming]:
        return await self._connection.events.take()

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        self._check()
        if self.service.gateway in self._hub.acknowledged:
            self._hub.acknowledged[self.service.gateway] = tokens[-1] + 1

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        await asyncio.sleep(0)
        for each in outgoing:
            self._check()
            self._hub.publish(each)
            if self._hub.unconfirmed:
                self._hub.unconfirmed -= 1
                if not self._hub.unconfirmed:
                    self._hub.break_off()
                    raise LinkError(f"service `{self._hub.name}`: broken off while publishing")

    async def tell(self, message: bytes) -> None:
        self._check()
        self._hub.tell(message)

    async def hear(self) -> list[bytes]:
        return await self._connection.control.take()

    async def close(self) -> None:
        if self._connection in self._hub.connections:
            self._hub.connections.remove(self._connection)

    async def recall(self) -> list[Event]:
        return [decode(body) for body, _ in self._hub.log[-RECALLED:]]

    async def ahead(self) -> AsyncIterator[Sequence[Event]]:
        await asyncio.sleep(0)
        self._check()
        waiting = self._connection.events.waiting()
        yield [each.event for each in waiting if each.event is not None]

    async def lag(self) -> int | None:
        return len(self._connection.events)

    def _check(self) -> None:
        if self._hub.is_down:
            raise LinkError(f"service `{self._hub.name}`: connection refused")

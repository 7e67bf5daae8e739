"""Events to and from channels of Redis (pub/sub), which keep nothing: a client that is away misses
what is sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar

from ensue.events.cloudevents import encode
from ensue.federation.adapters.base import (
    Capabilities,
    Incoming,
    Outgoing,
    Service,
)
from ensue.federation.adapters.redis.adapter import RedisAdapter, exceptions
from ensue.federation.ending import end
from ensue.subscriptions import Filter


class PubSubAdapter(RedisAdapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="redis-pubsub",
        driver="redis",
        incoming="at most once",
        outgoing="at most once",
        survives_restart=False,
        recalls=False,
        pushes_down="nothing",
        encodings=("structured",),
        protection=("TLS", "user and password", "client certificate"),
    )

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._listener: Any = None

    async def listen(self, wanted: Sequence[Filter]) -> None:
        if self._listener is not None:
            return
        # A connection of its own: where events wait for room, control messages must not.
        self._listener = self._client.pubsub()
        channels = (self.service.address, self.service.transit_address)
        await self._do("cannot subscribe", self._subscribe(self._listener, *channels))
        self._readers.append(asyncio.create_task(self._read(self._listener)))

    async def unlisten(self) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            return
        await end([self._readers.pop()])
        await self._do("cannot unsubscribe", listener.unsubscribe())
        await self._do("cannot unsubscribe", listener.aclose())

    async def close(self) -> None:
        listener, self._listener = self._listener, None
        await super().close()
        if listener is not None:
            with contextlib.suppress(exceptions.RedisError, OSError):
                await listener.aclose()

    async def receive(self) -> list[Incoming]:
        return await self._events.take()

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        service = self.service
        async with self._client.pipeline(transaction=False) as pipeline:
            for each in outgoing:
                address = service.transit_address if each.in_transit else service.address
                pipeline.publish(address, encode(each.event))
            await self._do("cannot publish", pipeline.execute())

"""A client of a service: it publishes until the service has confirmed, and notes what it sees.

It connects again as often as it must. What a service gives it twice, since it was not acknowledged,
is told by its place there and counts once, where the service has places.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ensue.errors import EnsueError, LinkError
from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Incoming, Outgoing, Service
from ensue.federation.ending import end
from ensue.federation.messages.attributes import PATH

_SECONDS_BETWEEN = 0.2


class Client:
    def __init__(self, table: dict[str, Any]) -> None:
        self.name, self.kind = str(table["name"]), str(table["kind"])
        found = adapter_class(self.kind)
        common = ("name", "kind", "url", "address")
        options = {name: value for name, value in table.items() if name not in common}
        self._service = Service(
            self.name,
            self.kind,
            table["url"],
            table["address"],
            # Its own name makes it another reader than the gateways.
            gateway=f"client-{self.name}",
            options=found.options_type(**options),
        )
        self.seen: Counter[str] = Counter()
        self.how: dict[str, list[str]] = {}
        """Where each event stood, and by which way it came."""
        self._places: set[Any] = set()
        self._adapter: Adapter | None = None
        self._connecting = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self.is_watching = asyncio.Event()

    async def open(self) -> None:
        self._watching = asyncio.create_task(self._watch())
        await self.is_watching.wait()

    async def close(self) -> None:
        if self._watching is not None:
            await end([self._watching])
        adapter, self._adapter = self._adapter, None
        if adapter is not None:
            with suppress(EnsueError):
                await adapter.unlisten()
            await adapter.close()

    async def publish(self, events: Sequence[Event]) -> None:
        """Return once the service has them; what is in doubt is published again."""
        left = list(events)
        while left:
            try:
                adapter = await self.connected()
                await adapter.publish([Outgoing(each) for each in left])
            except LinkError as error:
                left = left[error.confirmed :]
                await asyncio.sleep(_SECONDS_BETWEEN)
            else:
                return

    async def _watch(self) -> None:
        while True:
            try:
                adapter = await self.connected()
                await adapter.listen([ANYTHING])
                self.is_watching.set()
                while True:
                    came = await adapter.receive()
                    for each in came:
                        self._note(each)
                    await adapter.acknowledge([each.token for each in came])
            except LinkError:
                self.is_watching.clear()
                adapter_, self._adapter = self._adapter, None
                if adapter_ is not None:
                    with suppress(Exception):
                        await adapter_.close()
                await asyncio.sleep(_SECONDS_BETWEEN)

    def _note(self, incoming: Incoming) -> None:
        if incoming.event is None or incoming.in_transit:
            return
        place = _place(self.kind, incoming.token)
        if place is None or place not in self._places:
            event = incoming.event
            self.seen[event.id] += 1
            told = f"{time.time():.3f} {place} {event.extensions.get(PATH)}"
            self.how.setdefault(event.id, []).append(told)
        if place is not None:
            self._places.add(place)

    async def connected(self) -> Adapter:
        async with self._connecting:
            if self._adapter is None:
                adapter = adapter_class(self.kind)(self._service)
                try:
                    await adapter.connect()
                except LinkError:
                    await adapter.close()
                    raise
                self._adapter = adapter
            return self._adapter


def _place(kind: str, token: Any) -> Any:
    """Where an event stands at a service that keeps them."""
    if kind == "redis":
        stream, entry = token
        return stream, entry.decode() if isinstance(entry, bytes) else entry
    if kind == "kafka":
        return token
    return token.metadata.sequence.stream if kind == "nats-jetstream" else None

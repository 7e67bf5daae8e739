"""The seam between a site of a placement and its gateway: an adapter for each connection.

It hands over what the site puts out, brings it what comes, tells it that time passes, and lets it
go on when it is behind. What the site is and does is in `attaching`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from ensue.errors import EventError
from ensue.events.event import Event
from ensue.federation.adapters.base import Adapter, Capabilities, Incoming, Outgoing
from ensue.federation.ending import end
from ensue.federation.placement.attaching import SITE, AttachedSite
from ensue.subscriptions import Filter


class SiteAdapter(Adapter):
    """One connection of a gateway to its site."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        kind=SITE,
        driver="none",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=True,
        recalls=True,
        pushes_down="nothing",
        encodings=("structured",),
    )

    def __init__(self, attached: AttachedSite) -> None:
        super().__init__(attached.service)
        self._attached = attached
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self) -> None:
        self._tasks = [asyncio.create_task(each) for each in (self._tick(), self._catch_up())]

    async def listen(self, wanted: Sequence[Filter]) -> None:
        """All that the site puts out is handed over; the gateway knows what is wanted."""

    async def unlisten(self) -> None:
        """Nothing is kept for the gateway."""

    async def receive(self) -> list[Incoming]:
        return await self._attached.incoming.take()

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        self._attached.passed_on(tokens[-1])
        self._attached.keep()

    async def recall(self) -> list[Event]:
        return self._attached.recalled()

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        await self._attached.caught_up()
        try:
            for number, each in enumerate(outgoing):
                try:
                    self._attached.take(each.event)
                except EventError as error:
                    error.confirmed = number  # type: ignore[attr-defined]
                    raise
        finally:
            self._attached.keep()
        await asyncio.sleep(0)

    async def tell(self, message: bytes) -> None:
        """No other gateway is at this service."""

    async def hear(self) -> list[bytes]:
        await asyncio.Event().wait()
        return []

    async def close(self) -> None:
        await end(self._tasks)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._attached.beat)
            self._attached.tick()

    async def _catch_up(self) -> None:
        while True:
            await self._attached.may_go_on.wait()
            self._attached.go_on()
            await asyncio.sleep(0)

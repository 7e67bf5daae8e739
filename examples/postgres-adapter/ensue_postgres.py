"""PostgreSQL as an event service: events over LISTEN and NOTIFY.

A channel of notifications is an address. PostgreSQL keeps notifications for nobody who is away, so
events come and go at most once; one notification has less than 8,000 bytes, and a larger event is
refused.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar

import psycopg
from psycopg import sql

from ensue.events.cloudevents import encode
from ensue.federation.adapters import (
    Adapter,
    Capabilities,
    ControlInbox,
    Inbox,
    Incoming,
    Message,
    Outgoing,
    RefusedError,
    Service,
    broken,
    incoming_of,
    read_structured,
)
from ensue.subscriptions import Filter

LARGEST_BYTES = 7_999
LONGEST_CHANNEL = 63


class PostgresAdapter(Adapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="postgres",
        driver="psycopg",
        incoming="at most once",
        outgoing="at most once",
        survives_restart=False,
        recalls=False,
        pushes_down="nothing",
        encodings=("structured",),
    )
    schemes: ClassVar[tuple[str, ...]] = ("postgresql",)

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._events: Inbox[Incoming] = Inbox()
        self._control = ControlInbox()
        self._listening: Any = None
        self._sending: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._wanted: list[str] = []
        self._changed = asyncio.Event()
        self._in_force = asyncio.Event()

    async def connect(self) -> None:
        service = self.service
        for channel in (service.address, service.transit_address):
            if len(channel.encode()) > LONGEST_CHANNEL:
                raise broken(service, "cannot connect", ValueError(f"`{channel}` is too long"))
        try:
            # Two connections: one is busy with waiting for notifications.
            self._listening = await _connected(service.url)
            self._sending = await _connected(service.url)
            await self._say("LISTEN", service.control_address)
        except psycopg.Error as error:
            await self.close()
            raise broken(service, "cannot connect", error) from None
        self._reader = asyncio.create_task(self._read())

    async def listen(self, wanted: Sequence[Filter]) -> None:  # noqa: ARG002
        # PostgreSQL filters nothing: the gateway does.
        await self._want([self.service.address, self.service.transit_address])

    async def unlisten(self) -> None:
        await self._want([])

    async def receive(self) -> list[Incoming]:
        return await self._events.take()

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        service = self.service
        for number, each in enumerate(outgoing):
            body = encode(each.event)
            if len(body) > LARGEST_BYTES:
                refused = RefusedError(f"`{each.event.id}` has {len(body):,} bytes, not 7,999")
                refused.confirmed = number
                raise refused
            await self._notify(
                service.transit_address if each.in_transit else service.address, body
            )

    async def tell(self, message: bytes) -> None:
        if len(message) <= LARGEST_BYTES:
            await self._notify(self.service.control_address, message)

    async def hear(self) -> list[bytes]:
        return await self._control.take()

    async def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
        for connection in (self._listening, self._sending):
            if connection is not None:
                with contextlib.suppress(psycopg.Error):
                    await connection.close()
        self._listening = self._sending = None

    async def _want(self, channels: list[str]) -> None:
        """Change what is listened to; returns once PostgreSQL has said that it is in force."""
        self._wanted = channels
        self._in_force.clear()
        self._changed.set()
        await self._in_force.wait()

    async def _notify(self, channel: str, body: bytes) -> None:
        try:
            await self._sending.execute("SELECT pg_notify(%s, %s)", (channel, body.decode()))
        except psycopg.Error as error:
            raise broken(self.service, "cannot publish", error) from None

    async def _read(self) -> None:
        """Notifications, for as long as the connection stands, and changes of what is wanted."""
        heard: list[str] = []
        try:
            while True:
                if self._changed.is_set():
                    self._changed.clear()
                    for channel in set(heard) ^ set(self._wanted):
                        await self._say(
                            "LISTEN" if channel in self._wanted else "UNLISTEN", channel
                        )
                    heard = self._wanted
                    self._in_force.set()
                async for each in self._listening.notifies(timeout=0.05):
                    await self._take(each.channel, each.payload.encode())
        except psycopg.Error as error:
            lost = broken(self.service, "the connection is lost", error)
            self._events.fail(lost)
            self._control.fail(lost)
            self._in_force.set()

    async def _take(self, channel: str, body: bytes) -> None:
        if channel == self.service.control_address:
            self._control.put(body)
        elif channel in self._wanted:
            in_transit = channel == self.service.transit_address
            message = Message(body, "application/cloudevents+json", {})
            await self._events.put_when_free(
                incoming_of(lambda m: read_structured(m.body), message, None, in_transit)
            )

    async def _say(self, word: str, channel: str) -> None:
        await self._listening.execute(sql.SQL(f"{word} {{}}").format(sql.Identifier(channel)))


async def _connected(url: str) -> Any:
    return await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=10)

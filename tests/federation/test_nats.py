"""What a NATS server has read by the time that an adapter says it is done."""

from __future__ import annotations

import asyncio
import os
from urllib.parse import urlsplit

import pytest

from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Outgoing, Service

from .conftest import StartServer

pytest.importorskip("nats")


class Relay:
    """Stands before a server, and keeps what clients send."""

    def __init__(self, url: str) -> None:
        self.place = urlsplit(url)
        self.sent = bytearray()

    async def serve(self) -> str:
        server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        return f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _join(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        made = await asyncio.open_connection(self.place.hostname, self.place.port)
        await asyncio.gather(self._pass(client, made[1], True), self._pass(made[0], answers, False))

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, from_client: bool
    ) -> None:
        while data := await source.read(1 << 16):
            if from_client:
                self.sent += data
            target.write(data)
        target.close()


def test_an_answer_is_waited_for_that_comes_behind_what_was_sent(server: StartServer) -> None:
    """A server answers in order: only a ping behind an event tells that it has the event."""

    async def story() -> None:
        relay = Relay(server("nats").url)
        address = f"relayed{os.getpid()}"
        service = Service("s", "nats", await relay.serve(), address, gateway="g")
        adapter = adapter_class("nats")(service)
        await adapter.connect()
        await adapter.listen([ANYTHING])
        assert relay.sent.rindex(b"SUB ") < relay.sent.rindex(b"PING")
        for number in range(20):
            await adapter.publish([Outgoing(Event.of("T", time=1, id=f"number{number}"))])
            assert relay.sent.rindex(b"number%d" % number) < relay.sent.rindex(b"PING")
        await adapter.close()

    asyncio.run(story())

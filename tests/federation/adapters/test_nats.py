"""What a NATS server has read by the time that an adapter says it is done."""

from __future__ import annotations

import asyncio
import os

import pytest

from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Outgoing, Service
from tests.federation.conftest import StartServer
from tests.federation.relays import Relay

pytest.importorskip("nats")


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

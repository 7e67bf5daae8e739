"""Over a slow way to the server: `listen` and `publish` return when the server has it, not before.

What goes beside the slow way is quicker than what was sent over it, so that an adapter which does
not wait for the server's answer loses something.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Outgoing, Service
from tests.federation.conftest import StartServer
from tests.federation.relays import Relay

from .services import OPTIONS, SERVER_OF

KINDS = ("mqtt", "nats", "nats-jetstream", "redis", "redis-pubsub", "amqp")
DELAY = 0.1
_numbers = count(1)


def adapter(kind: str, url: str, address: str, gateway: str) -> Adapter:
    found = adapter_class(kind)
    options = found.options_type(**OPTIONS.get(kind, {}))
    return found(Service(address, kind, url, address, gateway=gateway, options=options))


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(story(), 60)

    asyncio.run(limited())


async def received(reader: Adapter, wanted: int) -> set[str]:
    seen: set[str] = set()
    async with asyncio.timeout(20):
        while len(seen) < wanted:
            seen |= {each.event.id for each in await reader.receive() if each.event}
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_a_subscription_is_in_force_when_listen_returns(kind: str, server: StartServer) -> None:
    url = server(SERVER_OF.get(kind, kind)).url
    address = f"slow{os.getpid()}x{next(_numbers)}"

    async def story() -> None:
        quick = adapter(kind, url, address, "quick")
        slow = adapter(kind, await Relay(url, DELAY).serve(), address, "slow")
        await quick.connect()
        await slow.connect()
        await slow.listen([ANYTHING])
        await quick.publish([Outgoing(Event.of("T", time=1, id=str(n))) for n in range(3)])

        assert await received(slow, 3) == {"0", "1", "2"}
        for each in (quick, slow):
            await each.close()

    run(story)


@pytest.mark.parametrize("kind", KINDS)
def test_every_gateway_hears_control_messages_when_connect_returns(
    kind: str, server: StartServer
) -> None:
    url = server(SERVER_OF.get(kind, kind)).url
    address = f"slow{os.getpid()}x{next(_numbers)}"

    async def story() -> None:
        quick = adapter(kind, url, address, "quick")
        slow = adapter(kind, await Relay(url, DELAY).serve(), address, "slow")
        await quick.connect()
        await slow.connect()
        await quick.tell(b"hello")

        async with asyncio.timeout(20):
            assert await slow.hear() == [b"hello"]
        for each in (quick, slow):
            await each.close()

    run(story)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_published_is_there_though_the_connection_is_cut_at_once(
    kind: str, server: StartServer
) -> None:
    url = server(SERVER_OF.get(kind, kind)).url
    address = f"slow{os.getpid()}x{next(_numbers)}"

    async def story() -> None:
        quick = adapter(kind, url, address, "quick")
        relay = Relay(url, DELAY)
        slow = adapter(kind, await relay.serve(), address, "slow")
        await quick.connect()
        await quick.listen([ANYTHING])
        await slow.connect()
        await slow.publish([Outgoing(Event.of("T", time=1, id=str(n))) for n in range(300)])
        relay.cut()

        assert len(await received(quick, 300)) == 300
        for each in (quick, slow):
            await each.close()

    run(story)

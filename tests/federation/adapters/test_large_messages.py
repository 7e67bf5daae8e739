"""Large messages of real brokers: read in bounded parts, and none is lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Outgoing, Service
from ensue.federation.gateway import Gateway
from tests.federation.conftest import StartServer
from tests.federation.simulation import World

_numbers = count(1)


def event(number: int, size: int) -> Outgoing:
    return Outgoing(Event.of("T", time=1, id=str(number), data={"text": "x" * size}))


def adapter(kind: str, url: str, address: str, gateway: str) -> Adapter:
    return adapter_class(kind)(Service("s", kind, url, address, gateway=gateway))


@pytest.mark.parametrize("scripts", [True, False])
def test_large_entries_of_redis_are_read_few_at_a_time(
    server: StartServer, limit: Callable[..., None], scripts: bool
) -> None:
    pytest.importorskip("redis")

    limit(redis_bytes_at_once=1_000_000)
    limit(recalled_bytes=3_000_000)
    url, address = server("redis").url, f"large{os.getpid()}x{next(_numbers)}"

    async def story() -> tuple[list[str], int, list[str]]:
        one, other = (adapter("redis", url, address, each) for each in ("one", "other"))
        for each in (one, other):
            await each.connect()
        other._reads_many = scripts  # type: ignore[attr-defined]
        await other.listen([ANYTHING])
        for number in range(40):
            await one.publish([event(number, 300_000 if 5 < number < 30 else 10)])
        found: list[str] = []
        most = 0
        async with asyncio.timeout(20):
            while len(found) < 40:
                came = await other.receive()
                most = max(most, sum(each.size for each in came))
                found += [each.event.id for each in came if each.event is not None]
        recalled = [each.id for each in await one.recall()]
        for each in (one, other):
            await each.close()
        return found, most, recalled

    found, most, recalled = asyncio.run(story())

    assert found == [str(number) for number in range(40)]
    assert most < (1_000_000 + 5 * 301_000 if scripts else 8 * 301_000)
    # The latest ones, up to some bytes.
    assert recalled[:10] == [str(number) for number in range(39, 29, -1)]
    assert len(recalled) < 40


def test_events_of_amqp_beyond_the_bound_come_again(
    server: StartServer, limit: Callable[..., None]
) -> None:
    aio_pika = pytest.importorskip("aio_pika")
    limit(waiting_bytes=500_000)
    broker, address = server("amqp"), f"large{os.getpid()}x{next(_numbers)}"

    async def story() -> tuple[list[str], Any]:
        world = World()
        tables = {
            "gateway": {"name": "g", "settling": 0.1},
            "service": [
                {"name": "in", "kind": "amqp", "url": broker.url, "address": address},
                {"name": "out", "kind": "memory", "url": f"memory:{world._run}/out"},
            ],
            "subscribe": [{"at": "out", "from": ["in"]}],
        }
        connection = await aio_pika.connect(broker.url)
        channel = await connection.channel()
        await channel.declare_queue(address, durable=True)
        text = "x" * 100_000
        for number in range(100):
            body = f'{{"id": "{number}", "source": "s", "type": "S", "data": {{"x": "{text}"}}}}'
            await channel.default_exchange.publish(aio_pika.Message(body.encode()), address)
        gateway = Gateway.from_config(tables)
        await gateway.start()
        await world.until(lambda: len(set(world.arrived("out"))) == 100)
        status = next(each for each in gateway.status() if each["service"] == "in")
        await gateway.stop()
        await connection.close()
        return world.arrived("out"), status

    arrived, status = asyncio.run(story())

    assert sorted(set(arrived), key=int) == [str(number) for number in range(100)]
    assert len(arrived) == 100
    assert status["reconnects"] > 0
    assert "the rest comes again" in status["last_error"]

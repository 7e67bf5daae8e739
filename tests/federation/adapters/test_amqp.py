"""Queues of AMQP, as their clients know them."""

from __future__ import annotations

import asyncio
import json

import pytest

from ensue.federation.gateway import Gateway
from tests.federation.conftest import StartServer
from tests.federation.simulation import World

aio_pika = pytest.importorskip("aio_pika")


def test_queues_are_read_and_filled(server: StartServer) -> None:
    broker = server("amqp")

    async def story() -> None:
        world = World()
        office = {"name": "office", "kind": "memory", "url": f"memory:{world._run}/office"}
        tables = {
            "gateway": {"name": "g", "settling": 0.1},
            "service": [
                {"name": "cars", "kind": "amqp", "url": broker.url, "address": "queue.cars"},
                {"name": "out", "kind": "amqp", "url": broker.url, "address": "queue.out"},
                office,
            ],
            "subscribe": [
                {"at": "office", "from": ["cars"], "where": "speed > 50"},
                {"at": "out", "from": ["office"]},
            ],
        }
        connection = await aio_pika.connect(broker.url)
        channel = await connection.channel()
        # Somebody else has declared it, in another way than the gateway would.
        await channel.declare_queue("queue.cars", durable=False)
        gateway = Gateway.from_config(tables)
        await gateway.start()
        for number in range(10):
            body = {"id": str(number), "source": "car", "type": "S", "data": {"speed": 46 + number}}
            await channel.default_exchange.publish(
                aio_pika.Message(json.dumps(body).encode()), "queue.cars"
            )
        await world.until(lambda: len(world.arrived("office")) == 5)
        sent = world.publish("office", note=1)
        queue = await channel.get_queue("queue.out")
        got = None
        async with asyncio.timeout(20):
            while got is None:
                got = await queue.get(fail=False)
        await gateway.stop()
        await connection.close()

        assert world.arrived("office") == ["5", "6", "7", "8", "9"]
        assert json.loads(got.body)["id"] == sent.id

    asyncio.run(story())

"""Loops, parallel gateways and restarts over real brokers of different kinds.

Some nets are given, and some are drawn (`story`); the hunt `real-brokers` goes on.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ensue.events.event import Event
from ensue.federation.gateway import Gateway
from tests.federation.conftest import StartServer

from .brokers import Brokers
from .clients import Client
from .story import Story

_numbers = count(1)


def table(kind: str, url: str, mark: str) -> dict[str, Any]:
    name = f"{kind}-{mark}"
    made = {"name": name, "kind": kind, "url": url, "address": f"topo.{mark}.{kind}"}
    return made | ({"exchange": "fanout"} if kind == "amqp" else {})


def gateway(name: str, services: Sequence[dict[str, Any]], folder: Path) -> Gateway:
    tables: dict[str, Any] = {
        "gateway": {"name": name, "beat": 0.3, "patience": 4.0, "settling": 0.5},
        "service": [dict(each) for each in services],
        "subscribe": [{"at": each["name"]} for each in services],
    }
    return Gateway.from_config(tables, memory=folder / f"{name}.json")


TOPOLOGIES = {
    "parallel": (("mqtt", "redis"), ("mqtt", "redis")),
    "triangle": (("mqtt", "redis"), ("redis", "nats-jetstream"), ("nats-jetstream", "mqtt")),
    "square": (
        ("mqtt", "redis"),
        ("redis", "amqp"),
        ("amqp", "nats-jetstream"),
        ("nats-jetstream", "mqtt", "redis"),
    ),
}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_service_gets_every_event_once(
    topology: str, server: StartServer, tmp_path: Path
) -> None:
    kinds = sorted({kind for names in TOPOLOGIES[topology] for kind in names})
    mark = f"{os.getpid()}x{next(_numbers)}"
    tables = {kind: table(kind, server(kind.partition("-")[0]).url, mark) for kind in kinds}

    async def story() -> None:
        clients = {kind: Client(each) for kind, each in tables.items()}
        await asyncio.gather(*(each.open() for each in clients.values()))

        def made(number: int) -> Gateway:
            names = TOPOLOGIES[topology][number]
            return gateway(f"g{number}", [tables[kind] for kind in names], tmp_path)

        gateways = [made(number) for number in range(len(TOPOLOGIES[topology]))]
        await asyncio.gather(*(each.start() for each in gateways))
        await asyncio.sleep(1.0)
        sent: list[str] = []
        for round_ in range(6):
            for kind, client in clients.items():
                ids = [f"{kind}-{round_}-{number}" for number in range(40)]
                await client.publish([Event.of("T", time=1, id=each, source=kind) for each in ids])
                sent += ids
            await asyncio.sleep(0.05)
            if round_ in (1, 3):
                victim = random.Random(round_).randrange(len(gateways))
                await gateways[victim].stop()
                gateways[victim] = made(victim)
                await gateways[victim].start()

        def missing() -> bool:
            return any(
                not client.seen[each]
                for kind, client in clients.items()
                for each in sent
                if not each.startswith(f"{kind}-")
            )

        end = asyncio.get_running_loop().time() + 25
        while asyncio.get_running_loop().time() < end and missing():
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.0)
        await asyncio.gather(*(each.stop() for each in gateways))
        await asyncio.gather(*(each.close() for each in clients.values()))

        # The client of a service sees its own events too, unless the service leaves them out.
        for kind, client in clients.items():
            others = {each for each in sent if not each.startswith(f"{kind}-")}
            got = {each: times for each, times in client.seen.items() if each in others}
            assert got == dict.fromkeys(others, 1), kind

    async def limited() -> None:
        async with asyncio.timeout(90):
            await story()

    asyncio.run(limited())


QUICK = ["mqtt", "nats", "nats-jetstream", "redis", "redis-pubsub", "zenoh", "channel"]


def tell(story: Story, run: Callable[[], Any]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(240):
            await run()

    asyncio.run(limited())
    assert not story.judged(), str(story)


@pytest.mark.parametrize("seed", range(3))
def test_everybody_gets_what_it_asked_for_in_the_middle_of_restarts(
    seed: int, server: StartServer, tmp_path: Path
) -> None:
    """Three brokers are restarted in the middle of the traffic, which waits for them."""
    story = Story(seed, Brokers(server, _no_kafka), QUICK, tmp_path)

    tell(story, story.run)


@pytest.mark.parametrize("seed", [100, 101])
def test_brokers_of_all_kinds_work_together(
    seed: int, server: StartServer, kafka_servers: str, tmp_path: Path
) -> None:
    class Kafka:
        servers = kafka_servers

    story = Story(seed, Brokers(server, Kafka), [*QUICK, "amqp", "kafka", "kafka"], tmp_path)

    tell(story, lambda: story.run(faults=False))


def _no_kafka() -> Any:
    raise AssertionError("no story here has Kafka")

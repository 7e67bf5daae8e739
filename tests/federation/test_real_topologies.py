"""Loops, parallel gateways and restarts over real brokers of different kinds."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Outgoing, Service
from ensue.federation.gateway import Gateway

from .conftest import StartServer

_numbers = count(1)


class Place:
    """A service with a client of its own, which publishes and notes all that it sees."""

    def __init__(self, kind: str, url: str, mark: str) -> None:
        self.name = f"{kind}-{mark}"
        self.table = {"name": self.name, "kind": kind, "url": url, "address": f"topo.{mark}.{kind}"}
        if kind == "amqp":
            self.table["exchange"] = "fanout"
        self.seen: list[str] = []
        self._adapter: Adapter | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        options = {
            k: v for k, v in self.table.items() if k not in ("name", "kind", "url", "address")
        }
        found = adapter_class(self.table["kind"])
        service = Service(
            self.name,
            self.table["kind"],
            self.table["url"],
            self.table["address"],
            gateway=f"client-{os.getpid()}",
            options=found.options_type(**options),
        )
        self._adapter = found(replace(service))
        await self._adapter.connect()
        await self._adapter.listen([ANYTHING])
        self._task = asyncio.create_task(self._watch(self._adapter))

    async def _watch(self, adapter: Adapter) -> None:
        while True:
            found = await adapter.receive()
            self.seen += [each.event.id for each in found if each.event and not each.in_transit]
            await adapter.acknowledge([each.token for each in found])

    async def publish(self, ids: Sequence[str]) -> None:
        assert self._adapter is not None
        events = [Event.of("T", time=1, id=each, source=self.name, data={"n": 1}) for each in ids]
        await self._adapter.publish([Outgoing(each) for each in events])

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._adapter is not None:
            await self._adapter.unlisten()
            await self._adapter.close()


def gateway(name: str, places: Sequence[Place], folder: Path) -> Gateway:
    tables: dict[str, Any] = {
        "gateway": {"name": name, "beat": 0.3, "patience": 4.0, "settling": 0.5},
        "service": [dict(each.table) for each in places],
        "subscribe": [{"at": each.name} for each in places],
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
    urls = {kind: server(kind.partition("-")[0]).url for kind in kinds}
    places = {kind: Place(kind, urls[kind], mark) for kind in kinds}

    async def story() -> None:
        for each in places.values():
            await each.open()
        made = [
            gateway(f"g{number}", [places[kind] for kind in names], tmp_path)
            for number, names in enumerate(TOPOLOGIES[topology])
        ]
        await asyncio.gather(*(each.start() for each in made))
        await asyncio.sleep(1.0)
        sent: list[str] = []
        for round_ in range(6):
            for kind, place in places.items():
                ids = [f"{kind}-{round_}-{number}" for number in range(40)]
                await place.publish(ids)
                sent += ids
            await asyncio.sleep(0.05)
            if round_ in (1, 3):
                victim = random.Random(round_).randrange(len(made))
                await made[victim].stop()
                names = TOPOLOGIES[topology][victim]
                made[victim] = gateway(f"g{victim}", [places[kind] for kind in names], tmp_path)
                await made[victim].start()
        end = asyncio.get_running_loop().time() + 25
        while asyncio.get_running_loop().time() < end:
            if all(len(each.seen) >= len(sent) for each in places.values()):
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.0)
        await asyncio.gather(*(each.stop() for each in made))
        for each in places.values():
            await each.close()

        # The client of a service sees its own events too, unless the service leaves them out.
        for kind, place in places.items():
            others = [each for each in sent if not each.startswith(kind)]
            got = [each for each in place.seen if not each.startswith(kind)]
            assert sorted(got) == sorted(others), kind

    async def limited() -> None:
        async with asyncio.timeout(90):
            await story()

    asyncio.run(limited())

"""A link outlives whatever its driver does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ensue.federation.adapters.base import Adapter, Outgoing, Service
from ensue.federation.adapters.memory.adapter import MemoryAdapter
from ensue.federation.configuration import read_settings
from ensue.federation.gateway import Gateway
from tests.federation.simulation import World


def test_a_driver_that_cancels_itself_does_not_end_its_link() -> None:
    """Client libraries cancel what still waits when a connection ends."""
    failures = iter([True, True])

    class GivesUp(MemoryAdapter):
        async def publish(self, outgoing: Sequence[Outgoing]) -> None:
            if next(failures, False):
                raise asyncio.CancelledError
            await super().publish(outgoing)

    def make(service: Service) -> Adapter:
        return (GivesUp if service.name == "office" else MemoryAdapter)(service)

    async def story() -> None:
        world = World()
        tables: dict[str, Any] = {
            "gateway": {"name": "g", "settling": 0.1},
            "service": [
                {"name": each, "kind": "memory", "url": f"memory:{world._run}/{each}"}
                for each in ("cars", "office")
            ],
            "subscribe": [{"at": "office"}],
        }
        gateway = Gateway(read_settings(tables), make=make)
        await gateway.start()
        sent = world.publish("cars", speed=1)
        await world.until(lambda: bool(world.arrived("office")))
        await gateway.stop()

        assert world.arrived("office") == [sent.id]

    asyncio.run(story())


def test_a_gateway_that_was_away_is_told_what_others_brought_meanwhile() -> None:
    """The office keeps nothing and cannot be asked: only the other gateway knows what it has."""

    class Forgets(MemoryAdapter):
        capabilities = replace(
            MemoryAdapter.capabilities,
            incoming="at most once",
            survives_restart=False,
            recalls=False,
        )

        async def close(self) -> None:
            await self.unlisten()
            await super().close()

    def make(service: Service) -> Adapter:
        return (Forgets if service.name == "office" else MemoryAdapter)(service)

    async def story() -> None:
        world = World()

        def gateway(name: str) -> Gateway:
            tables: dict[str, Any] = {
                "gateway": {"name": name, "settling": 0.1, "beat": 0.1, "patience": 1.0},
                "service": [
                    {"name": each, "kind": "memory", "url": f"memory:{world._run}/{each}"}
                    for each in ("cars", "office")
                ],
                "subscribe": [{"at": "office"}],
            }
            return Gateway(read_settings(tables), make=make)

        one, two = gateway("a"), gateway("b")
        await asyncio.gather(one.start(), two.start())
        world.publish("cars", speed=0)
        await world.until(lambda: len(world.arrived("office")) == 1)
        world.gateways["a"] = one
        await world.kill("a")
        for number in range(20):
            world.publish("cars", speed=number)
        await world.until(lambda: len(world.arrived("office")) == 21)
        again = gateway("a")
        await again.start()
        await asyncio.sleep(1.5)
        world.publish("cars", speed=99)
        await world.until(lambda: len(world.arrived("office")) == 22)
        await asyncio.sleep(0.3)
        await asyncio.gather(again.stop(), two.stop())

        assert sorted(world.arrived("office"), key=int) == [str(n) for n in range(1, 23)]

    asyncio.run(story())

"""A link outlives whatever its driver does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ensue.federation.adapters.base import Adapter, Outgoing, Service
from ensue.federation.adapters.memory.adapter import MemoryAdapter
from ensue.federation.configuration import read_settings
from ensue.federation.gateway import Gateway

from .simulation import World


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

"""Gateways and services in one process: topologies, traffic and faults, on the real code."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ensue.events.event import Event
from ensue.federation.adapters.base import Outgoing
from ensue.federation.adapters.memory.hub import Hub, hub
from ensue.federation.gateway import Gateway

PATIENCE = 20.0
_runs = count(1)


class World:
    """Services by name, and gateways with their services and requests."""

    def __init__(self) -> None:
        self._run = next(_runs)
        self.gateways: dict[str, Gateway] = {}
        self._tables: dict[str, dict[str, Any]] = {}
        self._numbers = count(1)

    def hub(self, service: str) -> Hub:
        return hub(f"{self._run}/{service}")

    def add(
        self,
        name: str,
        services: Sequence[str],
        *wishes: tuple[str, Sequence[str], str],
        **settings: Any,
    ) -> None:
        """A gateway; each wish is a service, the services it wants events of, and a filter."""
        self._tables[name] = {
            "gateway": {"name": name, "beat": 0.1, "patience": 1.0, "settling": 0.1, **settings},
            "service": [
                {"name": each, "kind": "memory", "url": f"memory:{self._run}/{each}"}
                for each in services
            ],
            "subscribe": [
                {"at": at, "from": list(from_), "where": where} for at, from_, where in wishes
            ],
        }

    async def start(self, *names: str, memory: Path | None = None) -> None:
        for name in names or tuple(self._tables):
            self.gateways[name] = Gateway.from_config(self._tables[name], memory=memory)
        started = [self.gateways[name].start() for name in names or tuple(self._tables)]
        await asyncio.gather(*started)

    async def stop(self, *names: str) -> None:
        stopped = [self.gateways.pop(name).stop() for name in names or tuple(self.gateways)]
        await asyncio.gather(*stopped)

    async def kill(self, name: str) -> None:
        """End a gateway in the middle of whatever it does."""
        gateway = self.gateways.pop(name)
        for link in gateway._links.values():
            if link._task is not None:
                link._task.cancel()
        others = gateway._neighbours.tasks
        for task in (*gateway._tasks, *gateway._answering.tasks, *others):
            task.cancel()
        await asyncio.sleep(0)

    def publish(self, service: str, **data: Any) -> Event:
        number = next(self._numbers)
        event = Event.of("Speed", time=number, id=str(number), source=service, data=data)
        self.hub(service).publish(Outgoing(event))
        return event

    def arrived(self, service: str) -> list[str]:
        """Identities of the events at a service that were published elsewhere."""
        return [each.id for each in self.hub(service).events if each.source != service]

    async def until(self, condition: Callable[[], bool], patience: float = PATIENCE) -> None:
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                return
            await asyncio.sleep(0.01)

    async def quiet(self, seconds: float = 0.3) -> None:
        """Wait until nothing has been published anywhere for a while."""
        hubs = {
            each.url for gateway in self.gateways.values() for each in gateway.settings.services
        }
        names = [url.removeprefix("memory:") for url in hubs]
        before = -1
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            total = sum(len(hub(name).log) for name in names)
            if total == before:
                return
            before = total
            await asyncio.sleep(seconds)

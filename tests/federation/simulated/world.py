"""What can happen to gateways and services on the simulated clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ensue.events.event import Event
from ensue.federation.adapters.base import Service
from ensue.federation.configuration.settings import GatewaySettings, StandingRequest
from ensue.federation.gateway import Gateway
from ensue.federation.links.bounds import Bounds
from ensue.subscriptions import Filter

from .clock import SimulatedLoop
from .services import KINDS, ModelAdapter, ModelService

SMALL = Bounds(in_flight=120, resting=60, seen=2_000, told=60)
PATIENCE, BEAT, SETTLING = 2.0, 0.2, 0.1
"""Of gateways, in simulated seconds."""


class World:
    """Services by name with their kinds, and gateways with their services and requests."""

    def __init__(
        self,
        kinds: dict[str, str],
        links: dict[str, list[str]],
        loop: SimulatedLoop,
        draw: random.Random,
        folder: Path,
        bounds: Bounds = SMALL,
    ) -> None:
        self.services = {
            name: ModelService(name, KINDS[kind], draw) for name, kind in kinds.items()
        }
        self.links = links
        self.requests: dict[str, list[StandingRequest]] = {each: [] for each in links}
        self.gateways: dict[str, Gateway] = {}
        self.told: list[str] = []
        self._loop = loop
        self._draw = draw
        self._folder = folder
        self._bounds = bounds
        self._numbers = count(1)

    def want(self, gateway: str, at: str, services: Sequence[str], where: str) -> None:
        request = StandingRequest(at, tuple(services), Filter.parse(where))
        self.requests[gateway].append(request)

    def tell(self, what: str) -> None:
        self.told.append(f"{self._loop.time():8.3f} {what}")

    # --- gateways -----------------------------------------------------------------------------

    def make(self, name: str) -> Gateway:
        services = tuple(
            Service(each, self.services[each].kind.name, gateway=name) for each in self.links[name]
        )
        settings = GatewaySettings(
            name,
            services,
            tuple(self.requests[name]),
            patience=PATIENCE,
            beat=BEAT,
            settling=SETTLING,
        )
        return Gateway(
            settings,
            memory=self._folder / f"{name}.json",
            make=lambda service: ModelAdapter(service, self.services[service.name]),
            bounds=self._bounds,
            wall=self._loop.wall,
        )

    async def start(self, name: str) -> None:
        """Return when the gateway is ready; it may end before."""
        made = self.gateways[name] = self.make(name)
        starting = self._loop.begin(name, made.start())
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is not None:
            starting.result()
        self.tell(f"{name} is ready")

    async def stop(self, name: str) -> None:
        gateway = self.gateways.pop(name)
        self.tell(f"stop {name}")
        await self._loop.begin(name, gateway.stop())
        self._loop.end(name)

    async def kill(self, name: str) -> None:
        """End it at once. What it has sent may still arrive."""
        self.gateways.pop(name)
        self.tell(f"kill {name}")
        self._loop.end(name)
        if self._draw.random() < 0.5:
            await asyncio.sleep(self._draw.uniform(0, 0.01))
        for each in self.links[name]:
            self.services[each].break_off(name)

    # --- services -----------------------------------------------------------------------------

    async def restart(self, service: str, roughly: bool, away: float) -> None:
        model = self.services[service]
        self.tell(f"{'kill' if roughly else 'stop'} {service} for {away:.2f} s")
        model.go_down(roughly)
        await asyncio.sleep(away)
        model.is_up = True
        self.tell(f"{service} is back")

    async def cut(self, gateway: str, service: str, seconds: float) -> None:
        model = self.services[service]
        self.tell(f"cut {gateway} off {service} for {seconds:.2f} s")
        model.unreachable.add(gateway)
        model.break_off(gateway)
        await asyncio.sleep(seconds)
        model.unreachable.discard(gateway)

    async def slow(self, gateway: str, service: str, longest: float, seconds: float) -> None:
        model = self.services[service]
        self.tell(f"{gateway} to {service} takes {longest:.2f} s, for {seconds:.2f} s")
        model.slow[gateway] = longest
        await asyncio.sleep(seconds)
        model.slow.pop(gateway, None)

    async def publish(self, service: str, **data: Any) -> Event:
        """Publish as a client that waits until the service is there."""
        model = self.services[service]
        while not model.is_up:
            await asyncio.sleep(0.05)
        number = next(self._numbers)
        event = Event.of("Speed", time=number, id=str(number), source=service, data=data)
        model.publish(event)
        return event

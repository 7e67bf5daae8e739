"""Random topologies with loops, and faults in the middle of traffic: everybody gets what it asked.

What a service must get is told by the definition: the events of all services that are connected to
it, of which one of its requests matches the origin and the content.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from tests.federation.simulation import World

SPEEDS = (10, 40, 60, 90)


def connected(links: dict[str, list[str]], start: str) -> set[str]:
    """The services that gateways connect to a service, itself included."""
    found = {start}
    while True:
        more = {each for names in links.values() if found & set(names) for each in names}
        if more <= found:
            return found
        found |= more


class Story:
    """One random world, its traffic, and what has to come of it, within a time."""

    patience = 20.0

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.world = World()
        self.services = [f"s{number}" for number in range(self.random.randint(2, 5))]
        self.links: dict[str, list[str]] = {}
        self.wishes: dict[str, list[tuple[list[str], int]]] = {each: [] for each in self.services}
        for number in range(self.random.randint(1, 5)):
            most = min(3, len(self.services))
            names = self.random.sample(self.services, self.random.randint(2, most))
            self.links[f"g{number}"] = names
            self.world.add(f"g{number}", names, *self._requests(names), patience=1.5)
        self.sent: dict[str, list[tuple[str, int]]] = {each: [] for each in self.services}
        self.trials: dict[str, str] = {}
        """Events that are only to show who has heard of whom, with their origins."""

    def _requests(self, names: list[str]) -> list[tuple[str, list[str], str]]:
        made = []
        for at in names:
            if self.random.random() < 0.6:
                lists: list[list[str]] = [
                    [],
                    ["s*"],
                    ["memory"],
                    [self.random.choice(self.services)],
                ]
                listed, limit = self.random.choice(lists), self.random.choice(SPEEDS)
                self.wishes[at].append((listed, limit))
                made.append((at, listed, f"speed >= {limit}"))
        return made

    def wanted(self, at: str) -> list[str]:
        found = [
            identity
            for origin in connected(self.links, at) - {at}
            for identity, speed in self.sent[origin]
            if self._wants(at, origin, speed)
        ]
        return sorted(found, key=int)

    def arrived(self, at: str) -> list[str]:
        return [each for each in self.world.arrived(at) if each not in self.trials]

    def _wants(self, at: str, origin: str, speed: int) -> bool:
        return any(
            speed >= limit and (not listed or listed[0] in ("s*", "memory", origin))
            for listed, limit in self.wishes[at]
        )

    async def _try_out(self) -> None:
        """Send trial events until one has come wherever they are wanted: what is published before
        a gateway has heard of a wish is not for it."""
        missing = {
            (origin, at)
            for at in self.services
            for origin in connected(self.links, at) - {at}
            if self._wants(at, origin, max(SPEEDS))
        }
        while missing:
            for origin in self.services:
                event = self.world.publish(origin, speed=max(SPEEDS))
                self.trials[event.id] = origin
            await asyncio.sleep(0.1)
            missing -= {
                (self.trials[each], at)
                for at in self.services
                for each in self.world.arrived(at)
                if each in self.trials
            }

    async def start(self, name: str) -> None:
        await self.world.start(name, memory=self.folder / name)

    async def run(self, faults: bool) -> None:
        await asyncio.gather(*(self.start(name) for name in self.links))
        await self._try_out()
        for _ in range(8):
            for service in self.services:
                for _ in range(self.random.randint(0, 30)):
                    speed = self.random.choice(SPEEDS)
                    event = self.world.publish(service, speed=speed)
                    self.sent[service].append((event.id, speed))
            await asyncio.sleep(self.random.uniform(0, 0.05))
            if faults:
                await self._fault()
        await self.world.until(self._is_done, self.patience)
        await self.world.quiet()

    async def _fault(self) -> None:
        match self.random.randrange(5):
            case 0:
                self.world.hub(self.random.choice(self.services)).break_off()
            case 1:
                self.world.hub(self.random.choice(self.services)).lose_next(5)
            case 2:
                name = self.random.choice(list(self.links))
                await self.world.kill(name)
                await self.start(name)
            case 3:
                name = self.random.choice(list(self.links))
                await self.world.stop(name)
                await self.start(name)

    def _is_done(self) -> bool:
        return all(len(self.arrived(each)) >= len(self.wanted(each)) for each in self.services)

    def check(self) -> None:
        got = {each: sorted(self.arrived(each), key=int) for each in self.services}

        assert got == {each: self.wanted(each) for each in self.services}, self.links


@pytest.mark.parametrize("faults", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_everybody_gets_what_it_asked_for(seed: int, faults: bool, tmp_path: Path) -> None:
    story = Story(seed, tmp_path)

    async def limited() -> Any:
        async with asyncio.timeout(60):
            await story.run(faults)
            story.check()
            await story.world.stop()

    asyncio.run(limited())

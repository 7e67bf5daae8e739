"""A random federation, its traffic and its faults, and the judge of what came of them.

The judge knows every event that was published and what each service may see: an event that is
wanted there stands there once. What is published before a wish has spread is not for it.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ensue.federation.messages.attributes import PATH
from ensue.federation.routing import control
from tests.federation.topologies.test_random import SPEEDS, connected

from .clock import SimulatedLoop
from .services import KINDS
from .world import PATIENCE, World

_LONGEST = 120.0
"""Simulated seconds in which everything has to have arrived."""


@dataclass(frozen=True)
class Sent:
    id: str
    origin: str
    speed: int


def shape(draw: random.Random) -> dict[str, list[str]]:
    """Gateways and their services: rings, trees, meshes and parallel ways."""
    match draw.choice(["ring", "ring", "tree", "mesh", "parallel"]):
        case "ring":
            size = draw.randint(3, 8 if draw.random() < 0.3 else 4)
            pairs = [[f"s{n}", f"s{(n + 1) % size}"] for n in range(size)]
        case "tree":
            pairs = [[f"s{n}", f"s{draw.randrange(n)}"] for n in range(1, draw.randint(3, 7))]
        case "parallel":
            pairs = [["s0", "s1"]] * draw.randint(2, 4)
        case _:
            names = [f"s{n}" for n in range(draw.randint(3, 6))]
            pairs = [draw.sample(names, draw.randint(2, 3)) for _ in range(draw.randint(3, 8))]
    named = [f"g{n}" for n in range(len(pairs))]
    # The smallest name is the root of the tree, wherever it is.
    draw.shuffle(named)
    return {name: list(pair) for name, pair in zip(named, pairs, strict=True)}


class Story:
    def __init__(self, seed: int, loop: SimulatedLoop, folder: Path, events: int = 600) -> None:
        self.draw = draw = random.Random(seed)
        self.links = shape(draw)
        names = sorted({each for pair in self.links.values() for each in pair})
        self.kinds = {each: draw.choice(sorted(KINDS)) for each in names}
        self.world = World(self.kinds, self.links, loop, draw, folder)
        self.wishes: dict[str, list[tuple[str, int]]] = {each: [] for each in names}
        for name, pair in self.links.items():
            for at in pair:
                if draw.random() < 0.7:
                    origin, limit = draw.choice(["*", *names]), draw.choice(SPEEDS)
                    self.wishes[at].append((origin, limit))
                    self.world.want(name, at, [origin], f"speed >= {limit}")
        self.sent: list[Sent] = []
        self.seconds = 0.0
        self._trials: set[str] = set()
        self._loop = loop
        self._events = events

    # --- what happens -------------------------------------------------------------------------

    async def run(self) -> None:
        world, draw = self.world, self.draw
        await asyncio.gather(*(world.start(each) for each in self.links))
        await self._try_out()
        length = draw.uniform(5, 30)
        publishing = [
            asyncio.create_task(self._publish(each, length))
            for each in draw.sample(sorted(self.kinds), draw.randint(1, min(2, len(self.kinds))))
        ]
        faults = []
        for _ in range(draw.randint(1, 6)):
            await asyncio.sleep(draw.uniform(0, length / 4))
            faults.append(asyncio.create_task(self._fault()))
        await asyncio.gather(*publishing, *faults)
        for name in sorted(self.links.keys() - world.gateways.keys()):
            await world.start(name)
        world.tell("calm")
        end = self._loop.time() + _LONGEST
        while self._loop.time() < end and self._missing():
            await asyncio.sleep(1.0)
        await asyncio.sleep(6 * PATIENCE)
        self.seconds = self._loop.time()
        world.tell("the end")

    async def _publish(self, origin: str, length: float) -> None:
        pace = length / self._events
        while len(self.sent) < self._events:
            burst = self.draw.choice([1, 1, 5, 40])
            for _ in range(burst):
                speed = self.draw.choice(SPEEDS)
                event = await self.world.publish(origin, speed=speed)
                self.sent.append(Sent(event.id, origin, speed))
            await asyncio.sleep(self.draw.uniform(0, 2) * pace * burst)

    async def _try_out(self) -> None:
        """Send trial events until one has come wherever they are wanted."""
        missing = {
            (origin, at)
            for at in self.kinds
            for origin in self.kinds
            if self._wants(at, origin, max(SPEEDS))
        }
        end = self._loop.time() + 60
        trials: dict[str, str] = {}
        while missing:
            assert self._loop.time() < end, f"trial events do not come: {sorted(missing)}\n{self}"
            for origin in self.kinds:
                event = await self.world.publish(origin, speed=max(SPEEDS))
                trials[event.id] = origin
            await asyncio.sleep(0.3)
            for at in self.kinds:
                come = {each.id for each in self.world.services[at].events}
                missing -= {(trials[each], at) for each in come if each in trials}
        self._trials = set(trials)

    async def _fault(self) -> None:
        world, draw = self.world, self.draw
        name, service = draw.choice(sorted(self.links)), draw.choice(sorted(self.kinds))
        gateway_service = draw.choice(self.links[name])
        away = PATIENCE * draw.choice([0.05, 0.3, 0.6, 1.1, 3.0]) * draw.uniform(0.5, 1.2)
        match draw.randrange(8):
            case 0 | 1 | 2 if world.services[service].is_up:
                await world.restart(service, draw.random() < 0.5, away)
            case 3 | 4 if name in world.gateways:
                end = world.kill if draw.random() < 0.6 else world.stop
                await end(name)
                await asyncio.sleep(away)
                if name not in world.gateways:
                    await world.start(name)
            case 5:
                await world.cut(name, gateway_service, away)
            case 6:
                await world.slow(name, gateway_service, draw.uniform(0.05, PATIENCE), away)
            case 7 if name in world.gateways:
                world.tell(f"request at {gateway_service} over {name}")
                request = control.Request(
                    control.new_id(), "subscribe", gateway_service, ("nosuch",), "speed > 30"
                )
                world.services[gateway_service].tell(control.write(request))

    # --- what has to come of it ---------------------------------------------------------------

    def _wants(self, at: str, origin: str, speed: int) -> bool:
        if origin == at or origin not in connected(self.links, at):
            return False
        return any(speed >= limit and wish in ("*", origin) for wish, limit in self.wishes[at])

    def _arrived(self, at: str) -> Counter[str]:
        here = self.world.services[at].events
        return Counter(each.id for each in here if each.source != at)

    def _missing(self) -> bool:
        for at in self.kinds:
            come = self._arrived(at)
            if any(self._wants(at, e.origin, e.speed) and e.id not in come for e in self.sent):
                return True
        return False

    def judged(self) -> list[str]:
        """What is not as it has to be."""
        found = []
        for at in self.kinds:
            come = self._arrived(at)
            wanted = {e.id for e in self.sent if self._wants(at, e.origin, e.speed)}
            lost = sorted(wanted - come.keys(), key=int)
            more = sorted((each for each in come if come[each] > 1), key=int)
            known = {e.id: e for e in self.sent}
            unasked = [each for each in come if each in known and each not in wanted]
            for what, which in (("lost", lost), ("doubled", more), ("not asked for", unasked)):
                if which:
                    paths = [
                        f"{each.id} by {each.extensions.get(PATH)}"
                        for each in self.world.services[at].events
                        if each.id in which[:2]
                    ]
                    found.append(f"`{at}`: {what} {len(which)}: {which[:5]} {paths}")
        return found

    def __str__(self) -> str:
        lines = [f"kinds {self.kinds}", f"links {self.links}", f"wishes {self.wishes}"]
        return "\n".join([*lines, *self.world.told])


def told(seed: int) -> Story:
    """The story of a seed, from its beginning to its end."""
    state = random.getstate()
    random.seed(seed)
    loop = SimulatedLoop()
    try:
        with tempfile.TemporaryDirectory() as folder:
            story = Story(seed, loop, Path(folder))
            loop.run_until_complete(story.run())
            return story
    finally:
        random.setstate(state)
        _end(loop)


def _end(loop: SimulatedLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(1.0))
    loop.close()

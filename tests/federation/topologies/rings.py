"""Three gateways in a ring over three services of different kinds, each service wanting all.

Numbered events are published to one of them one by one while its server ends again and again, and
comes back. What each of the other services has seen of them is counted by their clients.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ensue.events.event import Event
from ensue.federation.routing import control

from .brokers import SLOW, Brokers, server_of
from .clients import Client
from .forked import Forked

KINDS = ("amqp", "kafka", "mqtt", "nats-jetstream", "redis")
"""Kinds whose services keep what was not yet taken from them."""
SERVICES = ("cars", "office", "shop")
TARGETS = ("cars", "office")
PAIRS = (("cars", "office"), ("office", "shop"), ("shop", "cars"))
KEYS = 7
_SECONDS_AWAY = 1.5
_SECONDS_TO_ARRIVE = 240.0
_SECONDS_FOR_MORE = 7.0
"""JetStream hands out again after five seconds what was not acknowledged."""


class Ring:
    """One ring and its traffic; all of it but the pace of the machine follows from the seed."""

    def __init__(self, seed: int, brokers: Brokers, folder: Path) -> None:
        self.draw = random.Random(seed)
        self._brokers = brokers
        self.kinds = dict(zip(SERVICES, self.draw.sample(KINDS, len(SERVICES)), strict=True))
        self.source = server_of(self.kinds["shop"])
        """The server to which events are published, and which ends."""
        self._tables = {
            name: {
                "name": name,
                "kind": kind,
                "url": brokers.url(kind, name),
                "address": f"ring{seed}x{time.time_ns()}.{name}",
            }
            | ({"exchange": "fanout"} if kind == "amqp" else {})
            for name, kind in self.kinds.items()
        }
        names = ["g1", "g2", "g3"]
        self.draw.shuffle(names)
        self.gateways = {
            name: Forked(self._configured(folder / f"{name}.toml", pair))
            for name, pair in zip(names, PAIRS, strict=True)
        }
        self.clients = {name: Client(table) for name, table in self._tables.items()}
        self.sent: list[str] = []
        self.told = [f"{self.kinds}"]
        self.told += [f"{name} joins {pair}" for name, pair in zip(names, PAIRS, strict=True)]

    @property
    def is_slow(self) -> bool:
        """Whether the server that ends takes many seconds to come back."""
        return self.source in SLOW

    def _configured(self, config: Path, pair: Iterable[str]) -> Path:
        lines = [f'[gateway]\nname = "{config.stem}"']
        for name in pair:
            others = [each for each in SERVICES if each != name]
            lines += ["[[service]]", *(f'{key} = "{v}"' for key, v in self._tables[name].items())]
            lines += ["[[subscribe]]", f'at = "{name}"', f"from = {others}".replace("'", '"')]
        config.write_text("\n".join(lines), "utf-8")
        return config

    async def run(self, events: int, pause: float) -> None:
        """Publish events, and end the server to which they go every few seconds meanwhile."""
        try:
            await asyncio.gather(*(each.open() for each in self.clients.values()))
            await asyncio.gather(*(asyncio.to_thread(each.start) for each in self._all()))
            await asyncio.sleep(1.0)
            if self.draw.random() < 0.5:
                await self._kill_gateways()
            if self.draw.random() < 0.5:
                await self._ask_for_more()
            publishing = asyncio.create_task(self._publish(events))
            while not publishing.done():
                await asyncio.wait([publishing], timeout=pause)
                await self._restart_server()
            await publishing
            end = time.monotonic() + _SECONDS_TO_ARRIVE
            while time.monotonic() < end and any(self.lost(each) for each in TARGETS):
                await asyncio.sleep(0.5)
            await asyncio.sleep(_SECONDS_FOR_MORE)
        finally:
            await asyncio.gather(*(asyncio.to_thread(each.stop) for each in self._all()))
            await asyncio.gather(*(each.close() for each in self.clients.values()))

    def _all(self) -> list[Forked]:
        return list(self.gateways.values())

    async def _publish(self, events: int) -> None:
        for number in range(events):
            made = Event.of(
                "T",
                time=1,
                id=str(number),
                source="p",
                data={"speed": number % 100},
                partitionkey=f"k{number % KEYS}",
            )
            await self.clients["shop"].publish([made])
            self.sent.append(made.id)

    async def _kill_gateways(self) -> None:
        for name, gateway in self.gateways.items():
            self.told.append(f"kill {name}")
            await asyncio.to_thread(gateway.kill)
            await asyncio.sleep(self.draw.uniform(0, 1.0))
            await asyncio.to_thread(gateway.start)

    async def _ask_for_more(self) -> None:
        """A request at run time, of a service that there is not."""
        self.told.append("one more request")
        request = control.Request(
            control.new_id(), "subscribe", "office", ("nosuch",), "speed > 30"
        )
        adapter: Any = await self.clients["cars"].connected()
        await adapter.tell(control.write(request))

    async def _restart_server(self) -> None:
        roughly = self.draw.random() < 0.5
        self.told.append(f"{'kill' if roughly else 'stop'} {self.source} after {len(self.sent)}")
        await asyncio.to_thread(self._brokers.end, self.source, roughly)
        await asyncio.sleep(_SECONDS_AWAY)
        await asyncio.to_thread(self._brokers.come_back, self.source)

    # --- what has come of it ------------------------------------------------------------------

    def lost(self, at: str) -> list[str]:
        seen = self.clients[at].seen
        return [each for each in self.sent if not seen[each]]

    def doubled(self, at: str) -> list[str]:
        client = self.clients[at]
        return [f"{each}: {client.how[each]}" for each in self.sent if client.seen[each] > 1]

    def overtaken(self, at: str) -> list[str]:
        """Events that came behind a later one of their key, by the same route."""
        how = self.clients[at].how
        latest: dict[tuple[int, str], int] = {}
        found = []
        for number in map(int, how):
            first = how[str(number)][0]
            place = number % KEYS, first.rpartition(" ")[2]
            before = latest.get(place, -1)
            if number < before:
                found.append(f"{first} behind {how[str(before)][0]}")
            latest[place] = max(number, before)
        return found

    def judged(self) -> list[str]:
        """What is not as it has to be."""
        return [
            f"`{at}`: {what} {len(which)}: {which[:3]}"
            for at in TARGETS
            for what, which in (
                ("lost", self.lost(at)),
                ("doubled", self.doubled(at)),
                ("overtaken", self.overtaken(at)),
            )
            if which
        ]

    def __str__(self) -> str:
        return "\n".join(self.told)

"""A random net of gateways over real brokers, its traffic, its faults, what has to come of it.

Gateways are processes, or tasks of this one where a channel of it is among their services. Traffic
goes in three parts: with nothing in the way, in the middle of faults, and after them. Which event
has to be where is told by the definition (`Story.wanted`), how often by what its services guarantee
(`Story.judged`). Before the first and the last part trial events go until each has come wherever
one is wanted: by then every gateway knows what the others want.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.gateway import Gateway
from tests.federation.relays import Relay
from tests.federation.topologies.test_random import SPEEDS, connected

from .brokers import KEEPS_WHEN_KILLED, SLOW, WITHOUT_SERVER, Brokers, server_of
from .clients import Client
from .forked import Forked

Part = Literal["trial", "before", "faults", "after"]
PATIENCE = 4.0
"""Seconds after which gateways take another for gone."""
_SECONDS_TO_KNOW = 60.0
_SECONDS_TO_ARRIVE = 60.0


@dataclass(frozen=True)
class Sent:
    id: str
    origin: str
    speed: int
    part: Part


@dataclass
class Plan:
    """What a story is made of; all of it follows from the seed."""

    kinds: dict[str, str]
    links: dict[str, list[str]] = field(default_factory=dict)
    wishes: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """What each service wants: of which origins, by a pattern, and from which speed on."""


class Local:
    """A gateway in this process, which ends in order alone."""

    def __init__(self, tables: dict[str, Any], memory: Path) -> None:
        self._tables, self._memory = tables, memory
        self._gateway: Gateway | None = None

    async def start(self) -> None:
        self._gateway = Gateway.from_config(self._tables, memory=self._memory)
        await self._gateway.start()

    async def stop(self) -> None:
        if self._gateway is not None:
            await self._gateway.stop()


class Process:
    """A gateway as a process, driven from a loop."""

    def __init__(self, config: Path) -> None:
        self.forked = Forked(config)

    async def start(self) -> None:
        await asyncio.to_thread(self.forked.start)

    async def stop(self) -> None:
        await asyncio.to_thread(self.forked.stop)

    async def kill(self) -> None:
        await asyncio.to_thread(self.forked.kill)


class Story:
    def __init__(self, seed: int, brokers: Brokers, kinds: list[str], folder: Path) -> None:
        self.random = random.Random(seed)
        self.mark = f"{os.getpid()}x{seed}"
        self._brokers = brokers
        self._folder = folder
        self.plan = self._drawn(kinds)
        self.tables = {name: self._table(name, kind) for name, kind in self.plan.kinds.items()}
        self.gateways: dict[str, Local | Process] = {}
        self._relays: dict[tuple[str, str], tuple[Relay, str]] = {}
        """What stands between gateways and servers, with its address."""
        self.clients: dict[str, Client] = {}
        self.sent: list[Sent] = []
        self.told: list[str] = []
        """What has happened, in order."""
        self._cut: set[str] = set()
        """Services that a gateway or a client was away from."""
        self._crashed: set[str] = set()
        """Services whose server, or a gateway at which, has ended in the middle of its work."""
        self._began = time.monotonic()

    # --- what it is made of -------------------------------------------------------------------

    def _drawn(self, kinds: list[str]) -> Plan:
        draw = self.random
        names = [f"s{number}x{self.mark}" for number in range(draw.randint(2, 5))]
        plan = Plan({each: draw.choice(kinds) for each in names}, wishes={n: [] for n in names})
        for number in range(draw.randint(1, 4)):
            chosen = draw.sample(names, draw.randint(2, min(3, len(names))))
            plan.links[f"g{number}"] = chosen
        for at in names:
            if any(at in each for each in plan.links.values()) and draw.random() < 0.75:
                origin = draw.choice(["*", "s*", draw.choice(names), draw.choice(kinds)])
                plan.wishes[at].append((origin, draw.choice(SPEEDS)))
        return plan

    def _table(self, name: str, kind: str) -> dict[str, Any]:
        table = {
            "name": name,
            "kind": kind,
            "url": self._brokers.url(kind, name),
            "address": f"topo.{name}",
        }
        return table | ({"exchange": "fanout"} if kind == "amqp" else {})

    def _table_for(self, gateway: str, service: str) -> dict[str, Any]:
        relayed = self._relays.get((gateway, service))
        return self.tables[service] | ({"url": relayed[1]} if relayed else {})

    async def _relay(self) -> None:
        """Put a relay before some servers, so that a single connection can be cut."""
        for gateway, services in self.plan.links.items():
            for service in services:
                is_cuttable = self.plan.kinds[service] not in (*WITHOUT_SERVER, "kafka")
                if is_cuttable and self.random.random() < 0.5:
                    relay = Relay(self.tables[service]["url"])
                    self._relays[gateway, service] = relay, await relay.serve()

    def _gateway(self, name: str) -> Local | Process:
        services = self.plan.links[name]
        tables: dict[str, Any] = {
            "gateway": {"name": name, "beat": 0.3, "patience": PATIENCE, "settling": 0.4},
            "service": [self._table_for(name, each) for each in services],
            "subscribe": [
                {"at": at, "from": [origin], "where": f"speed >= {limit}"}
                for at in services
                for origin, limit in self.plan.wishes[at]
            ],
        }
        if any(self.plan.kinds[each] == "channel" for each in services):
            return Local(tables, self._folder / f"{name}.json")
        config = self._folder / f"{name}.toml"
        config.write_text("".join(_toml(tables)), "utf-8")
        return Process(config)

    # --- what happens -------------------------------------------------------------------------

    async def run(self, faults: bool = True) -> None:
        """Raises `AssertionError` if the gateways never find each other."""
        self.clients = {name: Client(table) for name, table in self.tables.items()}
        try:
            await asyncio.gather(*(each.open() for each in self.clients.values()))
            await self._relay()
            self.gateways = {name: self._gateway(name) for name in self.plan.links}
            await asyncio.gather(*(each.start() for each in self.gateways.values()))
            await self._try_out()
            await self._traffic("before", 3, None)
            await self._arrived(lambda each: each.part == "before")
            if faults:
                await self._traffic("faults", 6, self._fault)
                await self._try_out()
                await self._traffic("after", 2, None)
            await self._arrived(lambda _: True)
        finally:
            await asyncio.gather(
                *(each.stop() for each in self.gateways.values()),
                *(each.close() for each in self.clients.values()),
                return_exceptions=True,
            )
            for relay, _ in self._relays.values():
                relay.close()

    async def _try_out(self) -> None:
        """Send trial events until one has come wherever they are wanted."""
        tried: list[Sent] = []
        until = time.monotonic() + _SECONDS_TO_KNOW
        while missing := self._missing(tried):
            assert time.monotonic() < until, f"trial events do not come: {missing} {self}"
            tried += await asyncio.gather(*(self._publish_one(name) for name in self.clients))
            await asyncio.sleep(0.3)

    def _missing(self, tried: list[Sent]) -> list[tuple[str, str]]:
        """From where and to where no trial event has come that is wanted there."""
        wanted = {
            (origin, at)
            for at in self.clients
            for origin in self.clients
            if self._wants(at, origin, max(SPEEDS))
        }
        come = {
            (each.origin, at)
            for each in tried
            for at, client in self.clients.items()
            if client.seen[each.id]
        }
        return sorted(wanted - come)

    async def _publish_one(self, name: str) -> Sent:
        sent = self._made(name, max(SPEEDS), "trial")
        await self._publish(name, [sent])
        return sent

    def _made(self, origin: str, speed: int, part: Part) -> Sent:
        made = Sent(f"{part}-{len(self.sent)}", origin, speed, part)
        self.sent.append(made)
        return made

    async def _publish(self, name: str, sent: list[Sent]) -> None:
        events = [
            Event.of("Speed", time=1, id=each.id, source=name, data={"speed": each.speed})
            for each in sent
        ]
        await self.clients[name].publish(events)

    async def _traffic(self, part: Part, rounds: int, fault: Callable[[], Any] | None) -> None:
        for _ in range(rounds):
            publishing = []
            for name in self.clients:
                size = self.random.randint(0, 30)
                sent = [self._made(name, self.random.choice(SPEEDS), part) for _ in range(size)]
                publishing.append(self._publish(name, sent))
            going = asyncio.gather(*publishing)
            await asyncio.sleep(self.random.uniform(0, 0.1))
            if fault is not None:
                await fault()
            async with asyncio.timeout(_SECONDS_TO_ARRIVE):
                await going

    async def _arrived(self, which: Callable[[Sent], bool]) -> None:
        """Wait until all that must come has come, and for what comes too often."""
        until = time.monotonic() + _SECONDS_TO_ARRIVE
        while time.monotonic() < until and any(
            self._must_come(each, at) and not self.clients[at].seen[each.id]
            for each in self.sent
            if which(each)
            for at in self.clients
        ):
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.7)

    async def _fault(self) -> None:
        draw = self.random
        name = draw.choice(list(self.gateways))
        match draw.randrange(9):
            case 0:
                return
            case 8:
                await self._stall(name, PATIENCE * draw.uniform(0.05, 0.45))
            case 6 | 7 if self._relays:
                # In the middle of what is on its way.
                await asyncio.sleep(draw.uniform(0, 0.05))
                gateway, service = draw.choice(list(self._relays))
                self._relays[gateway, service][0].cut()
                self._tell(f"cut {gateway} off {service}")
                self._cut.add(service)
                self._crashed.add(service)
            case 1 | 2:
                await self._restart(name, draw.choice(["stop", "kill"]), 0.0)
            case 3:
                # Long enough for the others to go around it.
                await self._restart(name, draw.choice(["stop", "kill"]), PATIENCE * 1.5)
            case _:
                await self._restart_broker()

    async def _restart(self, name: str, how: str, away: float) -> None:
        gateway = self.gateways[name]
        if how == "kill" and isinstance(gateway, Process):
            self._crashed |= set(self.plan.links[name])
            await gateway.kill()
        else:
            how = "stop"
            await gateway.stop()
        self._tell(f"{how} {name} for {away:g} s")
        self._cut |= set(self.plan.links[name])
        await asyncio.sleep(away * self.random.uniform(0.2, 1.0))
        self.gateways[name] = self._gateway(name)
        await self.gateways[name].start()
        self._tell(f"{name} is back")

    async def _stall(self, name: str, seconds: float) -> None:
        """A process that stands still for a while, and is not taken for gone yet."""
        gateway = self.gateways[name]
        if isinstance(gateway, Process):
            self._tell(f"stall {name} for {seconds:.1f} s")
            gateway.forked.pause()
            await asyncio.sleep(seconds)
            gateway.forked.go_on()

    async def _restart_broker(self) -> None:
        there = {server_of(each) for each in self.plan.kinds.values()} - set(WITHOUT_SERVER)
        servers = sorted(there - (set(SLOW) if self.random.random() < 0.7 else set()))
        if not servers:
            return
        server = self.random.choice(servers)
        roughly = self.random.random() < 0.5 and server in KEEPS_WHEN_KILLED
        self._tell(f"{'kill' if roughly else 'stop'} {server}")
        hit = {name for name, kind in self.plan.kinds.items() if server_of(kind) == server}
        self._cut |= hit
        self._crashed |= hit
        await asyncio.to_thread(self._brokers.end, server, roughly)
        await asyncio.sleep(self.random.uniform(0, 1.0))
        await asyncio.to_thread(self._brokers.come_back, server)
        self._tell(f"{server} is back")

    def _tell(self, what: str) -> None:
        self.told.append(f"{time.monotonic() - self._began:.1f} {what}")

    # --- what has to come of it ---------------------------------------------------------------

    def wanted(self, sent: Sent, at: str) -> bool:
        return self._wants(at, sent.origin, sent.speed)

    def _wants(self, at: str, origin: str, speed: int) -> bool:
        if origin == at or origin not in connected(self.plan.links, at):
            return False
        return any(
            speed >= limit and wish in ("*", "s*", origin, self.plan.kinds[origin])
            for wish, limit in self.plan.wishes[at]
        )

    def _must_come(self, sent: Sent, at: str) -> bool:
        """Whether no guarantee lets an event be lost that is wanted."""
        if sent.part == "trial" or not self.wanted(sent, at):
            return False
        return sent.part != "faults" or not self._loses(sent.origin, at)

    def _loses(self, origin: str, at: str) -> bool:
        """Whether a service that keeps nothing, and was cut off, may be on the way."""
        forgetful = {
            name
            for name, kind in self.plan.kinds.items()
            if adapter_class(kind).capabilities.incoming == "at most once"
        }
        return any(
            self._cut & forgetful & set(way) for way in _ways(self.plan.links, origin, at, ())
        )

    def _may_repeat(self, at: str) -> bool:
        """Whether the table of guarantees lets an event be there twice."""
        capabilities = adapter_class(self.plan.kinds[at]).capabilities
        return not capabilities.recalls and at in self._crashed

    def judged(self) -> list[str]:
        """What is not as it has to be."""
        found = []
        known = {each.id: each for each in self.sent}
        for at, client in self.clients.items():
            lost = [
                each.id
                for each in self.sent
                if self._must_come(each, at) and not client.seen[each.id]
            ]
            more = [
                f"{each}: {client.how[each]}"
                for each, times in client.seen.items()
                if times > 1 and known[each].origin != at and not self._may_repeat(at)
            ]
            unasked = [
                each
                for each in client.seen
                if known[each].origin != at and not self.wanted(known[each], at)
            ]
            for what, which in (("lost", lost), ("too often", more), ("not asked for", unasked)):
                if which:
                    kind = self.plan.kinds[at]
                    found.append(f"`{at}` ({kind}): {what}: {len(which)}, {sorted(which)[:3]}")
        return found

    def __str__(self) -> str:
        return f"{self.plan.kinds} {self.plan.links} {self.plan.wishes} {self.told}"


def _ways(
    links: dict[str, list[str]], at: str, end: str, been: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """The ways between two services on which none comes twice."""
    been = (*been, at)
    if at == end:
        yield been
        return
    for names in links.values():
        if at in names:
            for each in names:
                if each not in been:
                    yield from _ways(links, each, end, been)


def _toml(tables: dict[str, Any]) -> Iterator[str]:
    for name, given in tables.items():
        for table in given if isinstance(given, list) else [given]:
            yield f"[[{name}]]\n" if isinstance(given, list) else f"[{name}]\n"
            for key, value in table.items():
                yield f"{key} = {value!r}\n".replace("'", '"')

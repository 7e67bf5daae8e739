"""Brokers and gateways that are killed in the middle of traffic: at-least-once pairs lose nothing.

Gateways are processes, and end by SIGKILL, as do brokers, which come back with what they had
stored. The client at the far end tells events apart by their ids: after a crash, a gateway may
publish again what a service has that it cannot ask (`recalls`), and the table of kinds says so.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from ensue.errors import LinkError
from ensue.events.event import Event
from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import ANYTHING, Adapter, Outgoing, Service
from ensue.federation.ending import end
from tests.servers.messaging import Broker

from .conftest import StartServer
from .processes import serving

_numbers = count(1)
PAIRS = [
    ("mqtt", "redis"),
    ("redis", "nats-jetstream"),
    ("nats-jetstream", "amqp"),
    ("amqp", "mqtt"),
]
KEEPS_ALL = ("redis", "nats-jetstream")
"""Services that have on disk what they have confirmed, and are back soon. Mosquitto writes its
store now and then, and RabbitMQ takes long to come back."""
ROUNDS, A_ROUND = 5, 150
LONGEST = 90.0
"""Seconds after which an event is lost; where is then told (`where`)."""


class Client:
    """A client of a service that connects again as often as it must."""

    def __init__(self, kind: str, url: str, address: str) -> None:
        found = adapter_class(kind)
        options = found.options_type(**({"exchange": "fanout"} if kind == "amqp" else {}))
        # Its own name makes it another reader than the gateway.
        name = f"client-{os.getpid()}"
        self._service = Service(address, kind, url, address, gateway=name, options=options)
        self._adapter: Adapter | None = None
        self.seen: Counter[str] = Counter()

    async def publish(self, ids: list[str]) -> None:
        events = [Event.of("T", time=1, id=each, source="test", data={"n": 1}) for each in ids]
        while True:
            try:
                await (await self._connected()).publish([Outgoing(each) for each in events])
            except LinkError:
                await self._lost()
            else:
                return

    async def watch(self) -> None:
        while True:
            try:
                adapter = await self._connected()
                await adapter.listen([ANYTHING])
                while True:
                    came = await adapter.receive()
                    self.seen.update(each.event.id for each in came if each.event)
                    await adapter.acknowledge([each.token for each in came])
            except LinkError:
                await self._lost()

    async def _connected(self) -> Adapter:
        if self._adapter is None:
            adapter = adapter_class(self._service.kind)(self._service)
            await adapter.connect()
            self._adapter = adapter
        return self._adapter

    async def recall(self) -> list[Event]:
        """The latest events that the service has; more than a test publishes."""
        return await (await self._connected()).recall()

    async def _lost(self) -> None:
        await self.close()
        await asyncio.sleep(0.2)

    async def close(self) -> None:
        adapter, self._adapter = self._adapter, None
        if adapter is not None:
            await adapter.close()


async def where(missing: list[str], sender: Client) -> str:
    """Whether events that have not come are lost at their origin, or on their way."""
    told = f"{len(missing)} have not come: {missing[:5]}"
    there = {each.id for each in await sender.recall()}
    if not there:
        return f"{told}; their service cannot be asked"
    lost = [each for each in missing if each not in there]
    return f"{told}; of these, their service has lost {len(lost)}: {lost[:5]}"


def kill(server: Broker) -> None:
    """SIGKILL, and start it again with what it had stored."""
    assert server.process is not None
    server.process.kill()
    server.process.wait()
    server.process = None
    server.resume()


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_nothing_is_lost_when_gateway_and_broker_are_killed(
    source: str, target: str, server: StartServer, tmp_path: Path
) -> None:
    mark = f"{os.getpid()}x{next(_numbers)}"
    servers = {kind: server(kind.partition("-")[0]) for kind in (source, target)}
    names = {kind: f"break.{mark}.{kind}" for kind in servers}
    lines = ['[gateway]\nname = "g"\nsettling = 0.1\n']
    for kind, broker in servers.items():
        lines.append(f'[[service]]\nname = "{kind}"\nkind = "{kind}"\nurl = "{broker.url}"')
        lines.append(f'address = "{names[kind]}"')
        lines.append('exchange = "fanout"\n' if kind == "amqp" else "")
    lines.append(f'[[subscribe]]\nat = "{target}"\nfrom = ["{source}"]\n')
    draw = random.Random(mark)

    async def story() -> None:
        sender = Client(source, servers[source].url, names[source])
        reader = Client(target, servers[target].url, names[target])
        watching = asyncio.create_task(reader.watch())
        with serving(tmp_path / "g.toml", "\n".join(lines)) as gateway:
            sent: list[str] = []
            for round_ in range(ROUNDS):
                ids = [f"{round_}-{number}" for number in range(A_ROUND)]
                sending = asyncio.create_task(sender.publish(ids))
                await asyncio.sleep(draw.uniform(0, 0.1))
                if round_ == 1:
                    gateway.kill()
                    await asyncio.to_thread(gateway.start)
                for kind, killed_in in ((target, 2), (source, 3)):
                    if round_ == killed_in and kind in KEEPS_ALL:
                        await asyncio.to_thread(kill, servers[kind])
                await sending
                sent += ids
            until = asyncio.get_running_loop().time() + LONGEST
            while missing := sorted(set(sent) - set(reader.seen)):
                late = asyncio.get_running_loop().time() > until
                assert not late, f"{await where(missing, sender)}\n{gateway.said}"
                await asyncio.sleep(0.1)
            assert set(reader.seen) == set(sent)
        await end([watching])
        for each in (sender, reader):
            await each.close()

    async def limited() -> None:
        async with asyncio.timeout(240):
            await story()

    asyncio.run(limited())

"""Neighbours that lie: whatever they say, honest channels that are linked lose nothing by it.

Two honest channels have a link of their own. One or two liars are linked to both: they shake hands
as they should, and then say anything, in any order: routes that lead nowhere, routes of others,
withdrawals, events of others' names, acknowledgements of what was never sent, damaged frames; they
read what they are sent, or not. Every event of the honest channels arrives at the other, once, and
no consumer hears the same event of a liar twice by one identity.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import msgspec

from ensue.channel import DropNewest
from ensue.channel.links.messages import Advert, Carried, RemoteWant, Route
from ensue.channel.links.tcp.handshake import Handshake
from ensue.channel.links.tcp.wire import (
    LARGEST_FRAME,
    Acknowledge,
    Bye,
    Challenge,
    Frame,
    FrameReader,
    Heartbeat,
    Hello,
    Introduction,
    Numbered,
    encode,
    framed,
)
from ensue.events.event import Event
from tests.channel.accounting import unbalanced
from tests.channel.simulation.world import TYPES, World


class Liar(asyncio.Protocol):
    """A caller that shakes hands and then says anything."""

    def __init__(self, world: World, name: str, others: list[str]) -> None:
        self._world = world
        self._chance = world.chance
        self._name = name
        self._names = [name, *others, "nobody#0"]
        self._handshake = Handshake(True, None, world.links.entropy)
        self._frames = FrameReader(LARGEST_FRAME)
        self._is_in = False
        self._numbers = 0
        self._transport: asyncio.Transport | None = None
        self._reads = self._chance.random() < 0.7
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(framed(self._handshake.hello()))

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self.is_lost = True

    def data_received(self, data: bytes) -> None:
        self._frames.feed(data)
        while (frame := self._frames.next()) is not None:
            if isinstance(frame, Challenge):
                self._handshake.receive(frame)
                own = Introduction(self._name, self._name, True, 1, 0, b"")
                self._write(framed(self._handshake.introduce(own)))
            elif isinstance(frame, Introduction):
                self._is_in = True
            elif isinstance(frame, Numbered) and self._chance.random() < 0.5:
                self._write(framed(Acknowledge(frame.number)))
        if self._is_in and not self._reads and self._transport is not None:
            self._transport.pause_reading()

    def say_something(self) -> None:
        if self._is_in and not self.is_lost:
            data = bytearray(framed(self._drawn()))
            if self._chance.random() < 0.05:
                data[self._chance.randrange(4, len(data))] = self._chance.randrange(256)
            self._write(bytes(data))

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _drawn(self) -> Frame:
        chance, names = self._chance, self._names
        kind = chance.random()
        if kind < 0.55:
            return Advert(
                chance.choice([0, 5, 2**62]),
                chance.random() < 0.2,
                tuple(self._route() for _ in range(chance.randint(0, 3))),
            )
        if kind < 0.9:
            self._numbers = max(0, self._numbers + chance.choice([1, 1, 1, 1, 0, -1, 50]))
            event = Event(f"lie{chance.randrange(1_000)}", "liar", chance.choice(TYPES), 0, {})
            to = tuple(chance.choices(names, k=chance.randint(0, 4)))
            identity = chance.choice([1, 2, 3, chance.getrandbits(62)])
            lie = Carried(chance.choice(names), identity, chance.choice([1, 63, 64]), to, event)
            return Numbered(self._numbers, msgspec.Raw(encode(lie)))
        rare: list[Frame] = [
            Acknowledge(chance.choice([0, 1, 2**40])),
            Bye(),
            Heartbeat(),
            Hello(2, b"n" * 32),
        ]
        return chance.choices(rare, weights=[4, 1, 20, 1])[0]

    def _route(self) -> Route:
        chance, names = self._chance, self._names
        channel = chance.choice(names)
        middle = chance.sample(names[1:], chance.randint(0, 2))
        path = chance.choice(
            [(), (self._name,), (self._name, channel), (self._name, *middle, channel)]
        )
        if chance.random() < 0.9:
            # Mostly one that can be believed.
            path = tuple(dict.fromkeys(path))
            channel = path[-1] if path else channel
        wants = tuple(
            RemoteWant(chance.choice([None, *TYPES]), None, chance.choice([None, None, "n > 3"]))
            for _ in range(chance.randint(0, 2))
        )
        return Route(channel, chance.choice([1, 7, 2**62, 2**63 - 1]), path, wants)


def simulate_liars(seed: int) -> list[tuple[float, str, str]]:
    """Run the world of a seed to its end. Returns what consumers got, and when."""
    world = World(seed)
    try:
        _run(world, world.chance)
    finally:
        world.close()
    assert not world.loop.errors, world.loop.errors[0]
    return world.trace


def _run(world: World, chance: random.Random) -> None:
    near, far = world.add_channel("near"), world.add_channel("far")
    honest = near.federation.connect(*far.federation.listen(), backoff="5 ms", seed=1)
    for channel in (near, far):
        channel.consumers.connect("one", _noting(world, channel.name), "Notify", failures=None)
    assert world.loop.run_until(
        lambda: all(each.federation.remote.is_wanted("Notify", None) for each in (near, far)), 20.0
    )
    ids = [near.federation.id, far.federation.id]
    ports = [
        each.federation.listen(buffer=50, overflow=DropNewest(), patience="10 ms")[1]
        for each in (near, far)
    ]
    liars: list[Liar] = []
    pushed = 0
    for turn in range(chance.randint(10, 40)):
        if turn % 8 == 0:
            port, name = chance.choice(ports), f"liar{chance.randrange(3)}#0"
            liars.append(Liar(world, name, ids))
            world.loop.run_until_complete(world.network.dial(lambda: liars[-1], port))
        for liar in liars:
            for _ in range(chance.randint(0, 4)):
                liar.say_something()
        for channel in (near, far):
            pushed += 1
            event = Event(f"{channel.name}:{pushed}", channel.name, "Notify", 0, {"n": pushed})
            world.supplies.append(world.loop.create_task(channel.publish(event)))
        world.loop.run_for(chance.choice([0.0, 0.01, 0.1]))
    assert world.loop.run_until(lambda: all(each.done() for each in world.supplies), 60.0)
    assert world.loop.run_until(lambda: not honest.session.in_transit, 60.0)
    world.loop.run_for(1.0)

    got = Counter((name, identity) for _, name, identity in world.trace)
    for here, there in (("near", "far"), ("far", "near")):
        sent = {identity for _, identity in got if identity.startswith(f"{here}:")}
        assert len(sent) == pushed // 2
        assert all(got[(there, identity)] == 1 for identity in sent), "an honest event was lost"
        assert all(got[(here, identity)] == 1 for identity in sent)
    # What is between honest channels and liars is in nobody's books; consumers' books are right.
    assert not unbalanced([near, far])
    for channel in (near, far):
        for listener in channel.federation._listeners:
            assert all(len(each._outbox) <= 60 for each in listener._sessions.values())


def _noting(world: World, name: str) -> Any:
    def call(event: Event) -> None:
        world.trace.append((world.loop.now, name, event.id))

    return call

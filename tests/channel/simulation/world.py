"""Channels, links, consumers and troubles drawn from a seed, and what must hold at the end.

A world has a few channels, linked by the simulated network and within the process, in any graph.
Suppliers publish; consumers are quick or slow, fail, fill up, or are not read for a while; links
are cut, torn, silenced and delayed; clocks jump. In the end the network heals and everybody reads
again. Some consumers want a rule, which may run at the other end of a link. Then nothing is left on
its way, no consumer got an event twice, and every event is delivered or counted.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import ensue
from ensue.channel import (
    Block,
    Channel,
    Disconnect,
    DropNewest,
    DropOldest,
    Reason,
    VirtualClock,
    build,
    correlated,
    want,
)
from ensue.channel.asyncio_api import Subscription
from ensue.channel.delivery.receiver import Receiver
from ensue.channel.links.federation import Federation
from ensue.channel.links.tcp.connection import WAITING_FOR_ROOM
from ensue.channel.links.tcp.links import TcpLink
from ensue.channel.lookup.wants import Wants
from ensue.events.event import Event
from tests.channel.accounting import unbalanced
from tests.channel.making import LIBRARY
from tests.channel.simulation.loop import SimulatedLinks, VirtualLoop
from tests.channel.simulation.network import Network

TYPES = ("Notify", "DataNotify", "Special", "Other")
ECHO = ensue.parse("""
eventtype Notify { };
eventtype DataNotify : Notify { };
eventtype Special : DataNotify { };
Notify correlation Echo (Notify a) a { case true: push a; }
""")
"""A rule that may run at either end of a link: each event is an output of the same id."""
SECRET = b"a secret of the simulation"


class Matches:
    """Stands before a dispatcher and counts how often the look-up found each receiver."""

    def __init__(self, dispatcher: Any, found: Counter[Receiver]) -> None:
        self._dispatcher = dispatcher
        self._found = found

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        self._found.update(receivers)
        full: list[Receiver] = self._dispatcher.spread(event, receivers)
        return full

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dispatcher, name)


class World:
    """Everything that one seed describes. `trace` is what consumers got, and when."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.loop = VirtualLoop()
        self.network = self.loop.network = Network(self.loop, self.chance)
        self.links = SimulatedLinks(self.loop, self.chance)
        self.trace: list[tuple[float, str, str]] = []
        self.clocks: dict[str, VirtualClock] = {}
        self.channels: list[Channel] = []
        self.dialled: list[TcpLink] = []
        self.unread: list[Subscription] = []
        self.read: list[Subscription] = []
        self.supplies: list[asyncio.Task[None]] = []
        self.published = 0
        self.found: Counter[Receiver] = Counter()
        self.changed: set[Receiver] = set()
        self.is_calm = True

    # Making it.

    def add_channel(self, name: str) -> Channel:
        clock = self.clocks[name] = VirtualClock(int(self.loop.now * 1e6))
        strategy = self.chance.choice(["reactive", "asyncio"])

        async def made() -> Channel:
            return build("full", name).library(LIBRARY).clock(clock).dispatching(strategy).done()

        channel = self.loop.run_until_complete(made())
        channel._federation = Federation(channel, self.links)
        channel._dispatcher = Matches(channel._dispatcher, self.found)
        self.channels.append(channel)
        return channel

    def drawn_overflow(self) -> Any:
        return self.chance.choice(
            [Block("0 s"), Block("50 ms"), Block("2 s"), DropOldest(), DropNewest()]
        )

    def link(self, one: Channel, other: Channel) -> None:
        """By the network, or within the process."""
        chance = self.chance
        if chance.random() < 0.25:
            one.federation.link(other)
            return
        overflow = chance.choice([None, self.drawn_overflow(), self.drawn_overflow(), Disconnect()])
        # A link that ends because it is full has sent what nobody will acknowledge.
        self.is_calm = self.is_calm and not isinstance(overflow, Disconnect)
        options = {
            "buffer": chance.choice([1, 3, 20, 10_000]),
            "buffer_bytes": chance.choice([500, 5_000, 10_000_000]),
            "patience": chance.choice(["10 ms", "1 s", "30 s"]),
            "overflow": overflow,
            "secret": SECRET if chance.random() < 0.5 else None,
        }
        address = other.federation.listen(**options)
        self.dialled.append(
            one.federation.connect(
                *address,
                reliable=chance.random() < 0.8,
                backoff="5 ms",
                longest_backoff="500 ms",
                seed=chance.randrange(1_000),
                **options,
            )
        )

    def add_consumer(self, channel: Channel, name: str) -> None:
        chance = self.chance
        is_in_process = any(
            type(link).__name__ == "InProcessLink"
            for link in channel.federation._routes.all_links()
        )
        overflow = self.drawn_overflow()
        if is_in_process and channel.strategy == "reactive":
            # Within the process the publishing thread waits, and there is but one.
            overflow = chance.choice([Block("0 s"), DropOldest(), DropNewest()])
        quality: dict[str, Any] = {
            "capacity": chance.choice([1, 2, 10, 1_000]),
            "overflow": overflow,
            "conflate": chance.random() < 0.1,
            "failures": None,
            "time_to_live": chance.choice([None, None, None, "20 ms"]),
        }
        wants: Wants = want(chance.choice(TYPES), where=chance.choice([None, None, "n > 3"]))
        if chance.random() < 0.25:
            wants = correlated(ECHO, "Echo", max_jump="none")
        kind = chance.random()
        if kind < 0.3:
            subscription = channel.subscribe(wants, name=name, **quality)
            (self.unread if chance.random() < 0.5 else self.read).append(subscription)
        elif kind < 0.6 and channel.strategy == "asyncio":
            channel.consumers.connect(name, self._slow(channel, name), wants, **quality)
        else:
            fails = chance.choice([0.0, 0.0, 0.2])
            channel.consumers.connect(name, self._quick(channel, name, fails), wants, **quality)

    def _note(self, channel: Channel, name: str, event: Event) -> None:
        self.trace.append((self.loop.now, f"{channel.name}/{name}", event.id))

    def _quick(self, channel: Channel, name: str, fails: float) -> Any:
        def call(event: Event) -> None:
            if self.chance.random() < fails:
                raise ValueError("no good")
            self._note(channel, name, event)
            if event.type == "Notify" and self.chance.random() < 0.1:
                self.publish(channel, "Other")

        return call

    def _slow(self, channel: Channel, name: str) -> Any:
        async def call(event: Event) -> None:
            await asyncio.sleep(self.chance.choice([0.001, 0.02, 0.2]))
            self._note(channel, name, event)

        return call

    # Letting it run.

    def publish(self, channel: Channel, type_: str) -> None:
        if channel._is_closed:
            return
        self.published += 1
        data = {"n": self.published, "text": "x" * self.chance.choice([0, 0, 100, 3_000])}
        event = Event(f"e{self.published}", channel.name, type_, int(self.loop.now * 1e6), data)
        self.supplies.append(self.loop.create_task(channel.publish(event)))

    def take_all(self, subscriptions: list[Subscription]) -> None:
        for each in subscriptions:
            for event in each.take_all():
                self.trace.append((self.loop.now, each.consumer.name, event.id))

    def trouble(self) -> None:
        chance = self.chance
        self.is_calm = False
        kinds = {
            self.network.cut_one: 30,
            self.network.silence_one: 10,
            lambda: self.network.stall_one(chance.choice([0.1, 1.0, 30.0])): 15,
            self._open_or_close_network: 8,
            lambda: self.loop.jump(chance.choice([0.5, 10.0, 100_000.0])): 8,
            self._jump_clock: 8,
            self._unlink: 5,
            self._close_link: 4,
            self._connect_late: 5,
            self._change_consumer: 8,
            self._cancel_supply: 8,
            self._close_channel: 3,
        }
        chance.choices(list(kinds), weights=list(kinds.values()))[0]()

    def _open_or_close_network(self) -> None:
        self.network.is_closed = not self.network.is_closed

    def _jump_clock(self) -> None:
        clock = self.chance.choice(list(self.clocks.values()))
        clock.advance(self.chance.choice(["1 s", "3 h", "1000 d"]))

    def _unlink(self) -> None:
        one, other = self.chance.sample(self.channels, 2)
        one.federation.unlink(other)

    def _close_link(self) -> None:
        if self.dialled:
            self.chance.choice(self.dialled).close(self.chance.choice([0.0, 1.0]))

    def _connect_late(self) -> None:
        name = f"late{self.published}"
        channel = self.chance.choice(self.channels)
        if name not in channel.consumers and not channel._is_closed:
            channel.consumers.connect(
                name, self._quick(channel, name, 0.0), self.chance.choice(TYPES)
            )

    def _change_consumer(self) -> None:
        consumers = list(self.chance.choice(self.channels).consumers)
        if consumers:
            one = self.chance.choice(consumers)
            self.changed.add(one.receiver)
            if self.chance.random() < 0.3:
                one.disconnect()
            elif one.state == "connected":
                one.change(self.chance.choice(TYPES))

    def _cancel_supply(self) -> None:
        waiting = [each for each in self.supplies if not each.done()]
        if waiting:
            self.chance.choice(waiting).cancel()

    def _close_channel(self) -> None:
        """Leave, with or without emptying queues; consumers of others are not affected."""
        if len(self.channels) > 2:
            self.chance.choice(self.channels).close(drain=False)

    def run(self) -> None:
        chance = self.chance
        for name in "abcde"[: chance.randint(2, 5)]:
            self.add_channel(name)
        for number, channel in enumerate(self.channels[1:], 1):
            self.link(channel, self.channels[chance.randrange(number)])
        for _ in range(chance.randint(0, 2)):
            self.link(*chance.sample(self.channels, 2))
        for channel in self.channels:
            for number in range(chance.randint(0, 3)):
                self.add_consumer(channel, f"{channel.name}{number}")
        self.loop.run_for(chance.choice([0.0, 0.5]))
        is_troubled = chance.random() < 0.7
        for _ in range(chance.randint(5, 25)):
            for _ in range(chance.randint(0, 6)):
                self.publish(chance.choice(self.channels), chance.choice(TYPES))
            if is_troubled and chance.random() < 0.2:
                self.trouble()
            self.loop.run_for(chance.choice([0.0, 0.001, 0.03, 0.5]))
            self.take_all(self.read)
            for clock in self.clocks.values():
                clock.move_to(int(self.loop.now * 1e6))

    def heal(self) -> None:
        """No more trouble: let everything arrive that can."""
        self.network.is_closed = False
        for wire in self.network.wires:
            for end in wire.ends:
                end.go_on()
        self.loop.run_until(self._is_quiet, 120.0)

    def _is_quiet(self) -> bool:
        self.take_all(self.read)
        self.take_all(self.unread)
        return (
            all(each.done() for each in self.supplies)
            and not self._waits_for_room()
            and all(each.is_settled() for each in self.channels)
            # A consumer that has left may still be in a call.
            and not any(each.is_busy for each in self.found if each.call is not None)
            and not sum(each.federation.in_transit for each in self.channels)
        )

    def _waits_for_room(self) -> bool:
        """Whether an event that a link has brought, perhaps one that is gone, waits for room."""
        tasks = asyncio.all_tasks(self.loop)
        return any(each.get_name() == WAITING_FOR_ROOM for each in tasks)

    def close(self) -> None:
        for channel in self.channels:
            channel.close(within="0 s")
        self.loop.run_for(1.0)
        self.take_all(self.read)
        self.take_all(self.unread)
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_for(0.1)
        self.loop.close()

    # What must hold.

    def check(self) -> None:
        assert not self.loop.errors, self.loop.errors[0]
        assert self._is_quiet(), "something is still on its way"
        self._check_counts()
        lost = Counter[Reason]()
        for channel in self.channels:
            lost.update(channel.federation.dropped())
        assert not self.is_calm or not lost[Reason.UNCONFIRMED], lost

    def _check_counts(self) -> None:
        doubled = [
            key
            for key, count in Counter((name, event) for _, name, event in self.trace).items()
            if count > 1
        ]
        assert not doubled, f"delivered twice: {doubled[:3]}"
        faults = unbalanced(self.channels)
        assert not faults, faults
        for receiver, found in self.found.items():
            # With other wants, an event that was found for the earlier ones is not wanted any more.
            # A rule of another channel has been given what was kept for it, too.
            is_told = receiver.wanted == found or "/" in receiver.name
            assert is_told or receiver in self.changed, receiver.figures()


def simulate(seed: int) -> list[tuple[float, str, str]]:
    """Run the world of a seed to its end. Returns what consumers got, and when."""
    world = World(seed)
    try:
        world.run()
        world.heal()
        world.check()
    finally:
        world.close()
    world._check_counts()
    return world.trace

"""A tree of brokers over a simulated network, in virtual time and by a seed.

Links are those of the event channel, over connections that are delayed, torn, cut and silenced;
some brokers are linked within the process. Nothing depends on the machine.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any

from ensue.brokers import Broker, link
from ensue.brokers.network import Links
from ensue.brokers.network.worker import Inline
from ensue.channel.links.tcp.links import TcpLink
from ensue.events.event import Event
from ensue.subscriptions import Filter
from tests.brokers.trees import OneBroker, random_event, random_filter
from tests.channel.simulation.loop import SimulatedLinks, VirtualLoop
from tests.channel.simulation.network import Network

SECRET = b"a secret of the simulation"


class World:
    """`got` counts what subscribers were given; `due` is what one broker would have given."""

    def __init__(self, seed: int, *, advertised: bool = False, **options: Any) -> None:
        self.random = Random(seed)
        self.loop = VirtualLoop()
        self.network = self.loop.network = Network(self.loop, self.random)
        self.advertised = advertised
        self.options = options
        self.brokers: list[Broker] = []
        self.links: dict[str, Links] = {}
        self.dialled: list[TcpLink] = []
        self.one = OneBroker()
        self.homes: dict[str, Broker] = {}
        self.offers: dict[str, tuple[Broker, Filter]] = {}
        self.got: Counter[tuple[str, str]] = Counter()
        self.due: Counter[tuple[str, str]] = Counter()
        self._loop = SimulatedLinks(self.loop, self.random)
        self._number = 0

    def grow(self, size: int, in_process: float = 0.25) -> None:
        """Brokers linked to a tree, in a random order."""
        for number in range(size):
            self.add(f"b{number}")
        pairs = [(self.random.randrange(number), number) for number in range(1, size)]
        self.random.shuffle(pairs)
        for one, other in pairs:
            ends = [self.brokers[one], self.brokers[other]]
            self.random.shuffle(ends)
            if self.random.random() < in_process:
                link(*ends)
            else:
                self.dial(*ends)

    def add(self, name: str) -> Broker:
        broker = Broker(name, advertised=self.advertised)
        self.brokers.append(broker)
        self.links[name] = Links(broker, loop=self._loop, worker=Inline())
        return broker

    def dial(self, one: Broker, other: Broker) -> TcpLink:
        options = {"patience": "60 s", "secret": SECRET, **self.options}
        listening = {name: value for name, value in options.items() if name != "reliable"}
        address = self.links[other.name].listen(**listening)
        dialled = self.links[one.name].connect(
            *address,
            backoff="5 ms",
            longest_backoff="500 ms",
            seed=self.random.randrange(1_000),
            **options,
        )
        self.dialled.append(dialled)
        return dialled

    # What clients do.

    def subscribe(self) -> None:
        self._number += 1
        name, home = f"s{self._number}", self.random.choice(self.brokers)
        text = random_filter(self.random)
        home.subscribe(name, text, partial(self._take, name))
        self.one.filters[name], self.homes[name] = Filter.parse(text), home

    def unsubscribe(self) -> None:
        if self.homes:
            name = self.random.choice(list(self.homes))
            self.homes.pop(name).unsubscribe(name)
            del self.one.filters[name]

    def advertise(self) -> None:
        self._number += 1
        name, home = f"a{self._number}", self.random.choice(self.brokers)
        text = random_filter(self.random)
        home.advertise(name, text)
        self.offers[name] = home, Filter.parse(text)

    def unadvertise(self) -> None:
        if self.offers:
            name = self.random.choice(list(self.offers))
            self.offers.pop(name)[0].unadvertise(name)

    def publish(self) -> None:
        self._number += 1
        event, home = random_event(self.random, self._number), self.random.choice(self.brokers)
        offered = [each for where, each in self.offers.values() if where is home]
        if not self.advertised or any(each.matches(event) for each in offered):
            self.due.update((name, event.id) for name in self.one.publish(event))
            home.publish(event)

    def _take(self, name: str, event: Event) -> None:
        self.got[name, event.id] += 1

    # What the network does.

    def trouble(self) -> None:
        chance = self.random.random()
        if chance < 0.6:
            self.network.cut_one()
        elif chance < 0.8:
            self.network.silence_one()
        else:
            self.network.stall_one(self.random.uniform(0.01, 4.0))

    def pass_time(self, most: float) -> None:
        self.loop.run_for(self.random.uniform(0.0, most))

    def settle(self, seconds: float = 300.0) -> None:
        """Let time pass until everything has arrived and both ends of each link agree."""
        assert self.loop.run_until(self._is_settled, seconds), "the links do not settle"

    def _is_settled(self) -> bool:
        if any(each.in_transit for each in self.links.values()):
            return False
        for name, links in self.links.items():
            for far, end in links._ends.items():
                back = self.links[far]._ends.get(name)
                if back is None or not end.session.is_connected:
                    return False
                if set(back.hearing._said) != set(end._said):
                    return False
        return all(each.is_connected for each in self.dialled)

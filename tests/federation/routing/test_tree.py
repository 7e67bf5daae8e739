"""The tree of open links: no moment in which events could take two ways, whatever is late.

Gateways say hello over services in which every message takes its own time, so that each acts on
what was true some time ago. After every step the open links must be a forest, and once everything
has been said, one tree for all services that gateways connect.
"""

from __future__ import annotations

import random
from collections import deque

import pytest

from ensue.federation.routing.control import GatewayHello
from ensue.federation.routing.tree import Tree

PATIENCE = 10.0


class Net:
    """Gateways and what is on its way between them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.services = [f"s{number}" for number in range(self.random.randint(2, 5))]
        self.now = 0.0
        self.beats = 0
        self.links: dict[str, list[str]] = {}
        self.trees: dict[str, Tree] = {}
        self.said: dict[tuple[str, str], tuple[object, ...]] = {}
        self.under_way: dict[tuple[str, str, str], deque[GatewayHello]] = {}
        for number in range(self.random.randint(2, 6)):
            most = min(3, len(self.services))
            names = self.random.sample(self.services, self.random.randint(2, most))
            self.links[f"g{number}"] = names
        for name in self.links:
            self.come(name)

    def at(self, service: str) -> list[str]:
        return [each for each in self.trees if service in self.links[each]]

    def come(self, name: str) -> None:
        """A gateway starts, for the first time or again, and knows who is at its services."""
        tree = self.trees[name] = Tree(name, self.links[name], PATIENCE)
        for service in self.links[name]:
            self.said.pop((name, service), None)
            tree.close(service, set(self.at(service)) - {name}, self.now)

    def go(self, name: str) -> None:
        """A gateway is gone, and what it had said is lost."""
        del self.trees[name]
        for way in [each for each in self.under_way if name in (each[0], each[2])]:
            del self.under_way[way]

    def act(self, name: str, beat: bool = False) -> None:
        """A gateway acts on what it has heard, and speaks if that is new."""
        tree = self.trees[name]
        tree.settle(self.now)
        self.check()
        for service in sorted(tree.active - tree.open):
            if not tree.waits_for(service, self.now):
                tree.carry(service)
                self.check()
        for service in self.links[name]:
            saying = tree.vector, tree.follows(service, self.now)
            if beat or self.said.get((name, service)) != saying:
                self.said[name, service] = saying
                self.beats += 1
                hello = GatewayHello(
                    name, name, *tree.vector[:2], tree.beat(self.beats), "", saying[1]
                )
                for other in self.at(service):
                    if other != name:
                        self.under_way.setdefault((name, service, other), deque()).append(hello)

    def deliver(self) -> bool:
        """One message arrives, of any sender; messages of one sender keep their order."""
        ways = sorted(way for way, messages in self.under_way.items() if messages)
        if not ways:
            return False
        way = self.random.choice(ways)
        _, service, receiver = way
        self.trees[receiver].hear(service, self.under_way[way].popleft(), self.now)
        if self.random.random() < 0.7:
            self.act(receiver)
        return True

    def talk(self) -> None:
        """Until nobody has anything new to say."""
        for _ in range(20_000):
            if not self.deliver():
                said = dict(self.said)
                for name in list(self.trees):
                    self.act(name)
                if said == self.said and not any(self.under_way.values()):
                    return
        raise AssertionError("the gateways do not come to an end")

    def wait(self) -> None:
        """Time goes on, in which everybody who is there is heard."""
        for _ in range(12):
            self.now += PATIENCE / 4
            for name in list(self.trees):
                self.act(name, beat=True)
            self.talk()

    def component(self, begin: str, is_open: bool) -> set[str]:
        found, waiting = {begin}, [begin]
        while waiting:
            here = waiting.pop()
            for name, tree in self.trees.items():
                links = tree.open if is_open else frozenset(self.links[name])
                if here in links:
                    waiting += [each for each in links if each not in found]
                    found |= links
        return found

    def check(self) -> None:
        """The open links are a forest: each joins two parts that nothing else joins."""
        part = {each: each for each in (*self.services, *self.trees)}

        def top(node: str) -> str:
            while part[node] != node:
                node = part[node]
            return node

        for name, tree in self.trees.items():
            for service in tree.open:
                one, other = top(name), top(service)
                assert one != other, {each: sorted(t.open) for each, t in self.trees.items()}
                part[one] = other


@pytest.mark.parametrize("seed", range(150))
def test_open_links_are_a_forest_at_every_moment_and_one_tree_in_the_end(seed: int) -> None:
    net = Net(seed)
    for _ in range(6):
        for _ in range(net.random.randrange(60)):
            if not net.deliver():
                net.act(net.random.choice(list(net.trees)), beat=True)
        name = net.random.choice(list(net.links))
        if name not in net.trees:
            net.come(name)
        elif net.random.random() < 0.3 and len(net.trees) > 1:
            net.go(name)
            if net.random.random() < 0.5:
                net.wait()
        elif net.random.random() < 0.5:
            net.go(name)
            net.come(name)
    net.wait()

    for service in net.services:
        assert net.component(service, True) == net.component(service, False)


def test_a_gateway_that_comes_back_late_opens_nothing_that_another_is_about_to_open() -> None:
    """The other has said that it leaves the service to the one that is gone, and is as sure again
    only once it has heard it."""
    other = Tree("g3", ["s"], PATIENCE)
    other.hear("s", GatewayHello("g1", "old", "g1", 0, 1, ""), 0.0)
    other.settle(0.0)
    late = 0.9 * PATIENCE
    said = GatewayHello("g3", "g3", *other.vector[:2], 1, "", other.follows("s", late))
    again = Tree("g1", ["s"], PATIENCE)
    again.close("s", ["g3"], late)
    again.hear("s", said, late)
    again.settle(late)
    assert again.waits_for("s", late) == ["g3"]

    other.hear("s", GatewayHello("g1", "new", "g1", 0, 2, ""), late)
    other.settle(late)
    again.hear("s", GatewayHello("g3", "g3", "g1", 1, 2, "", other.follows("s", late)), late)

    assert not again.waits_for("s", late)

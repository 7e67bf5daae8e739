"""The tree that events take: which of a gateway's links carry events, in any topology.

Services are to gateways what networks are to bridges, and the algorithm is that of bridges (IEEE
802.1D): the gateway of the smallest name is the root; every gateway has one service through which
it reaches the root best, and at every service one gateway is designated, the one nearest to the
root. The other links rest. What is left is a tree, so that between two services there is one way.
A gateway keeps only what its neighbours last said.

A link that the tree gives to this gateway is `active`, and carries events once it is `open`. Views
differ for a moment whenever something has changed, and events must not take two ways meanwhile. So
all links but the one towards the root close when the own vector changes, and a link opens when
every gateway at its service says that it follows just this vector (the proposals and agreements of
IEEE 802.1w). A gateway that was heard before the link was new has to be heard again first.

The root counts a beat on, which the others pass on with what they say. Of a root that is gone the
beat stands still, and after `patience` seconds no gateway believes in it. A gateway that comes back
sooner takes its place again, and nothing has moved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ensue.federation.routing.control import GatewayHello

Vector = tuple[str, int, str]
"""The root that a gateway believes in, how far away it is, and the name of the gateway."""
MOST_HOPS = 64
"""The longest way to a root: ways to a root that is gone grow from gateway to gateway."""
MOST_NEIGHBOURS = 1_000
"""Gateways that are known at one service. Names can be made up."""
MOST_ROOTS = 10_000


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What a gateway at a service last said, and when it was heard."""

    root: str
    cost: int
    gateway: str
    heard: float
    follows: Vector | None = None

    @property
    def vector(self) -> Vector:
        return self.root, self.cost, self.gateway


class Tree:
    """One gateway's view. Times are seconds of any clock that only goes forward."""

    def __init__(self, name: str, services: Iterable[str], patience: float) -> None:
        self.name = name
        self.root = name
        self.cost = 0
        self.towards_root = ""
        """The service through which the root is reached; none at the root itself."""
        self.active = frozenset(services)
        self.open: frozenset[str] = frozenset()
        """The links that carry events; each is active."""
        self._services = tuple(self.active)
        self._patience = patience
        self._heard: dict[str, dict[str, Neighbour]] = {each: {} for each in self._services}
        self._beats: dict[str, tuple[int, float]] = {}
        self._own_beat = 0
        self._awaited: dict[str, dict[str, float]] = {each: {} for each in self._services}
        """Gateways that must be heard before a link opens, and until when they are waited for."""

    @property
    def vector(self) -> Vector:
        return self.root, self.cost, self.name

    def hear(self, service: str, hello: GatewayHello, now: float) -> bool:
        """Take in what a neighbour says; tell whether the gateway is new at the service."""
        known = self._heard[service]
        is_new = hello.gateway not in known
        if is_new and len(known) >= MOST_NEIGHBOURS:
            self._forget_silent(service, now)
            if len(known) >= MOST_NEIGHBOURS:
                return False
        if hello.root not in self._beats and len(self._beats) >= MOST_ROOTS:
            self._forget_roots(now)
        known[hello.gateway] = Neighbour(hello.root, hello.cost, hello.gateway, now, hello.follows)
        self._awaited[service].pop(hello.gateway, None)
        beat, _ = self._beats.get(hello.root, (-1, now))
        if hello.beat > beat:
            self._beats[hello.root] = hello.beat, now
        return is_new

    def settle(self, now: float) -> bool:
        """Find the active links anew; tell whether anything has changed. None opens by this."""
        before = self.root, self.cost, self.towards_root, self.active
        vector, towards_root = self.vector, self.towards_root
        own = (self.name, 0, self.name, "")
        offers = [
            (each.root, each.cost + 1, each.gateway, service)
            for service in self._services
            for each in self._credible(service, now)
        ]
        self.root, self.cost, _, self.towards_root = min([own, *offers])
        self.active = frozenset(
            service
            for service in self._services
            if service == self.towards_root
            or all(self.vector < each.vector for each in self._credible(service, now))
        )
        self.open &= self.active
        if self.vector != vector:
            self.open &= {self.towards_root}
        if self.towards_root != towards_root:
            self.open -= {towards_root}
        return before != (self.root, self.cost, self.towards_root, self.active)

    def beat(self, now_in_milliseconds: int) -> int:
        """The beat to say: of a root the next one, else the latest that was heard of the root.

        A root counts milliseconds, so that it goes on from there when it comes back.
        """
        if self.root != self.name:
            return self._beats.get(self.root, (0, 0.0))[0]
        self._own_beat = max(self._own_beat + 1, now_in_milliseconds)
        return self._own_beat

    def is_designated(self, service: str) -> bool:
        """Whether this is the one gateway that speaks for a service."""
        return service in self.active and service != self.towards_root

    def neighbours(self, service: str, now: float) -> list[str]:
        """The gateways at a service that have been heard lately."""
        return [
            each.gateway
            for each in self._heard[service].values()
            if now - each.heard < self._patience
        ]

    def follows(self, service: str, now: float) -> Vector | None:
        """The vector of the gateway that has a service, if that is another one.

        Of one that is silent for half of `patience` it is not said any more. Such a gateway may be
        coming back, and open its link at this word; what it says then must be heard here before it
        is given up.
        """
        found = self._credible(service, now)
        best = min(found, key=lambda each: each.vector, default=None)
        if best is None or best.vector > self.vector or now - best.heard >= self._patience / 2:
            return None
        return best.vector

    def close(self, service: str, awaited: Iterable[str], now: float) -> None:
        """The link to a service is new: its gateways have to make their statements again."""
        self.open -= {service}
        known = self._heard[service]
        for name, each in known.items():
            known[name] = replace(each, follows=None)
        lately = self.neighbours(service, now)
        self._awaited[service] = dict.fromkeys((*awaited, *lately), now + self._patience)

    def expect(self, service: str, gateway: str, now: float) -> None:
        """A gateway is at a service, and has not said its place in the tree yet."""
        awaited = self._awaited[service]
        if gateway not in self._heard[service] and len(awaited) < MOST_NEIGHBOURS:
            awaited.setdefault(gateway, now + self._patience)

    def waits_for(self, service: str, now: float) -> list[str]:
        """The gateways without whose word a link does not open; of an active one that may, none."""
        awaited = self._awaited[service].items()
        missing = {name for name, until in awaited if now < until}
        if service != self.towards_root:
            missing |= {
                name
                for name in self.neighbours(service, now)
                if self._heard[service][name].follows != self.vector
            }
        return sorted(missing)

    def has_company(self, service: str) -> bool:
        """Whether another gateway has ever been heard at a service."""
        return bool(self._heard[service])

    def carry(self, service: str) -> None:
        """Events go over a link from now on."""
        self.open |= {service} & self.active

    def _forget_silent(self, service: str, now: float) -> None:
        for name in [
            name
            for name, each in self._heard[service].items()
            if now - each.heard >= self._patience
        ]:
            del self._heard[service][name]

    def _forget_roots(self, now: float) -> None:
        """Keep the beats of roots that a gateway has named lately."""
        named = {each.root for heard in self._heard.values() for each in heard.values()}
        self._beats = {
            root: (beat, moved)
            for root, (beat, moved) in self._beats.items()
            if root in named or root == self.root or now - moved < self._patience
        }
        while len(self._beats) >= MOST_ROOTS:
            self._beats.pop(next(each for each in self._beats if each != self.root))

    def _credible(self, service: str, now: float) -> list[Neighbour]:
        found = []
        for each in self._heard[service].values():
            _, moved = self._beats.get(each.root, (0, 0.0))
            is_heard = now - each.heard < self._patience and each.cost < MOST_HOPS
            if is_heard and (each.root == self.name or now - moved < self._patience):
                found.append(each)
        return found

"""Routes by path: whatever order adverts come in, they settle on the shortest ways."""

from __future__ import annotations

import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.channel.links.faults import LinkFault, LinkFaultError
from ensue.channel.links.messages import CHANNELS, LONGEST_PATH, Advert, RemoteWant, Route
from ensue.channel.links.routes import EVERYTHING, WITHDRAWN_KEPT, Routes
from ensue.channel.links.tcp.wire import LARGEST_FRAME, framed

Edge = tuple[str, str]


class Network:
    """Channels that exchange adverts over links; each link delivers in order, links in any."""

    def __init__(self, names: str, chance: random.Random) -> None:
        self.routes: dict[str, Routes[Edge]] = {name: Routes(name) for name in names}
        self.queues: dict[Edge, deque[Advert]] = {}
        self._chance = chance
        for name in names:
            self.routes[name].set_wants((RemoteWant(name, None, None),))

    def connect(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            self.queues[(here, there)] = deque()
            # A channel knows a link by the edge that leads over it.
            self.routes[here].add_link(there, (here, there))
        for here, there in ((one, other), (other, one)):
            self.queues[(here, there)].append(self.routes[here].complete())

    def cut(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            del self.queues[(here, there)]
            self._tell(here, self.routes[here].remove_link(there, (here, there)))

    def step(self) -> bool:
        """Deliver one advert. False if none is on its way."""
        ready = [edge for edge, queue in self.queues.items() if queue]
        if not ready:
            return False
        here, there = self._chance.choice(ready)
        advert = self.queues[(here, there)].popleft()
        self._tell(there, self.routes[there].learn(here, (there, here), advert))
        return True

    def settle(self) -> int:
        steps = 0
        while self.step():
            steps += 1
        return steps

    def _tell(self, here: str, changed: list[Route]) -> None:
        if changed:
            for start, there in self.queues:
                if start == here:
                    self.queues[(start, there)].append(Advert(0, False, tuple(changed)))

    def distances(self, start: str) -> dict[str, int]:
        found, waiting = {start: 0}, deque([start])
        while waiting:
            here = waiting.popleft()
            for one, other in self.queues:
                if one == here and other not in found:
                    found[other] = found[here] + 1
                    waiting.append(other)
        del found[start]
        return found


@given(st.integers(0, 2**32))
def test_routes_settle_on_the_shortest_ways_whatever_order_adverts_come_in(seed: int) -> None:
    chance = random.Random(seed)
    names = "abcdefgh"[: chance.randint(2, 8)]
    network = Network(names, chance)
    for _ in range(chance.randint(1, 25)):
        one, other = chance.sample(names, 2)
        if (one, other) in network.queues:
            network.cut(one, other)
        else:
            network.connect(one, other)
        for _ in range(chance.randint(0, 5)):
            network.step()
    network.settle()

    for name, routes in network.routes.items():
        chosen = {channel: len(best.path) for channel, best in routes.best.items()}
        assert chosen == network.distances(name)
        assert all(best.wants[0].type == channel for channel, best in routes.best.items())
        for channel, best in routes.best.items():
            # The neighbour's own choice is the rest of the way: there is no loop.
            following = network.routes[best.neighbour].best.get(channel)
            assert best.path[0] == best.neighbour
            assert best.neighbour == channel or following is not None
            assert following is None or following.path == best.path[1:]


def linked(*neighbours: str) -> Routes[str]:
    """Routes of `me`, with a link to each neighbour that has the neighbour's name."""
    routes: Routes[str] = Routes("me")
    for each in neighbours:
        routes.add_link(each, each)
    return routes


def advert(*routes: Route) -> Advert:
    return Advert(0, False, routes)


def test_a_neighbour_is_reached_directly_whatever_others_say() -> None:
    routes = linked("a", "b")
    routes.learn("b", "b", advert(Route("b", 1, ("b",), ())))
    routes.learn("a", "a", advert(Route("b", 2**62, ("a", "b"), ())))

    assert routes.link_towards("b") == "b"
    routes.learn("a", "a", advert(Route("b", 2**62 + 1, (), ())))
    assert routes.link_towards("b") == "b"


def test_a_way_through_this_channel_is_none() -> None:
    routes = linked("a")
    routes.learn("a", "a", advert(Route("c", 1, ("a", "me", "c"), ())))

    assert routes.link_towards("c") is None


def test_an_older_advert_does_not_bring_a_withdrawn_route_back() -> None:
    routes = linked("a")
    routes.learn("a", "a", advert(Route("c", 5, (), ())))
    routes.learn("a", "a", advert(Route("c", 4, ("a", "c"), ())))

    assert routes.link_towards("c") is None


def test_a_complete_advert_replaces_what_is_older_and_leaves_what_is_newer() -> None:
    routes = linked("a")
    routes.learn("a", "a", advert(Route("c", 3, ("a", "c"), ()), Route("d", 9, ("a", "d"), ())))
    routes.learn("a", "a", Advert(5, True, (Route("a", 1, ("a",), ()),)))

    assert set(routes.best) == {"a", "d"}


@pytest.mark.parametrize("path", [("b",), ("a", "x"), ("b", "c"), ("a", "x", "x", "c")])
def test_a_path_that_does_not_lead_from_the_neighbour_to_the_channel_is_refused(
    path: tuple[str, ...],
) -> None:
    with pytest.raises(LinkFaultError) as caught:
        linked("a").learn("a", "a", advert(Route("c", 1, path, ())))

    assert caught.value.fault is LinkFault.BAD_ADVERT


def test_a_path_that_is_too_long_is_not_taken() -> None:
    routes = linked("a")
    path = ("a", *(f"n{number}" for number in range(LONGEST_PATH - 1)), "c")
    routes.learn("a", "a", advert(Route("c", 1, path, ())))

    assert routes.link_towards("c") is None


def test_channels_and_withdrawn_routes_are_bounded() -> None:
    routes = linked("a", "b")
    for version in range(1, 2 * WITHDRAWN_KEPT):
        name = f"c{version}"
        routes.learn("a", "a", advert(Route(name, version, ("a", name), ())))
        routes.learn("a", "a", advert(Route(name, version + 1, (), ())))
    assert len(routes._told) <= WITHDRAWN_KEPT + 1
    assert len(routes._learned["a"]) <= WITHDRAWN_KEPT + 1

    for neighbour in ("a", "b"):
        named = [f"{neighbour}{number}" for number in range(CHANNELS - 1)]
        each = [Route(name, 10_000, (neighbour, name), ()) for name in named]
        routes.learn(neighbour, neighbour, advert(*each))
    assert len(routes.best) == CHANNELS - 1
    assert len([each for each in routes.complete().routes if each.path]) <= CHANNELS
    with pytest.raises(LinkFaultError):
        routes.learn("a", "a", advert(*(Route(f"x{n}", 1, ("a", f"x{n}"), ()) for n in range(9))))


def test_channels_that_a_liar_makes_up_keep_no_neighbour_out() -> None:
    routes = linked("liar", "honest")
    named = [f"x{number}" for number in range(CHANNELS)]
    routes.learn("liar", "liar", advert(*(Route(each, 1, ("liar", each), ()) for each in named)))
    told = routes.learn(
        "honest",
        "honest",
        advert(Route("honest", 1, ("honest",), ()), Route("far", 2, ("honest", "far"), ())),
    )

    assert len(routes.best) == CHANNELS - 1
    assert {"honest", "far"} <= routes.best.keys()
    assert {"honest", "far"} <= {each.channel for each in told if each.path}
    assert len([each for each in told if not each.path]) == 2


def test_whatever_neighbours_want_all_routes_fit_into_a_frame() -> None:
    routes = linked("a", "b", "c")
    wants = tuple(RemoteWant(f"T{n}", None, "\N{SNOWMAN}" * 1_000) for n in range(300))
    for neighbour in ("a", "b", "c"):
        for number in range(5):
            name = f"{neighbour}{number}"
            routes.learn(neighbour, neighbour, advert(Route(name, 1, (neighbour, name), wants)))
    told = routes.complete()

    assert len(framed(told)) <= LARGEST_FRAME
    assert len(told.routes) == 15
    # A channel whose wants find no room is taken to want everything.
    assert {each.wants for each in told.routes} >= {wants, EVERYTHING}
    for number in range(5):
        # What is withdrawn makes room again.
        routes.learn("a", "a", advert(Route(f"a{number}", 2, (), ())))
        routes.learn("b", "b", advert(Route(f"b{number}", 2, (), ())))
    routes.learn(
        "c", "c", advert(*(Route(f"c{n}", 3, ("c", f"c{n}"), wants[:9]) for n in range(5)))
    )
    assert {routes.best[f"c{number}"].wants for number in range(5)} == {wants[:9]}


def test_a_neighbour_that_tells_of_too_much_is_refused() -> None:
    routes = linked("a")
    wants = tuple(RemoteWant(f"T{n}", None, "x" * 4_000) for n in range(1_000))
    routes.learn("a", "a", advert(Route("c", 1, ("a", "c"), wants)))
    with pytest.raises(LinkFaultError) as caught:
        routes.learn(
            "a", "a", advert(Route("d", 1, ("a", "d"), wants), Route("e", 1, ("a", "e"), wants))
        )

    assert caught.value.fault is LinkFault.BAD_ADVERT
    routes.remove_link("a", "a")
    assert not routes.best
    assert not routes._learned_bytes

"""Linked channels under random load: random graphs with circles, in one process and over TCP.

Like `scenarios`, each is described by one seed and asserts what must hold whatever the seed is:
every event arrives once wherever it is wanted, and nowhere else, whatever happens to the links.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

from ensue.channel import Block, Channel, any_of
from ensue.events.event import Event
from tests.channel.making import LIBRARY, builder, empty, event, eventually
from tests.channel.scenarios import Scenario

TYPES = ("Notify", "DataNotify", "Special", "Other", "Undeclared")


def random_graph(chance: random.Random, names: str) -> set[tuple[str, str]]:
    """A connected graph with circles: a random tree and some more links."""
    shuffled = chance.sample(names, len(names))
    links = {(shuffled[n], shuffled[chance.randrange(n)]) for n in range(1, len(shuffled))}
    for _ in range(chance.randint(0, len(names))):
        one, other = chance.sample(names, 2)
        if (other, one) not in links:
            links.add((one, other))
    return links


def reach(start: str, links: set[tuple[str, str]]) -> set[str]:
    """Every channel that there is a way to."""
    found, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for one, other in links:
            for a, b in ((one, other), (other, one)):
                if a == here and b not in found:
                    found.add(b)
                    waiting.append(b)
    return found


class Federation:
    """Channels by one letter each, with what each of their consumers saw."""

    def __init__(self, names: str, **options: Any) -> None:
        self.channels = {name: builder(name=name).done() for name in names}
        self.seen: dict[str, list[Event]] = {name: [] for name in names}
        self.options = options

    def listen_to(self, name: str, wanted: str) -> None:
        self.channels[name].consumers.connect("one", self.seen[name].append, wanted)

    def close(self) -> None:
        for channel in self.channels.values():
            channel.close()


def changing_graph(chance: random.Random) -> None:
    """In any graph, while links and wants change, each event arrives once, by one message each."""
    names = "abcdefghij"[: chance.randint(3, 10)]
    links, federation = random_graph(chance, names), Federation(names)
    channels, wants = federation.channels, {}
    for one, other in sorted(links):
        channels[one].federation.link(channels[other])
    for name in names:
        wants[name] = chance.choice(TYPES)
        federation.listen_to(name, wants[name])
    types = LIBRARY.checked.types
    for _ in range(60):
        action = chance.random()
        if action < 0.15:
            name = chance.choice(names)
            wants[name] = chance.choice(TYPES)
            channels[name].consumers["one"].change(wants[name])
        elif action < 0.25:
            one, other = chance.sample(names, 2)
            channels[one].federation.link(channels[other])
            links.add((one, other))
        elif action < 0.35 and links:
            one, other = chance.choice(sorted(links))
            links -= {(one, other), (other, one)}
            channels[one].federation.unlink(channels[other])
        origin, given = chance.choice(names), event(chance.choice(TYPES))
        before = sum(each.federation.sent for each in channels.values())
        channels[origin].push(given)
        messages = sum(each.federation.sent for each in channels.values()) - before
        component = reach(origin, links)
        for name in names:
            is_wanted = name in component and types.is_subtype(given.type, wants[name])
            arrived = sum(each.id == given.id for each in federation.seen[name])
            assert arrived == int(is_wanted), (name, origin, links)
        # A tree of shortest ways has one message into each channel on it, and never more.
        assert messages <= len(component) - 1
    assert sum(each.federation.duplicates for each in channels.values()) == 0
    assert all(each.figures().dropped == {} for each in channels.values())
    federation.close()


def many_origins(chance: random.Random) -> None:
    """Several threads publish in several channels of a graph at once; all arrives, in order."""
    names = "abcdefgh"[: chance.randint(2, 8)]
    links, federation = random_graph(chance, names), Federation(names)
    channels = federation.channels
    if chance.random() < 0.5:
        for channel in channels.values():
            channel.dispatch_by("pool", threads=2)
    for one, other in sorted(links):
        channels[one].federation.link(channels[other])
    wanting = chance.sample(names, chance.randint(1, len(names)))
    for name in wanting:
        federation.listen_to(name, "Notify")
    events = chance.randint(1, 150)
    publish(channels, names, events)
    for channel in channels.values():
        assert channel.settle("60 s")
    for name in wanting:
        check_arrivals(federation.seen[name], names, events)
    federation.close()


def over_tcp(chance: random.Random) -> None:
    """Reliable links that are cut again and again lose nothing, double nothing, keep the order.

    Some channels are linked within the process, and some twice.
    """
    names = "abcde"[: chance.randint(2, 5)]
    links, federation = sorted(random_graph(chance, names)), Federation(names)
    channels, dialled = federation.channels, empty()
    for one, other in [*links, *chance.choices(links, k=chance.randint(0, 2))]:
        if dialled and chance.random() < 0.3:
            channels[one].federation.link(channels[other])
            continue
        host, port = channels[other].federation.listen()
        link = channels[one].federation.connect(
            host, port, backoff="2 ms", longest_backoff="20 ms", seed=chance.randint(0, 99)
        )
        assert link.wait_until_connected("30 s")
        dialled.append(link)
    wanting = chance.sample(names, chance.randint(1, len(names)))
    for name in wanting:
        federation.listen_to(name, "Notify")
    everybody = set(names)
    assert eventually(
        lambda: all(
            len(each.federation.reachable) == len(everybody) - 1
            and len(each.federation.remote.find(event("Notify"))) == len({*wanting} - {name})
            for name, each in channels.items()
        ),
        30,
    )
    events = chance.randint(20, 200)
    is_over = threading.Event()

    def cut() -> None:
        while not is_over.is_set():
            chance.choice(dialled).interrupt()
            time.sleep(chance.random() * 0.02)

    cutting = threading.Thread(target=cut)
    cutting.start()
    publish(channels, names, events, pause=0.0005)
    is_over.set()
    cutting.join()
    due = len(names) * events
    assert eventually(lambda: all(len(federation.seen[name]) >= due for name in wanting), 60), {
        name: (len(federation.seen[name]), due) for name in wanting
    }
    for name in wanting:
        check_arrivals(federation.seen[name], names, events)
    assert all(each.figures().dropped == {} for each in channels.values())
    federation.close()


def slow_far_end(chance: random.Random) -> None:
    """A full queue behind a link slows whoever sends, and loses nothing."""
    near, far = builder(name="near").done(), builder(name="far").done()
    host, port = far.federation.listen()
    subscription = far.subscribe("Notify", capacity=chance.randint(1, 5), overflow=Block("60 s"))
    link = near.federation.connect(host, port, backoff="2 ms", seed=1)
    assert link.wait_until_connected("30 s")
    assert eventually(lambda: near.is_wanted(["Notify"], None), 30)
    events = chance.randint(10, 200)
    for number in range(events):
        near.push(event("Notify", n=number))
        if chance.random() < 0.02:
            link.interrupt()
    taken: list[Any] = []
    for _ in range(events):
        given = subscription.take(within="30 s")
        assert given is not None, len(taken)
        taken.append(given.data["n"])
    assert taken == list(range(events))
    near.close()
    far.close()


def causes_first(chance: random.Random) -> None:
    """What follows from an event never comes before it over a link, whatever the strategy."""
    near, far = builder("full", "near").done(), builder("full", "far").done()
    strategy = chance.choice(["reactive", "pool"])
    near.dispatch_by(strategy, threads=chance.randint(1, 4))
    seen: list[Event] = []
    far.consumers.connect("all", seen.append, any_of("Cause", "Effect"))
    host, port = far.federation.listen()
    link = near.federation.connect(host, port, backoff="2 ms", seed=1)
    assert link.wait_until_connected("30 s")
    assert eventually(lambda: near.is_wanted(["Cause"], None), 30)
    for number in range(chance.randint(1, 4)):
        near.consumers.connect(
            f"c{number}", lambda given: near.push(event("Effect", n=given.data["n"])), "Cause"
        )
    effects, events = number + 1, chance.randint(10, 150)

    def supply(source: str) -> None:
        for count in range(events):
            near.push(event("Cause", n=f"{source}{count}"))
            if chance.random() < 0.01:
                link.interrupt()

    threads = [threading.Thread(target=supply, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert eventually(lambda: len(seen) >= 2 * events * (1 + effects), 60), len(seen)
    known: Counter[str] = Counter()
    for each in seen:
        name = each.data["n"]
        assert (each.type == "Cause") == (known[name] == 0), (name, strategy)
        known[name] += 1
    assert set(known.values()) == {1 + effects}
    near.close()
    far.close()


def publish(channels: dict[str, Channel], names: str, events: int, pause: float = 0.0) -> None:
    def supply(name: str) -> None:
        for count in range(events):
            channels[name].push(event("Notify", source=name, n=count))
            if pause:
                time.sleep(pause)

    threads = [threading.Thread(target=supply, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_arrivals(seen: list[Event], names: str, events: int) -> None:
    doubled = [key for key, n in Counter(each.id for each in seen).items() if n > 1]
    assert not doubled, doubled[:3]
    for name in names:
        numbers = [each.data["n"] for each in seen if each.source == name]
        assert numbers == list(range(events)), (name, len(numbers), events)


LINKED_SCENARIOS: tuple[Scenario, ...] = (
    changing_graph,
    many_origins,
    over_tcp,
    slow_far_end,
    causes_first,
)

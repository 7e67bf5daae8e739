"""Brokers of several processes, by real TCP links over loopback."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random
from threading import Event as Flag
from threading import Thread

from ensue.brokers import Broker
from ensue.brokers.network import Links
from ensue.channel.links.faults import LinkFault
from ensue.events.event import Event
from ensue.subscriptions import Filter
from tests.brokers.trees import OneBroker, random_event, random_filter

SECRET = "known to all brokers of the tests"

LEAF = """
import sys, time
from ensue.brokers import Broker
from ensue.brokers.network import Links

name, host, port, wanted, count = sys.argv[1:]
broker, got = Broker(name), []
links = Links(broker)
broker.subscribe("s", wanted, lambda event: got.append(event.id))
up = links.connect(host, int(port), secret="known to all brokers of the tests", backoff="10 ms")
assert up.wait_until_connected("30 s")
print("up", flush=True)
for line in sys.stdin:
    if line == "cut\\n":
        up.interrupt()
    elif line == "done\\n":
        break
    else:
        broker.publish({"id": line.strip(), "source": name, "type": "E",
                        "time": "2026-01-01T00:00:00Z", "data": {"n": int(line)}})
while links.in_transit:
    time.sleep(0.01)
print(*got, flush=True)
print(links.close("20 s"), flush=True)
"""


def _eventually(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_processes_are_linked_cut_and_lose_nothing() -> None:
    hub, got = Broker("hub"), list[str]()
    links = Links(hub)
    host, port = links.listen(secret=SECRET)
    hub.subscribe("all", "n >= 1000", lambda event: got.append(event.id))
    wanted = {"left": "n < 100", "right": "n >= 50 AND n < 150"}
    leaves = {
        name: subprocess.Popen(
            [sys.executable, "-c", LEAF, name, host, str(port), each, "200"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, each in wanted.items()
    }
    try:
        for leaf in leaves.values():
            assert leaf.stdout is not None
            assert leaf.stdout.readline() == "up\n"
        filters = [Filter.parse(each) for each in wanted.values()]
        assert _eventually(lambda: _heard(links) == set(filters))
        for number in range(200):
            hub.publish(random_event_of(number))
            if number % 40 == 20:
                for leaf in leaves.values():
                    _say(leaf, "cut")
        for name, leaf in leaves.items():
            for number in range(5):
                _say(leaf, str(1_000 * len(name) + number))
        assert _eventually(lambda: links.in_transit == 0)
        outputs = {name: leaf.communicate("done\n", timeout=60)[0] for name, leaf in leaves.items()}
    finally:
        for leaf in leaves.values():
            leaf.kill()

    assert outputs["left"].split() == [*map(str, range(100)), "True"]
    assert outputs["right"].split() == [*map(str, range(50, 150)), "True"]
    assert sorted(got) == [str(1_000 * size + each) for size in (4, 5) for each in range(5)]
    assert dict(links.lost) == {}
    links.close()


def random_event_of(number: int) -> Event:
    return Event(str(number), "hub", "E", number, {"n": number})


def _heard(links: Links) -> set[Filter]:
    broker = links.broker
    return {each for far in broker.neighbours for each in broker.asked_by(far)}


def _say(leaf: subprocess.Popen[str], line: str) -> None:
    assert leaf.stdin is not None
    leaf.stdin.write(f"{line}\n")
    leaf.stdin.flush()


def test_random_trees_over_tcp_give_what_one_broker_gives() -> None:
    random = Random(5)
    brokers = [Broker(f"b{number}") for number in range(5)]
    links = [Links(each) for each in brokers]
    dialled = []
    for number in range(1, 5):
        address = links[random.randrange(number)].listen()
        dialled.append(links[number].connect(*address, backoff="5 ms"))
    assert all(each.wait_until_connected("30 s") for each in dialled)
    one, got = OneBroker(), list[tuple[str, str]]()
    for number in range(12):
        name, text = f"s{number}", random_filter(random)
        deliver = partial(lambda name, event: got.append((name, event.id)), name)
        random.choice(brokers).subscribe(name, text, deliver)
        one.filters[name] = Filter.parse(text)
    assert _eventually(lambda: _agree(links))
    due = []
    for number in range(150):
        event = random_event(random, number)
        due += [(name, event.id) for name in one.publish(event)]
        random.choice(brokers).publish(event)
        if number % 30 == 15:
            random.choice(dialled).interrupt()
    assert _eventually(lambda: len(got) >= len(due) and not any(each.in_transit for each in links))

    assert sorted(got) == sorted(due)
    assert all(each.close() for each in links)


def _agree(links: list[Links]) -> bool:
    by_name = {each.broker.name: each for each in links}
    return all(
        set(end._said) == set(back.hearing._said)
        if (back := by_name[far]._ends.get(each.broker.name)) is not None
        else False
        for each in links
        for far, end in list(each._ends.items())
    )


def test_slow_subscriber_holds_back_the_publisher_and_no_link_dies() -> None:
    """The broker's thread waits in the subscriber's code; heartbeats go on, and nothing is lost."""
    near, far = Broker("near"), Broker("far")
    links = [Links(near), Links(far)]
    go_on, got = Flag(), list[str]()

    def wait(event: Event) -> None:
        go_on.wait(30)
        got.append(event.id)

    far.subscribe("slow", "TRUE", wait)
    dialled = links[0].connect(*links[1].listen(buffer=50), buffer=50)
    assert dialled.wait_until_connected("30 s")
    assert _eventually(lambda: bool(_heard(links[0])))

    def publish() -> None:
        for number in range(3_000):
            near.publish(random_event_of(number))

    publisher = Thread(target=publish)
    publisher.start()
    assert _eventually(lambda: links[1]._worker.waiting > 500)
    time.sleep(0.3)
    assert publisher.is_alive()
    go_on.set()
    publisher.join(60)

    assert _eventually(lambda: len(got) == 3_000)
    assert got == [str(number) for number in range(3_000)]
    assert dict(links[0].lost) == {}
    assert [each.close() for each in links] == [True, True]


def test_subscriber_that_fails_is_counted_and_ends_nothing() -> None:
    near, far = Broker("near"), Broker("far")
    links, got = [Links(near), Links(far)], list[str]()

    def fail(event: Event) -> None:
        got.append(event.id)
        raise ValueError(event.id)

    far.subscribe("bad", "TRUE", fail)
    assert links[0].connect(*links[1].listen()).wait_until_connected("30 s")
    assert _eventually(lambda: bool(_heard(links[0])))
    for number in range(3):
        near.publish(random_event_of(number))

    assert _eventually(lambda: links[1].failures == 3)
    assert got == ["0", "1", "2"]
    assert [each.close() for each in links] == [True, True]


def test_broker_without_the_secret_is_refused() -> None:
    near, far = Links(Broker("near")), Links(Broker("far"))
    address = far.listen(secret=SECRET)
    near.connect(*address, secret="another secret of some length", backoff="5 ms")

    assert _eventually(lambda: LinkFault.UNAUTHENTICATED in {**near.faults, **far.faults})
    assert far.broker.neighbours == []
    near.close()
    far.close()


def test_long_chain_of_links_in_one_process() -> None:
    links = [Links(Broker(f"b{number}")) for number in range(12)]
    got: list[str] = []
    for one, other in pairwise(links):
        assert one.connect(*other.listen()).wait_until_connected("30 s")
    links[0].broker.subscribe("s", "n > 5", lambda event: got.append(event.id))
    last = links[-1]
    assert _eventually(lambda: Filter.parse("n > 5") in _heard(last))

    last.broker.publish(random_event_of(9))

    assert _eventually(lambda: got == ["9"])
    for each in links:
        each.close("0 s")

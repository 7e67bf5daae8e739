"""Channels linked by TCP, over loopback: what is sent arrives once, whatever happens between."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ensue.channel import Block, Reason
from ensue.errors import UsageError
from ensue.events.event import Event
from tests.channel.links.pairs import Pair
from tests.channel.making import builder, empty, event, eventually


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def test_events_cross_with_everything_they_hold(pair: Pair) -> None:
    given = Event.of(
        "Notify",
        time="2024-05-06T07:08:09Z",
        source="gps",
        data={"text": "ü", "list": [1, 2.5, None, {"deep": True}]},
        subject="plane",
        priority=3,
    )
    pair.near.push(given)

    assert eventually(lambda: len(pair.got) == 1)
    assert pair.got == [given]


def test_events_cross_in_both_directions_and_in_order(pair: Pair) -> None:
    back = empty()
    pair.near.consumers.connect("back", back.append, "Other")
    assert eventually(lambda: pair.far.is_wanted(["Other"], None))

    for number in range(300):
        pair.near.push(event("Notify", n=number))
        pair.far.push(event("Other", n=number))

    assert eventually(lambda: len(pair.got) == len(back) == 300)
    assert [each.data["n"] for each in pair.got] == list(range(300))
    assert [each.data["n"] for each in back] == list(range(300))


def test_an_event_crosses_as_it_was_published_though_its_data_changes_later(pair: Pair) -> None:
    data = {"n": 0}
    for number in range(20):
        data["n"] = number
        pair.near.push(Event("1", "test", "Notify", 0, data))
    data["n"] = -1

    assert eventually(lambda: len(pair.got) == 20)
    assert [each.data["n"] for each in pair.got] == list(range(20))


def test_consumers_here_are_served_before_a_message_is_made_ready(pair: Pair) -> None:
    """Data that a local consumer completes leaves the process complete."""
    pair.near.consumers.connect("local", lambda given: given.data.update(seen=True), "Notify")
    pair.near.push(event("Notify", n=1))

    assert eventually(lambda: len(pair.got) == 1)
    assert pair.got[0].data == {"n": 1, "seen": True}


def test_wants_are_kept_up_to_date_across_the_link(pair: Pair) -> None:
    pair.far.consumers["one"].change("Other")
    assert eventually(lambda: not pair.is_wanted())
    pair.near.push(event("Notify"))
    pair.near.push(event("Other"))

    assert eventually(lambda: len(pair.got) == 1)
    assert pair.near.federation.sent == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_reliable_link_loses_and_doubles_nothing_across_disconnections(seed: int) -> None:
    pair, chance, cuts = Pair(), random.Random(seed), 0
    for number in range(3_000):
        pair.near.push(event("Notify", n=number))
        if chance.random() < 0.004:
            pair.link.interrupt()
            cuts += 1
            time.sleep(chance.random() * 0.02)

    assert eventually(lambda: len(pair.got) >= 3_000)
    assert [each.data["n"] for each in pair.got] == list(range(3_000))
    assert cuts > 3
    assert pair.link.session.connections > 1
    assert pair.near.figures().dropped == {}
    pair.close()


def test_a_link_that_is_not_reliable_comes_back_and_doubles_nothing() -> None:
    pair = Pair(reliable=False)
    for _ in range(100):
        pair.near.push(event("Notify"))
    pair.link.interrupt()
    assert eventually(lambda: pair.link.session.connections > 1 and pair.is_wanted())
    last = [event("Notify") for _ in range(100)]
    for each in last:
        pair.near.push(each)

    assert eventually(lambda: pair.got[-100:] == last)
    assert len({each.id for each in pair.got}) == len(pair.got)
    pair.close()


def test_dialling_goes_on_with_growing_pauses_until_somebody_listens() -> None:
    near, got = builder(name="near").done(), empty()
    far = builder(name="far").done()
    far.consumers.connect("one", got.append, "Notify")
    with socket.socket() as taken:
        # Until somebody listens on it, nobody else can be given it.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        link = near.federation.connect("127.0.0.1", port, backoff="5 ms", longest_backoff="40 ms")
        assert eventually(lambda: link.attempts >= 3)
        far.federation.listen("127.0.0.1", port)
    assert link.wait_until_connected("60 s")
    assert eventually(lambda: near.is_wanted(["Notify"], None))
    near.push(event("Notify"))

    assert eventually(lambda: len(got) == 1)
    near.close()
    far.close()


def test_the_pauses_grow() -> None:
    with socket.socket() as taken:
        # Nobody listens there, and nobody else can be given it.
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        near = builder(name="near").done()
        before = time.monotonic()
        link = near.federation.connect("127.0.0.1", port, backoff="20 ms", longest_backoff="10 s")
        assert eventually(lambda: link.attempts >= 4)

        # 40, 80 and 160 ms, each at least half of that.
        assert time.monotonic() - before >= 0.14
        near.close()


def test_a_circle_of_processes_and_of_links_in_one_delivers_once() -> None:
    channels = [builder(name=f"c{n}").done() for n in range(4)]
    seen: Counter[str] = Counter()
    channels[2].consumers.connect("one", lambda each: seen.update([each.id]), "Notify")
    channels[0].federation.link(channels[1])
    for one, other in ((1, 2), (2, 3), (3, 0)):
        host, port = channels[other].federation.listen()
        assert channels[one].federation.connect(host, port).wait_until_connected("60 s")
    assert eventually(
        lambda: (
            all(len(each.federation.reachable) == 3 for each in channels)
            and all(channels[n].is_wanted(["Notify"], None) for n in (0, 1, 3))
        )
    )

    for _ in range(200):
        channels[0].push(event("Notify"))

    assert eventually(lambda: len(seen) == 200)
    time.sleep(0.02)
    assert set(seen.values()) == {1}
    assert sum(each.federation.sent for each in channels) == 400
    for channel in channels:
        channel.close()


def test_another_way_is_found_when_a_link_is_taken_away() -> None:
    channels = [builder(name=f"c{n}").done() for n in range(3)]
    seen: Counter[str] = Counter()
    channels[2].consumers.connect("one", lambda each: seen.update([each.id]), "Notify")
    host, port = channels[2].federation.listen()
    direct = channels[0].federation.connect(host, port)
    channels[0].federation.link(channels[1])
    around = channels[1].federation.connect(host, port)
    assert direct.wait_until_connected("60 s")
    assert around.wait_until_connected("60 s")
    assert eventually(lambda: all(len(each.federation.reachable) == 2 for each in channels))
    channels[0].push(event("Notify"))

    direct.close()
    assert eventually(lambda: len(channels[0].federation.neighbours) == 1)
    assert eventually(lambda: channels[0].is_wanted(["Notify"], None))
    channels[0].push(event("Notify"))

    assert eventually(lambda: len(seen) == 2)
    assert set(seen.values()) == {1}
    for channel in channels:
        channel.close()


def test_a_full_queue_at_the_far_end_slows_the_link_and_loses_nothing(pair: Pair) -> None:
    pair.far.consumers["one"].disconnect()
    subscription = pair.far.subscribe("Notify", capacity=3, overflow=Block("20 s"))
    assert eventually(pair.is_wanted)
    for number in range(100):
        pair.near.push(event("Notify", n=number))

    taken = [subscription.take(within="60 s") for _ in range(100)]

    assert [each.data["n"] for each in taken if each is not None] == list(range(100))


def test_noise_on_the_port_ends_its_connection_and_nothing_else(pair: Pair) -> None:
    for noise in (b"GET / HTTP/1.0\r\n\r\n", b"\x00\x00\x00\x02\xc1\xc1", b"\xff\xff\xff\xff"):
        with socket.create_connection((pair.host, pair.port), 5) as guest:
            guest.sendall(noise)
            guest.settimeout(60)
            assert guest.recv(100) == b""

    pair.near.push(event("Notify"))
    assert eventually(lambda: len(pair.got) == 1)


def test_data_that_is_no_data_cannot_leave_its_process_and_is_counted(pair: Pair) -> None:
    pair.near.push(Event("1", "test", "Notify", 0, {"object": object()}))

    assert pair.near.figures().dropped == {Reason.UNSENT: 1}


def test_closing_sends_what_is_still_to_be_sent() -> None:
    pair = Pair()
    for _ in range(500):
        pair.near.push(event("Notify"))
    pair.near.close()

    assert eventually(lambda: len(pair.got) == 500)
    assert eventually(lambda: not pair.far.federation.neighbours)
    pair.close()


OTHER_PROCESS = """
import sys, time
from ensue.channel import build
channel = build("filtering", "other").done()
supplier = channel.suppliers.connect("other", "Echo")
channel.consumers.connect("echo", lambda event: supplier.send("Echo", event.data), "Notify")
channel.federation.connect("127.0.0.1", int(sys.argv[1]))
sys.stdin.read()
channel.close()
"""


def test_two_processes() -> None:
    channel, got = builder().done(), empty()
    channel.consumers.connect("one", got.append, "Echo")
    _, port = channel.federation.listen()
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS, str(port)], stdin=subprocess.PIPE
    ) as other:
        assert eventually(lambda: channel.is_wanted(["Notify"], None), 20)
        for number in range(50):
            channel.push(event("Notify", n=number))
        assert eventually(lambda: len(got) == 50)
        assert other.stdin is not None
        other.stdin.close()

    assert [each.data["n"] for each in got] == list(range(50))
    assert eventually(lambda: not channel.federation.neighbours)
    channel.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"port": 99_999}, "a port is an integer from"),
        ({"port": "7400"}, "a port is an integer from"),
        ({"port": 7400, "buffer": 0}, "the `buffer` of a link is at least 1; given is `0`"),
    ],
)
def test_a_link_that_cannot_be_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    channel = builder().done()

    for offer in (channel.federation.listen, channel.federation.connect):
        with pytest.raises(UsageError, match=message):
            offer("127.0.0.1", **options)
    channel.close()

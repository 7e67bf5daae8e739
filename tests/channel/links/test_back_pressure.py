"""A link keeps no more than it was told to, and what it cannot keep is counted, once."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from ensue.channel import Block, Channel, Disconnect, DropNewest, DropOldest, Reason
from ensue.channel.links.tcp.session import Session
from ensue.channel.links.tcp.wire import LARGEST_FRAME
from tests.channel.links.pairs import Pair
from tests.channel.links.strangers import Stranger, wanting
from tests.channel.making import builder, event, eventually

LARGE = "x" * 100_000


def stalled(**options: Any) -> tuple[Channel, Stranger]:
    """A channel with one link, whose other side wants `Notify` and does not read."""
    channel = builder(name="near").done()
    stranger = wanting(channel.federation.listen(**options))
    assert eventually(lambda: channel.is_wanted(["Notify"], None))
    return channel, stranger


def session_of(channel: Channel) -> Session:
    (session,) = channel.federation._listeners[0]._sessions.values()
    return session


def read(stranger: Stranger, count: int) -> list[Any]:
    got = []
    for _ in range(count):
        carried = stranger.read_event()
        assert carried is not None
        got.append(carried.event.data["n"])
    return got


@pytest.mark.parametrize("bound", [{"buffer": 100}, {"buffer_bytes": 10_000_000}])
def test_a_reliable_link_honours_its_buffer_though_the_other_side_does_not_read(
    bound: dict[str, int],
) -> None:
    channel, stranger = stalled(overflow=DropNewest(), **bound)
    for number in range(1_000):
        channel.push(event("Notify", n=number, text=LARGE))

    kept = session_of(channel)._outbox
    # The size of an event is known once it is encoded: one may be beyond the bound.
    assert 90 <= len(kept) <= 101
    assert kept._bytes <= 101 * 101_000
    unsent = channel.figures().dropped[Reason.UNSENT]
    assert unsent == 1_000 - len(kept)
    assert read(stranger, 1_000 - unsent) == list(range(1_000 - unsent))
    assert eventually(lambda: channel.federation.in_transit == 0)
    assert channel.figures().dropped == {Reason.UNSENT: unsent}
    stranger.close()
    channel.close()


def test_a_delivered_event_is_not_counted_as_unsent() -> None:
    pair = Pair(buffer=100, overflow=Block("60 s"))
    for number in range(3_000):
        pair.near.push(event("Notify", n=number))

    assert eventually(lambda: len(pair.got) == 3_000)
    assert pair.near.figures().dropped == {}
    assert pair.link.unsent == 0
    pair.close()


def test_a_supplier_waits_for_room_on_a_link_and_nothing_is_lost() -> None:
    channel, stranger = stalled(buffer=10, overflow=Block("60 s"))
    pushed = []

    def supply() -> None:
        for number in range(60):
            channel.push(event("Notify", n=number, text=LARGE))
            pushed.append(number)

    supplier = threading.Thread(target=supply)
    supplier.start()
    assert eventually(lambda: len(pushed) == 10)
    time.sleep(0.05)
    assert len(pushed) == 10

    assert read(stranger, 60) == list(range(60))
    supplier.join()
    assert channel.figures().dropped == {}
    stranger.close()
    channel.close()


def test_a_supplier_that_has_waited_long_enough_goes_on_and_its_event_is_counted() -> None:
    channel, stranger = stalled(buffer=2, overflow=Block("10 ms"))
    for number in range(6):
        channel.push(event("Notify", n=number))

    assert channel.figures().dropped == {Reason.UNSENT: 4}
    assert read(stranger, 2) == [0, 1]
    stranger.close()
    channel.close()


def test_coroutines_wait_for_room_on_a_link_too() -> None:
    import asyncio

    async def main() -> None:
        channel, stranger = stalled(buffer=5, overflow=Block("60 s"))
        supplies = [
            asyncio.create_task(channel.publish(event("Notify", n=number))) for number in range(8)
        ]
        done, waiting = await asyncio.wait(supplies, timeout=0.05)
        assert (len(done), len(waiting)) == (5, 3)
        assert await asyncio.to_thread(read, stranger, 8) == list(range(8))
        await asyncio.gather(*supplies)
        assert channel.figures().dropped == {}
        stranger.close()
        channel.close()

    asyncio.run(main())


def test_a_link_that_drops_the_oldest_keeps_those_that_are_on_their_way() -> None:
    """What was sent may have arrived, so only what was not sent yet can make room."""
    pair = Pair(buffer=50, overflow=DropOldest())
    listener = pair.far.federation._listeners[0]
    listener._server.get_loop().call_soon_threadsafe(listener._server.close)
    pair.link.interrupt()
    assert eventually(lambda: not pair.link.is_connected)
    for number in range(80):
        pair.near.push(event("Notify", n=number))
    assert pair.near.figures().dropped == {Reason.UNSENT: 30}

    pair.far.federation.listen(pair.host, pair.port)

    assert eventually(lambda: len(pair.got) == 50)
    assert [each.data["n"] for each in pair.got] == list(range(30, 80))
    pair.close()


def test_a_link_that_cannot_keep_up_is_ended_if_its_policy_says_so() -> None:
    channel, stranger = stalled(buffer=5, overflow=Disconnect())
    for number in range(50):
        channel.push(event("Notify", n=number))
        time.sleep(0.001)

    assert eventually(lambda: not channel.federation.neighbours)
    dropped = channel.figures().dropped
    assert dropped[Reason.UNSENT] >= 1
    assert dropped[Reason.UNCONFIRMED] == 5
    stranger.close()
    channel.close()


def test_back_pressure_travels_over_several_links_to_the_supplier() -> None:
    near, middle = builder(name="near").done(), builder(name="middle").done()
    link = near.federation.connect(*middle.federation.listen(), buffer=5, overflow=Block("60 s"))
    assert link.wait_until_connected("60 s")
    stranger = wanting(middle.federation.listen(buffer=5, overflow=Block("60 s")))
    assert eventually(lambda: near.is_wanted(["Notify"], None))
    pushed = []

    def supply() -> None:
        for number in range(40):
            near.push(event("Notify", n=number))
            pushed.append(number)

    supplier = threading.Thread(target=supply)
    supplier.start()
    assert eventually(lambda: len(pushed) >= 5)
    time.sleep(0.2)
    # Five on each link, and one that waits between them.
    assert len(pushed) <= 12
    assert read(stranger, 40) == list(range(40))
    supplier.join()
    assert near.figures().dropped == middle.figures().dropped == {}
    stranger.close()
    near.close()
    middle.close()


def test_an_event_too_large_for_a_link_is_counted_and_the_link_goes_on() -> None:
    pair = Pair()
    pair.near.push(event("Notify", text="x" * LARGEST_FRAME))
    pair.near.push(event("Notify", n=1))

    assert eventually(lambda: len(pair.got) == 1)
    assert pair.near.figures().dropped == {Reason.UNSENT: 1}
    pair.close()


def test_an_event_of_an_impossible_time_stays_in_its_process_and_the_link_goes_on() -> None:
    pair = Pair()
    pair.near.push(event("Notify", at=2**62))
    pair.near.push(event("Notify", at=1))

    assert eventually(lambda: len(pair.got) == 1)
    assert pair.near.figures().dropped == {Reason.UNSENT: 1}
    pair.close()


def test_a_link_that_is_not_reliable_drops_what_the_other_side_does_not_read() -> None:
    channel = builder(name="near").done()
    stranger = wanting(channel.federation.listen(buffer=20), reliable=False)
    assert eventually(lambda: channel.is_wanted(["Notify"], None))
    for number in range(100):
        channel.push(event("Notify", n=number, text=LARGE))
    unsent = channel.figures().dropped[Reason.UNSENT]
    assert unsent == 80

    assert read(stranger, 20) == list(range(20))
    assert eventually(lambda: channel.federation.in_transit == 0)
    stranger.close()
    channel.close()


def test_what_an_unreliable_link_had_sent_when_it_was_cut_is_counted_as_unconfirmed() -> None:
    channel = builder(name="near").done()
    stranger = wanting(channel.federation.listen(), reliable=False)
    assert eventually(lambda: channel.is_wanted(["Notify"], None))
    for number in range(10):
        channel.push(event("Notify", n=number))
    assert read(stranger, 4) == [0, 1, 2, 3]
    assert eventually(lambda: channel.federation.in_transit == 6)
    stranger.close()

    assert eventually(lambda: channel.figures().dropped == {Reason.UNCONFIRMED: 6})
    channel.close()

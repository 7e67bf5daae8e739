"""Links that end, and channels that close with some: nothing vanishes, nobody waits too long."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from ensue.channel import Block, Reason
from ensue.channel.delivery.blocked import Blocked
from ensue.channel.links.messages import Carried
from ensue.channel.links.tcp.links import TcpLink
from ensue.events.event import Event
from tests.channel.links.pairs import Pair
from tests.channel.making import builder, empty, event, eventually


def end_before_sending(link: TcpLink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a link end for good when an event has found its way to it and is not on it yet.

    A fault that no input brings about: it needs two threads in one order within microseconds.
    """
    send = link.session.send

    def send_too_late(message: Carried) -> Sequence[Blocked]:
        link.close()
        return send(message)

    monkeypatch.setattr(link.session, "send", send_too_late)


@pytest.mark.parametrize("reliable", [True, False])
def test_an_event_that_comes_to_a_link_in_the_moment_of_its_end_is_counted(
    reliable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(reliable=reliable)
    end_before_sending(pair.link, monkeypatch)

    pair.near.push(event("Notify"))

    assert pair.near.figures().dropped == {Reason.UNROUTED: 1}
    pair.close()


def test_an_event_that_comes_to_a_link_in_the_moment_of_its_end_takes_another_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair, between = Pair(), builder(name="between").done()
    pair.near.federation.link(between)
    between.federation.link(pair.far)
    end_before_sending(pair.link, monkeypatch)

    pair.near.push(event("Notify"))

    assert eventually(lambda: len(pair.got) == 1)
    assert pair.near.figures().dropped == {}
    between.close()
    pair.close()


@pytest.mark.parametrize("reliable", [True, False])
def test_no_event_vanishes_while_a_link_ends(reliable: bool) -> None:
    pair, is_over = Pair(reliable=reliable), threading.Event()

    def supply() -> None:
        while not is_over.is_set():
            pair.near.push(event("Notify"))

    suppliers = [threading.Thread(target=supply) for _ in range(2)]
    for supplier in suppliers:
        supplier.start()
    assert eventually(lambda: len(pair.got) > 20)
    pair.link.close(0.0)
    assert eventually(lambda: not pair.is_wanted())
    is_over.set()
    for supplier in suppliers:
        supplier.join()

    def accounted() -> int:
        figures = pair.near.figures()
        return len(pair.got) + figures.unwanted + sum(figures.dropped.values())

    assert eventually(lambda: accounted() >= pair.near.figures().published)
    assert len({each.id for each in pair.got}) == len(pair.got)
    pair.close()


@pytest.mark.parametrize("ends_first", ["older", "newer"])
def test_of_two_links_to_a_neighbour_one_may_end(ends_first: str) -> None:
    pair = Pair()
    near, far = pair.near.federation, pair.far.federation
    newer = far.connect(*near.listen(), backoff="5 ms")
    assert newer.wait_until_connected("60 s")
    assert eventually(lambda: len(near.links_to(far.id)) == len(far.links_to(near.id)) == 2)
    pair.near.push(event("Notify"))

    (newer if ends_first == "newer" else pair.link).close()
    assert eventually(lambda: len(near.links_to(far.id)) == len(far.links_to(near.id)) == 1)
    pair.near.push(event("Notify"))

    assert eventually(lambda: len(pair.got) == 2)
    assert pair.near.figures().dropped == {}
    pair.close()


def test_a_link_in_the_process_can_be_taken_away_beside_one_by_tcp() -> None:
    near, far, got = builder(name="near").done(), builder(name="far").done(), empty()
    far.consumers.connect("one", got.append, "Notify")
    near.federation.link(far)
    link = near.federation.connect(*far.federation.listen())
    assert link.wait_until_connected("60 s")
    # The link that stands by has to know what the other side wants.
    assert eventually(lambda: bool(near.federation._routes._learned.get(link.session)))
    near.federation.unlink(far)
    near.push(event("Notify"))

    assert near.federation.links_to(far.federation.id) == (link.session,)
    assert eventually(lambda: len(got) == 1)
    near.close()
    far.close()


def test_a_channel_closes_in_time_though_the_other_side_of_its_links_does_not_answer() -> None:
    pair = Pair()
    pair.near.federation.closing_seconds = 120.0
    pair.far.consumers["one"].disconnect()
    pair.far.subscribe("Notify", capacity=1, overflow=Block("60 s"))
    assert eventually(pair.is_wanted)
    for _ in range(10):
        pair.near.push(event("Notify"))

    before = time.monotonic()
    closing = pair.near.close(within="50 ms")

    assert time.monotonic() - before < 60
    assert not closing.drained
    assert sum(pair.near.figures().dropped.values()) >= 8
    pair.far.close(drain=False)


def test_a_consumer_that_would_exit_does_not_end_the_thread_of_the_links() -> None:
    pair, calls = Pair(), empty()

    def leave(given: Event) -> None:
        calls.append(given)
        raise SystemExit

    pair.far.consumers.connect("leaving", leave, "Notify", failures=None, priority=1)
    for _ in range(5):
        pair.near.push(event("Notify"))

    assert eventually(lambda: len(pair.got) == len(calls) == 5)
    pair.close()

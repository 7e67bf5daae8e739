"""What happens when queues fill, and to events that wait too long or are outdated."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from ensue.channel import (
    Block,
    Disconnect,
    DropNewest,
    DropOldest,
    Reason,
    VirtualClock,
)
from ensue.errors import UsageError
from tests.channel.making import builder, empty, event, extended, held, one_thread


@pytest.mark.parametrize(
    ("policy", "delivered", "dropped"),
    [
        (DropOldest(), [7, 8, 9], {Reason.OLDEST: 7}),
        (DropNewest(), [0, 1, 2], {Reason.NEWEST: 7}),
        (Block("10 ms"), [0, 1, 2], {Reason.BLOCKED: 7}),
    ],
)
def test_a_full_queue_drops_as_its_policy_says_and_counts_the_reason(
    policy: Any, delivered: list[int], dropped: dict[Reason, int]
) -> None:
    channel, got = one_thread(), empty()
    consumer = channel.consumers.connect(
        "small", lambda each: got.append(each.data["n"]), "Notify", capacity=3, overflow=policy
    )
    with held(channel):
        for number in range(10):
            channel.push(event(n=number))

    assert got == delivered
    assert consumer.figures.dropped == dropped
    assert consumer.figures.wanted == 10
    channel.close()


def test_a_consumer_that_overflows_is_disconnected_if_its_policy_says_so() -> None:
    channel, got = one_thread(), empty()
    consumer = channel.consumers.connect(
        "small", got.append, "Notify", capacity=3, overflow=Disconnect()
    )
    told: list[bool] = []
    channel.suppliers.connect("supplier", "Notify", on_demand=told.append)
    with held(channel):
        for _ in range(10):
            channel.push(event())
    assert got == []
    assert consumer.state == "disconnected"
    assert consumer.figures.dropped == {Reason.DISCONNECTED: 4}
    assert told == [False]
    channel.close()


def test_a_blocked_supplier_goes_on_as_soon_as_there_is_room() -> None:
    channel, got = one_thread(), empty()
    channel.consumers.connect("small", got.append, "Notify", capacity=3, overflow=Block("10 s"))

    for _ in range(500):
        channel.push(event())
    assert channel.settle()

    assert len(got) == 500
    channel.close()


def test_a_blocked_supplier_goes_on_when_a_larger_queue_is_promised() -> None:
    channel, got = one_thread(), empty()
    consumer = channel.consumers.connect(
        "small", got.append, "Notify", capacity=1, overflow=Block("60 s")
    )
    with held(channel):
        channel.push(event())
        supplier = threading.Thread(target=lambda: channel.push(event()))
        supplier.start()
        consumer.require(capacity=2)
        supplier.join(30)
        assert not supplier.is_alive()

    assert len(got) == 2
    channel.close()


def test_dropping_the_oldest_spares_events_of_higher_priority() -> None:
    channel, got = one_thread(), empty()
    channel.consumers.connect(
        "small",
        lambda each: got.append(each.data["n"]),
        "Notify",
        capacity=2,
        overflow=DropOldest(),
    )
    with held(channel):
        channel.push(extended(data={"n": 1}, priority=5))
        for number in (2, 3, 4):
            channel.push(extended(data={"n": number}))

    assert got == [1, 4]
    channel.close()


def test_expired_events_are_dropped_when_their_turn_comes() -> None:
    clock, got = VirtualClock(1_000_000), empty()
    channel = builder("full").dispatching("pool", threads=1).clock(clock).done()
    consumer = channel.consumers.connect("one", lambda each: got.append(each.data["n"]), "Notify")
    with held(channel):
        channel.push(extended(data={"n": 1}, expirytime="1970-01-01T00:00:02Z"))
        channel.push(extended(data={"n": 2}, expirytime="1970-01-01T00:00:09Z"))
        channel.push(extended(data={"n": 3}, expirytime="whenever"))
        clock.advance("5 s")

    assert got == [2, 3]
    assert consumer.figures.dropped == {Reason.EXPIRED: 1}
    channel.close()


def test_events_that_waited_longer_than_their_time_to_live_are_dropped() -> None:
    clock, got = VirtualClock(), empty()
    channel = builder("full").dispatching("pool", threads=1).clock(clock).done()
    consumer = channel.consumers.connect("one", got.append, "Notify", time_to_live="1 s")
    with held(channel):
        channel.push(event())
        clock.advance("2 s")
        channel.push(event())

    assert len(got) == 1
    assert consumer.figures.dropped == {Reason.EXPIRED: 1}
    channel.close()


def test_conflation_keeps_the_latest_value_in_the_place_of_the_first() -> None:
    channel, got = one_thread(), empty()
    consumer = channel.consumers.connect(
        "display",
        lambda each: got.append((each.data["sensor"], each.data["v"])),
        "Notify",
        conflate="sensor",
    )
    with held(channel):
        for sensor, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4), ("a", 5)):
            channel.push(event(sensor=sensor, v=value))

    assert got == [("a", 5), ("b", 2), ("c", 4)]
    assert consumer.figures.dropped == {Reason.CONFLATED: 2}
    channel.close()


def test_a_newer_value_of_another_priority_waits_by_that_priority() -> None:
    channel, got = one_thread(), empty()
    channel.consumers.connect(
        "display", lambda given: got.append(given.data["value"]), "Notify", conflate="sensor"
    )
    with held(channel):
        channel.push(extended(data={"sensor": "a", "value": 1}, priority=3))
        channel.push(extended(data={"sensor": "b", "value": 2}))
        channel.push(extended(data={"sensor": "c", "value": 3}))
        channel.push(extended(data={"sensor": "c", "value": 4}, priority=7))
        channel.push(extended(data={"sensor": "a", "value": 5}))

    assert got == [4, 2, 5]
    channel.close()


def test_conflation_makes_room_in_a_full_queue() -> None:
    channel, got = one_thread(), empty()
    channel.consumers.connect(
        "display", got.append, "Notify", conflate=True, capacity=1, overflow=Block("10 s")
    )
    with held(channel):
        for number in range(100):
            channel.push(event(n=number))

    assert [each.data["n"] for each in got] == [99]
    channel.close()


def test_every_event_that_was_wanted_is_delivered_or_counted() -> None:
    channel = builder("full").dispatching("pool", threads=3).done()
    policies = [DropOldest(), DropNewest(), Block("1 ms")]
    consumers = [
        channel.consumers.connect(f"c{n}", lambda _: time.sleep(0), capacity=5, overflow=policy)
        for n, policy in enumerate(policies)
    ]
    for _ in range(2_000):
        channel.push(event())
    assert channel.settle()

    for consumer in consumers:
        figures = consumer.figures
        assert figures.wanted == 2_000
        assert figures.delivered + sum(figures.dropped.values()) == 2_000
    channel.close()


def test_every_drop_is_reported_to_whoever_listens() -> None:
    reported: list[tuple[str, str]] = []
    channel = (
        builder("full")
        .dispatching("pool", threads=1)
        .on_drop(lambda name, _, reason: reported.append((name, reason)))
        .done()
    )
    channel.consumers.connect("small", print, "Notify", capacity=1, overflow=DropNewest())
    with held(channel):
        channel.push(event("Notify"))
        channel.push(event("Notify"))
        assert reported == [("small", "newest")]
        channel.consumers["small"].disconnect()

    assert reported == [("small", "newest"), ("small", "disconnected")]
    channel.close()


@pytest.mark.parametrize("strategy", ["reactive", "pool"])
def test_counts_are_exact_however_many_threads_push(strategy: str) -> None:
    channel = builder("full").dispatching(strategy, threads=2).done()
    channel.consumers.connect("one", lambda _: None, "Notify", capacity=100_000)

    def supply() -> None:
        for number in range(2_000):
            channel.push(event("Notify" if number % 2 else "Other"))

    threads = [threading.Thread(target=supply) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert channel.settle()

    figures = channel.figures()
    assert (figures.published, figures.delivered, figures.unwanted) == (8_000, 4_000, 4_000)
    channel.close()


def test_promises_that_cannot_be_kept_are_refused() -> None:
    channel = builder().done()

    with pytest.raises(UsageError, match="at least one event; given is a capacity of 0"):
        channel.consumers.connect("a", print, capacity=0)
    with pytest.raises(UsageError, match="a consumer has no option `colour`"):
        channel.consumers.connect("a", print, colour="red")
    with pytest.raises(UsageError, match="from 1 to 1000 threads; given is 0"):
        builder("full").dispatching("pool", threads=0).done()

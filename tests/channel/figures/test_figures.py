"""What a channel measures of itself."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from datetime import timedelta
from weakref import WeakSet

import pytest

from ensue.channel import Laxity, VirtualClock, want
from ensue.channel.figures.counts import ChannelCounts
from ensue.channel.figures.values import ConsumerFigures, LaxityMeter
from ensue.channel.lookup.wants import EventWant
from ensue.events.event import Event
from tests.channel.making import builder, empty, event, eventually, held


def test_laxity_is_what_is_left_of_the_deadline_and_missed_deadlines_are_counted() -> None:
    clock = VirtualClock()
    channel = builder().clock(clock).done()

    def work(given: Event) -> None:
        clock.advance(f"{given.data['ms']} ms")

    channel.consumers.connect("high", work, "High", priority=9, deadline="100 ms")
    channel.consumers.connect("low", work, "Low", priority=1, deadline="10 ms")
    for milliseconds in (20, 40):
        channel.push(event("High", ms=milliseconds))
    for milliseconds in (5, 15):
        channel.push(event("Low", ms=milliseconds))

    # 1 - 20/100 and 1 - 40/100; 1 - 5/10 and 1 - 15/10.
    laxity = channel.figures().laxity
    assert list(laxity) == [9, 1]
    assert laxity[9] == Laxity(2, 0, 0.6, 0.7, 0.8)
    assert laxity[1] == Laxity(2, 1, -0.5, 0.0, 0.5)


def test_waiting_counts_against_the_deadline() -> None:
    clock = VirtualClock()
    channel = builder("full").dispatching("pool", threads=1).clock(clock).done()
    channel.consumers.connect("one", lambda _: None, "Notify", priority=5, deadline="100 ms")
    with held(channel):
        channel.push(event("Notify"))
        clock.advance("50 ms")
        channel.push(event("Notify"))
        clock.advance("25 ms")

    # The first waited 75 ms of its 100, the second 25.
    assert channel.figures().laxity[5] == Laxity(2, 0, 0.25, 0.5, 0.75)
    channel.close()


@pytest.mark.parametrize("wants", [None, want(where=lambda _: True)])
def test_in_the_suppliers_thread_an_event_waits_for_those_who_are_called_before(
    wants: EventWant | None,
) -> None:
    clock = VirtualClock()
    channel = builder().clock(clock).done()

    def work(given: Event) -> None:
        clock.advance("5 ms")
        if given.type == "Cause":
            channel.push(event("Effect"))

    for name, priority in (("high", 9), ("low", 1)):
        channel.consumers.connect(name, work, wants, priority=priority, deadline="20 ms")
    channel.push(event("Cause"))

    # The cause is done after 5 and 10 ms. One effect was published at 5 ms and is done at 15 and
    # 20, the other at 10, done at 25 and 30.
    laxity = channel.figures().laxity
    assert laxity[9] == Laxity(3, 0, 0.25, 0.5, 0.75)
    assert laxity[1] == Laxity(3, 0, 0.0, 0.25, 0.5)
    channel.close()


def run_pair(load: float, seconds: int = 5) -> tuple[Laxity, Laxity]:
    """The paper's experiment in virtual time: a task each 25 ms and one, of 4 ms, each 50 ms."""
    clock = VirtualClock()
    channel = builder().clock(clock).done()
    end = seconds * 1_000_000

    def work(length: timedelta) -> Callable[[Event], None]:
        # Work moves the clock, and past saturation it would never come to rest.
        return lambda _: clock.advance(length) if clock.now() < end else None

    high_work = timedelta(microseconds=round(25_000 * load - 2_000))
    high = channel.consumers.connect("high", work(high_work), "-", priority=9, deadline="25 ms")
    low = channel.consumers.connect(
        "low", work(timedelta(milliseconds=4)), "-", priority=1, deadline="50 ms"
    )
    low.every("50 ms")
    high.every("25 ms")
    clock.advance(f"{seconds} s")
    laxity = channel.figures().laxity
    return laxity[9], laxity[1]


@pytest.mark.parametrize("load", [0.5, 0.9, 0.96, 0.99])
def test_up_to_99_percent_of_utilisation_no_deadline_is_missed(load: float) -> None:
    high, low = run_pair(load)

    assert (high.missed, low.missed) == (0, 0)
    assert high.count >= 195


def test_beyond_saturation_the_lower_priority_falls_behind_and_the_higher_by_one_turn_at_most() -> (
    None
):
    high, low = run_pair(1.02)

    # A turn is not cut short: the higher one may have to wait for 4 of its 25 ms.
    assert high.least >= -4 / 25
    assert low.least < -2


def test_consumers_without_a_deadline_are_not_measured() -> None:
    channel = builder().done()
    channel.consumers.connect("one", lambda _: None)
    channel.push(event())

    assert channel.figures().laxity == {}


def test_figures_say_what_was_published_delivered_and_unwanted() -> None:
    channel, got = builder().done(), empty()
    channel.consumers.connect("one", got.append, "Notify")
    channel.consumers.connect("two", got.append, "Notify")
    channel.push(event("Notify"))
    channel.push(event("Other"))

    figures = channel.figures()
    assert (figures.published, figures.delivered, figures.unwanted, figures.waiting) == (2, 2, 1, 0)


def test_laxity_can_be_measured_afresh() -> None:
    channel = builder().done()
    channel.consumers.connect("one", lambda _: None, deadline="1 s")
    channel.push(event())
    channel.reset_laxity()

    assert channel.figures().laxity == {}


def test_a_consumer_that_leaves_in_the_middle_of_a_call_has_that_event_counted() -> None:
    channel = builder("full").dispatching("pool", threads=1).done()
    started, go_on = threading.Event(), threading.Event()

    def call(_: Event) -> None:
        started.set()
        go_on.wait(60)

    consumer = channel.consumers.connect("one", call, "Notify")
    channel.push(event())
    assert started.wait(60)
    consumer.disconnect()
    go_on.set()

    assert eventually(lambda: channel.figures().delivered == 1)
    channel.close()


class Left:
    """The receiver of a consumer that has left, with one event delivered."""

    name = "left"
    is_busy = False

    def __init__(self) -> None:
        self.laxity = LaxityMeter()

    def figures(self) -> ConsumerFigures:
        return ConsumerFigures("left", "disconnected", 1, 1, 0, 0, {})


def test_counts_of_consumers_that_left_are_kept_and_their_receivers_are_not() -> None:
    counts, alive = ChannelCounts(linger_seconds=-1.0), WeakSet[Left]()
    gone = [Left() for _ in range(50)]
    alive.update(gone)
    for each in gone:
        counts.keep(each)
    of_all = counts.read((), 0, {})
    del gone, each
    gc.collect()

    assert len(alive) <= 1
    assert (of_all.delivered, of_all.wanted) == (50, 50)

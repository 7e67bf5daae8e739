"""What `real_time` does for a pool, and that it is taken back."""

from __future__ import annotations

import gc
import os
import sys
import threading

import pytest

from ensue.channel import Timeout, WallClock
from ensue.channel.urgency import SWITCH_SECONDS, is_permitted
from ensue.channel.wire import LINKS
from ensue.events.event import Event
from tests.channel.making import builder, empty, event, eventually

needs_leave = pytest.mark.skipif(
    not is_permitted(), reason="the system gives this process no real-time class"
)


def urgent(threads: int = 2):  # type: ignore[no-untyped-def]
    made = builder("full").dispatching("pool", threads=threads, real_time=True)
    return made.clock(WallClock()).done()


def test_what_concerns_the_whole_process_lasts_as_long_as_the_last_such_pool() -> None:
    interval = sys.getswitchinterval()
    first, second = urgent(), urgent()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS, rel=0.01)
    assert gc.get_freeze_count() > 0

    first.close()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS, rel=0.01)
    second.dispatch_by("reactive")
    assert sys.getswitchinterval() == pytest.approx(interval)
    assert gc.get_freeze_count() == 0
    second.close()


def test_events_are_delivered_with_or_without_the_systems_leave() -> None:
    channel, got = urgent(), empty()
    channel.consumers.connect("one", got.append, "Notify", priority=5)
    for _ in range(50):
        channel.push(event())

    assert channel.settle()
    assert len(got) == 50
    channel.close()


@needs_leave
def test_a_thread_is_as_urgent_as_the_consumer_whose_turn_it_has() -> None:
    channel, levels = urgent(1), {}

    def note(name: str):  # type: ignore[no-untyped-def]
        return lambda _: levels.update({name: os.sched_getparam(0).sched_priority})

    for name, priority in (("low", -7), ("middle", 3), ("high", 1_000)):
        channel.consumers.connect(name, note(name), "Notify", priority=priority)
    channel.push(event())

    assert channel.settle()
    assert levels == {"low": 0, "middle": 3, "high": 95}
    channel.close()


@needs_leave
def test_an_urgent_consumer_cuts_in_on_one_that_computes() -> None:
    channel = urgent()
    is_done, has_begun, cut_in = threading.Event(), threading.Event(), empty()

    def compute(_: Event) -> None:
        has_begun.set()
        while not is_done.is_set():
            sum(range(100))

    def answer(given: Event) -> None:
        cut_in.append(given)
        is_done.set()

    channel.consumers.connect("computing", compute, "Low", priority=1)
    channel.consumers.connect("urgent", answer, "High", priority=9)
    channel.push(event("Low"))
    assert has_begun.wait(10)
    channel.push(event("High"))

    assert eventually(lambda: len(cut_in) == 1, 30)
    assert channel.settle()
    channel.close()


@needs_leave
def test_the_thread_of_links_is_urgent_while_a_channel_in_real_time_has_some() -> None:
    def policy() -> int:
        async def ask() -> int:
            return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK

        return int(LINKS.run(ask()))

    before = policy()
    channel = urgent()
    channel.federation.listen()
    assert policy() == os.SCHED_FIFO
    channel.close()
    assert policy() == before == os.SCHED_OTHER


@needs_leave
def test_timers_reach_their_consumer_while_another_computes() -> None:
    channel, got = urgent(), empty()
    is_done = threading.Event()

    def compute(_: Event) -> None:
        while not is_done.is_set():
            sum(range(100))

    def note(given: Event) -> None:
        if isinstance(given, Timeout):
            got.append(given)
            if len(got) == 3:
                is_done.set()

    channel.consumers.connect("computing", compute, "Low", priority=1)
    channel.consumers.connect("timed", note, "-", priority=9).every("5 ms")
    channel.push(event("Low"))

    assert eventually(lambda: len(got) >= 3, 30)
    channel.close()

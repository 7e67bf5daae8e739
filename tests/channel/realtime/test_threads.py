"""What `real_time` does for a channel, and that it is taken back."""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path

import pytest

from ensue.channel import Timeout, WallClock
from ensue.channel.links.tcp.loop import LINK_LOOP
from ensue.channel.realtime.process import PROCESS, SWITCH_SECONDS, YOUNG_AT_MOST
from ensue.channel.realtime.threads import is_permitted
from ensue.errors import UsageError
from ensue.events.event import Event
from tests.channel.making import builder, empty, event, eventually

needs_leave = pytest.mark.skipif(
    not is_permitted(), reason="the system gives this process no real-time class"
)


def urgent(threads: int = 2):  # type: ignore[no-untyped-def]
    made = builder("full").dispatching("pool", threads=threads, real_time=True)
    return made.clock(WallClock()).done()


def test_what_concerns_the_whole_process_lasts_as_long_as_the_last_such_channel() -> None:
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    first, second = urgent(), urgent()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS, rel=0.01)
    assert gc.get_freeze_count() > 0

    first.close()
    second.dispatch_by("reactive")
    assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS, rel=0.01)
    assert gc.get_threshold() == (YOUNG_AT_MOST, *thresholds[1:])
    second.close()
    assert sys.getswitchinterval() == pytest.approx(interval)
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == thresholds


@pytest.mark.parametrize("strategy", ["reactive", "pool"])
def test_the_collector_never_runs_in_a_dispatch_but_does_after_it(strategy: str) -> None:
    rounds, inside, calls = empty(), empty(), empty()

    def note(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            rounds.append(bool(inside))

    def litter(_: Event) -> None:
        inside.append(True)
        calls.append([[] for _ in range(2_000)])
        inside.clear()

    channel = builder("full").dispatching(strategy, threads=1, real_time=True).done()
    channel.consumers.connect("one", litter, "Notify")
    gc.callbacks.append(note)
    try:
        for _ in range(20):
            channel.push(event())
            assert channel.settle()
        assert eventually(lambda: len(rounds) >= 5)
    finally:
        gc.callbacks.remove(note)
        channel.close()
    assert not any(rounds)


def test_a_collector_that_was_turned_off_stays_so() -> None:
    gc.disable()
    try:
        channel = urgent()
        garbage = [[] for _ in range(5_000)]  # type: ignore[var-annotated]
        rounds = gc.get_stats()[0]["collections"]
        PROCESS.idle()
        assert gc.get_stats()[0]["collections"] == rounds
        assert len(garbage) == 5_000
        channel.close()
    finally:
        gc.enable()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is locked on Linux only")
def test_memory_is_locked_where_the_system_lets_it_be_and_given_free_again() -> None:
    def locked() -> int:
        status = Path("/proc/self/status").read_text("ascii")
        return int(next(line for line in status.splitlines() if line[:6] == "VmLck:").split()[1])

    before = locked()
    channel = urgent()
    during = locked()
    channel.close()

    if during == before:
        pytest.skip("the system does not let this process lock memory")
    assert during > before
    assert locked() == before


@needs_leave
def test_a_suppliers_thread_is_urgent_for_as_long_as_it_asks_to_be() -> None:
    channel = urgent()
    before = os.sched_getscheduler(0), os.sched_getaffinity(0)
    with channel.in_real_time(7) as is_in:
        assert is_in
        assert os.sched_getparam(0).sched_priority == 7
        assert len(os.sched_getaffinity(0)) == 1

    assert (os.sched_getscheduler(0), os.sched_getaffinity(0)) == before
    channel.close()


def test_a_channel_that_is_not_in_real_time_makes_nobody_urgent() -> None:
    channel = builder().done()

    with pytest.raises(UsageError, match="real_time=True"), channel.in_real_time():
        pass
    channel.close()


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
    assert has_begun.wait(60)
    channel.push(event("High"))

    assert eventually(lambda: len(cut_in) == 1, 30)
    assert channel.settle()
    channel.close()


@needs_leave
def test_the_thread_of_links_is_urgent_while_a_channel_in_real_time_has_some() -> None:
    def policy() -> int:
        async def ask() -> int:
            return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK

        return int(LINK_LOOP.run(ask()))

    before = policy()
    first, last = urgent(), urgent()
    first.federation.listen()
    last.federation.listen()
    assert policy() == os.SCHED_FIFO
    first.close()
    assert policy() == os.SCHED_FIFO
    last.close()
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

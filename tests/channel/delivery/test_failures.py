"""Exceptions in consumers stay with them; a channel ends as asked, in the time given."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from ensue.channel import (
    Block,
    Failure,
    Reason,
    VirtualClock,
    WallClock,
    any_of,
    correlated,
    nothing,
    want,
)
from ensue.channel.delivery.conditions import WantStep
from ensue.channel.lookup.wants import EventWant
from ensue.channel.realtime.process import PROCESS
from ensue.errors import UsageError
from ensue.events.event import Event
from tests.channel.making import LIBRARY, builder, empty, event, eventually, noting


def fail(_: Event) -> None:
    raise ValueError("no good")


@pytest.mark.parametrize("strategy", ["reactive", "pool"])
def test_a_failing_consumer_is_reported_by_name_and_others_go_on(
    strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    reports: list[Failure] = []
    channel, got = builder("full").dispatching(strategy).on_failure(reports.append).done(), empty()
    channel.consumers.connect("bad", fail, failures=None, priority=1)
    channel.consumers.connect("good", got.append)

    with caplog.at_level(logging.ERROR):
        for _ in range(5):
            channel.push(event())
        assert channel.settle()

    assert len(got) == 5
    assert [(each.consumer, str(each.error), each.suspended) for each in reports] == [
        ("bad", "no good", False)
    ] * 5
    assert "the consumer `bad` failed on the event" in caplog.text
    figures = channel.figures().consumers["bad"]
    assert (figures.failures, figures.delivered, figures.dropped) == (5, 0, {Reason.FAILED: 5})
    channel.close()


@pytest.mark.parametrize("strategy", ["reactive", "pool"])
def test_after_so_many_failures_in_a_row_the_consumer_is_suspended_until_it_is_resumed(
    strategy: str,
) -> None:
    channel = builder("full").dispatching(strategy).done()
    consumer = channel.consumers.connect("bad", fail, failures=3)

    for _ in range(10):
        channel.push(event())
    assert channel.settle()
    assert consumer.state == "suspended"
    assert consumer.figures.failures == 3
    assert consumer.figures.dropped == {Reason.FAILED: 3, Reason.SUSPENDED: 7}

    consumer.resume()
    channel.push(event())
    assert channel.settle()
    assert consumer.state == "connected"
    assert consumer.figures.failures == 4
    channel.close()


def test_a_success_in_between_starts_the_count_again() -> None:
    channel = builder().done()

    def every_other(given: Event) -> None:
        if given.data["n"] % 2:
            raise ValueError("odd")

    consumer = channel.consumers.connect("moody", every_other, failures=2)
    for number in range(20):
        channel.push(event(n=number))

    assert (consumer.state, consumer.figures.failures) == ("connected", 10)


def test_a_failing_test_counts_as_a_failure_of_its_consumer() -> None:
    channel, got = builder().done(), empty()
    consumer = channel.consumers.connect(
        "picky", got.append, want(where=lambda each: each.data["missing"] > 1), failures=2
    )
    for _ in range(3):
        channel.push(event())

    assert (consumer.state, consumer.figures.failures, got) == ("suspended", 2, [])


@pytest.mark.parametrize("threads", [1, 3])
def test_closing_with_draining_delivers_what_waits_and_what_consumers_still_push(
    threads: int,
) -> None:
    channel, got = builder("full").dispatching("pool", threads=threads).done(), empty()

    def pass_on(given: Event) -> None:
        time.sleep(0)
        channel.push(event("Other", n=given.data["n"]))

    channel.consumers.connect("relay", pass_on, "Notify")
    channel.consumers.connect("end", got.append, "Other")
    for number in range(300):
        channel.push(event("Notify", n=number))

    closing = channel.close(drain=True)

    assert (closing.drained, closing.discarded, len(got)) == (True, 0, 300)
    with pytest.raises(UsageError, match="the channel `channel` is closed"):
        channel.push(event())


def test_closing_without_draining_discards_and_counts() -> None:
    channel = builder("full").dispatching("pool", threads=1).done()
    go_on, started = threading.Event(), threading.Event()

    def wait(_: Event) -> None:
        started.set()
        go_on.wait(60)

    consumer = channel.consumers.connect("slow", wait)
    for _ in range(10):
        channel.push(event())
    started.wait(60)

    closing = channel.close(drain=False)
    go_on.set()

    assert (closing.drained, closing.discarded) == (False, 9)
    assert consumer.figures.dropped == {Reason.DISCARDED: 9}


def test_a_consumer_that_never_returns_cannot_keep_a_channel_open() -> None:
    channel = builder("full").dispatching("pool", threads=1).done()
    go_on = threading.Event()
    channel.consumers.connect("stuck", lambda _: go_on.wait(60))
    channel.push(event())
    channel.push(event())

    before = time.monotonic()
    closing = channel.close(drain=True, within="50 ms")

    assert 0.05 <= time.monotonic() - before < 30
    assert not closing.drained
    go_on.set()


def test_a_closed_channel_has_no_timers_left() -> None:
    clock, got = VirtualClock(), empty()
    channel = builder().clock(clock).done()
    channel.consumers.connect("gps", got.append).every("1 s")
    channel.close()
    clock.advance("10 s")

    assert got == []


@pytest.mark.parametrize("strategy", ["reactive", "pool"])
def test_listeners_that_fail_are_logged_and_hold_up_nobody(
    strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = builder("full").dispatching(strategy, threads=1)
    channel = made.on_failure(lambda _: fail(event())).on_drop(lambda *_: fail(event())).done()
    got = empty()
    channel.suppliers.connect("gps", "Notify", on_demand=lambda _: fail(event()))
    channel.consumers.connect("bad", fail, "Notify", failures=None, priority=1)
    channel.consumers.connect("good", got.append, "Notify")

    with caplog.at_level(logging.ERROR):
        for _ in range(5):
            channel.push(event())
        assert channel.settle()

    assert len(got) == channel.consumers["bad"].figures.failures == 5
    assert all(f"`{name}` failed" in caplog.text for name in ("on_failure", "on_drop"))
    assert channel.close().drained


def test_a_consumer_that_would_exit_ends_its_turn_but_no_thread_of_a_pool() -> None:
    channel, got = builder("full").dispatching("pool", threads=1).done(), empty()

    def leave(_: Event) -> None:
        raise SystemExit

    channel.consumers.connect("leaving", leave, "Notify", failures=None, priority=1)
    channel.consumers.connect("staying", got.append, "Notify")
    for _ in range(5):
        channel.push(event())

    assert channel.settle()
    assert len(got) == channel.consumers["leaving"].figures.dropped[Reason.FAILED] == 5
    channel.close()


def test_an_interrupt_in_a_consumer_reaches_the_supplier_and_the_consumer_goes_on() -> None:
    channel, calls = builder().done(), empty()

    def interrupted_once(given: Event) -> None:
        calls.append(given)
        if len(calls) == 1:
            raise KeyboardInterrupt

    channel.consumers.connect("one", interrupted_once, "Notify")
    with pytest.raises(KeyboardInterrupt):
        channel.push(event())
    channel.push(event())

    figures = channel.consumers["one"].figures
    assert (figures.wanted, figures.delivered, figures.failures) == (2, 1, 1)
    assert channel.settle()
    channel.close()


def test_what_one_consumer_raises_for_the_supplier_keeps_nothing_from_the_others() -> None:
    channel, got = builder().done(), empty()

    def leave(given: Event) -> None:
        if given.type == "Notify":
            channel.push(event("Other"))
            raise SystemExit

    channel.consumers.connect("leaving", leave, any_of("Notify", "Other"), priority=1)
    channel.consumers.connect("queued", noting(got, "queued"), want(where=lambda _: True))
    channel.consumers.connect("called", noting(got, "called"))
    with pytest.raises(SystemExit):
        channel.push(event())

    assert got == ["queued", "called"] * 2
    channel.push(event("Other"))
    channel.close()


def test_time_passes_though_a_consumer_would_exit() -> None:
    channel, fired = builder().clock(WallClock()).done(), empty()

    def leave(given: Event) -> None:
        fired.append(given)
        raise SystemExit

    channel.consumers.connect("one", leave, nothing(), failures=None).every("1 ms")

    assert eventually(lambda: len(fired) >= 3)
    channel.close()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="the system sends no such signals")
def test_a_supplier_that_is_interrupted_while_it_waits_has_its_event_counted() -> None:
    channel, asked = builder().done(), threading.Event()

    def key(given: Event) -> object:
        # Asked whether it replaces a waiting event, before the supplier begins to wait.
        asked.set()
        return given.id

    for name in ("first", "second"):
        channel.subscribe("Notify", name=name, capacity=1, overflow=Block("60 s"), conflate=key)
    channel.push(event())
    asked.clear()

    def interrupt() -> None:
        assert asked.wait(60)
        time.sleep(0.2)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        channel.push(event())
    interrupting.join()

    for name in ("first", "second"):
        assert channel.consumers[name].figures.dropped == {Reason.BLOCKED: 1}
    channel.close(drain=False)


def test_a_channel_that_several_threads_close_is_closed_once() -> None:
    channel = builder("full").dispatching("pool", threads=1, real_time=True).done()
    together, users = threading.Barrier(4), PROCESS._users

    def close() -> None:
        together.wait(60)
        channel.close()

    threads = [threading.Thread(target=close) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert users - PROCESS._users == 1


def test_a_coroutine_in_which_something_was_cancelled_has_failed_and_gets_the_next_event() -> None:
    async def main() -> tuple[int, int]:
        channel, calls = builder("full").dispatching("asyncio").done(), empty()

        async def wait(_: Event) -> None:
            calls.append(1)
            waiting = asyncio.create_task(asyncio.sleep(10))
            waiting.cancel()
            await waiting

        channel.consumers.connect("one", wait, "Notify", failures=None)
        for _ in range(3):
            await channel.publish(event())
        closing = await channel.aclose()
        assert closing.drained
        return len(calls), channel.consumers["one"].figures.failures

    assert asyncio.run(main()) == (3, 3)


@pytest.mark.parametrize("key", [fail, lambda _: [], "value"])
def test_a_key_of_conflation_that_is_none_harms_no_supplier(key: Any) -> None:
    channel = builder().done()
    subscription = channel.subscribe("Notify", conflate=key)
    for number in range(3):
        channel.push(event("Notify", value=[number]))

    assert subscription.take_all()
    channel.close()


def test_a_python_test_that_exits_does_not_take_the_turns_of_its_consumer_with_it() -> None:
    channel, got, exits = builder().done(), empty(), [True, False]

    def exit_once(_: Event) -> bool:
        if exits.pop(0):
            raise SystemExit
        return True

    channel.consumers.connect("one", got.append, want("Notify", where=exit_once))
    with pytest.raises(SystemExit):
        channel.push(event())
    channel.push(event())

    assert len(got) == 1
    channel.close()


def test_a_full_queue_behind_a_consumer_that_exits_has_its_event_counted() -> None:
    channel = builder().done()

    def leave(_: Event) -> None:
        raise SystemExit

    channel.consumers.connect("leaving", leave, "Notify", priority=1)
    full = channel.subscribe("Notify", name="full", capacity=1, overflow=Block("60 s"))
    for _ in range(2):
        with pytest.raises(SystemExit):
            channel.push(event())

    assert full.consumer.figures.dropped == {Reason.BLOCKED: 1}
    channel.close(drain=False)


class FailingAtTicks(WantStep):
    """A step that cannot let time pass."""

    def advance(self, now: int) -> Sequence[Event]:
        raise ValueError(f"no good at {now}")


def test_a_step_that_fails_at_a_tick_has_lost_no_event() -> None:
    clock, reports = VirtualClock(), empty()
    channel = builder().clock(clock).on_drop(lambda *given: reports.append(given)).done()
    consumer = channel.consumers.connect(
        "one", lambda _: None, correlated(LIBRARY, "Silent"), failures=None
    )
    channel.push(event("DataNotify", SourceID=1, Value=1.0))
    consumer.receiver.change_step(FailingAtTicks(EventWant(), LIBRARY.checked.types), None)
    clock.advance("11 s")

    assert consumer.figures.failures == 1
    assert (consumer.figures.dropped, reports) == ({}, [])
    channel.close()

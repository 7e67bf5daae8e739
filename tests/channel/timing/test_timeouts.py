"""Timeouts: the heap they stand in, and when they reach a consumer."""

from __future__ import annotations

import random

import pytest

from ensue.channel import TIMEOUT, Timeout, VirtualClock, WallClock, correlated, nothing
from ensue.channel.timing.callouts import Callout, CalloutQueue
from ensue.errors import UsageError
from ensue.events.event import Event
from tests.channel.making import LIBRARY, builder, empty, event, eventually, noting


@pytest.mark.parametrize("seed", range(5))
def test_the_heap_runs_what_a_sorted_list_would(seed: int) -> None:
    chance, ran = random.Random(seed), empty()
    queue = CalloutQueue()
    model: dict[Callout, tuple[int, int, int]] = {}
    numbers = iter(range(10_000))
    for now in range(0, 4_000, 10):
        for _ in range(chance.randint(0, 4)):
            number, due, priority = (
                next(numbers),
                now + chance.randint(0, 500),
                chance.randint(0, 2),
            )
            callout = queue.schedule(due, lambda _, n=number: ran.append(n), priority)  # type: ignore[misc]
            model[callout] = (due, -priority, number)
        if model and chance.random() < 0.5:
            gone = chance.choice(list(model))
            assert queue.cancel(gone)
            assert not queue.cancel(gone)
            del model[gone]
        due_now = sorted((order, c) for c, order in model.items() if order[0] <= now)
        ran.clear()
        queue.run_due(now)
        assert ran == [order[2] for order, _ in due_now]
        for _, callout in due_now:
            del model[callout]
        assert len(queue) == len(model)


def test_scheduling_and_cancelling_take_logarithmically_many_steps() -> None:
    compared = 0

    class Counting(tuple[int, ...]):
        def __lt__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return tuple.__lt__(self, other)  # type: ignore[operator]

        def __le__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return tuple.__le__(self, other)  # type: ignore[operator]

    queue, callouts = CalloutQueue(), empty()
    for due in random.Random(1).sample(range(1 << 20), 1 << 14):
        callout = queue.schedule(due, lambda _: None)
        callout.order = Counting(callout.order)  # type: ignore[assignment]
        callouts.append(callout)
    compared = 0
    random.Random(2).shuffle(callouts)
    for callout in callouts[:1_000]:
        queue.cancel(callout)

    # Two comparisons a level on the way down, and there are 14 levels.
    assert compared <= 1_000 * (2 * 14 + 2)


def test_an_interval_keeps_to_its_beat() -> None:
    clock, got = VirtualClock(1_000_000), empty()
    channel = builder().clock(clock).done()
    timer = channel.consumers.connect("gps", got.append, "Nothing").every("1 s", "sample")

    clock.advance("3.5 s")

    assert [each.time for each in got] == [2_000_000, 3_000_000, 4_000_000]
    assert isinstance(got[0], Timeout)
    assert (got[0].type, got[0].data) == (
        TIMEOUT,
        {"timer": "sample", "kind": "interval", "count": 1},
    )
    assert timer.cancel()
    clock.advance("10 s")
    assert len(got) == 3


def test_a_watchdog_fires_only_after_its_time_without_an_event_and_again_after_that() -> None:
    clock, got = VirtualClock(), empty()
    channel = builder().clock(clock).done()
    channel.consumers.connect("watch", got.append, "Notify").deadline("10 s")

    clock.advance("9 s")
    channel.push(event("Notify"))
    clock.advance("9 s")
    assert [each.type for each in got] == ["Notify"]
    clock.advance("1 s")
    assert [each.type for each in got] == ["Notify", TIMEOUT]
    clock.advance("10 s")

    assert [each.time for each in got if each.type == TIMEOUT] == [19_000_000, 29_000_000]


def test_a_watchdog_is_not_quieted_by_events_that_its_consumer_does_not_want() -> None:
    clock, got = VirtualClock(), empty()
    channel = builder().clock(clock).done()
    channel.consumers.connect("watch", got.append, "Notify").deadline("10 s")

    clock.advance("9 s")
    channel.push(event("Other"))
    clock.advance("1 s")

    assert [each.type for each in got] == [TIMEOUT]


def test_timeouts_of_one_instant_come_by_the_priority_of_their_consumers() -> None:
    clock, got = VirtualClock(), empty()
    channel = builder().clock(clock).done()
    for name, priority in (("low", 1), ("high", 9), ("middle", 5)):
        consumer = channel.consumers.connect(name, noting(got, name), "Nothing", priority=priority)
        consumer.every("1 s")

    clock.advance("2 s")

    assert got == ["high", "middle", "low"] * 2


def test_a_consumer_that_leaves_takes_its_timeouts_along() -> None:
    clock, got = VirtualClock(), empty()
    channel = builder().clock(clock).done()
    consumer = channel.consumers.connect("gps", got.append, "Nothing")
    consumer.every("1 s")
    consumer.disconnect()

    clock.advance("5 s")

    assert got == []
    assert len(channel.timeouts().callouts) == 0


def test_on_a_wall_clock_timeouts_come_by_themselves() -> None:
    got: list[Event] = []
    channel = builder().clock(WallClock()).done()
    channel.consumers.connect("gps", got.append, "Nothing").every("5 ms")

    assert eventually(lambda: len(got) >= 3)
    channel.close()


def test_a_correlation_hears_of_its_timer_at_the_very_moment_it_is_due() -> None:
    clock, got = VirtualClock(), empty()
    channel = builder().clock(clock).done()
    channel.consumers.connect("watch", got.append, correlated(LIBRARY, "Silent"))
    channel.push(event("DataNotify", at=0, SourceID=1, Value=1.0))

    clock.move_to(9_999_999)
    assert got == []
    clock.move_to(10_000_000)
    assert [each.time for each in got] == [10_000_000]


def test_a_correlation_catches_up_with_a_clock_that_ran_ahead_of_its_turns() -> None:
    clock, got = VirtualClock(), empty()
    channel = builder("full").dispatching("pool", threads=1).clock(clock).done()
    channel.consumers.connect("watch", got.append, correlated(LIBRARY, "Silent"))
    channel.push(event("DataNotify", at=0, SourceID=1, Value=1.0))
    assert channel.settle()

    clock.advance("35 s")

    assert eventually(lambda: len(got) == 3)
    assert [each.time for each in got] == [10_000_000, 20_000_000, 30_000_000]
    channel.close()


def test_a_period_of_nothing_is_refused() -> None:
    consumer = builder().done().consumers.connect("gps", print, "Nothing")

    with pytest.raises(UsageError, match="at least 1 microseconds"):
        consumer.every("0 s")
    with pytest.raises(UsageError, match="`soon` is no duration"):
        consumer.every("soon")


def test_a_consumer_that_wants_nothing_is_called_by_its_timeouts_only() -> None:
    clock, got, supplier_told = VirtualClock(), empty(), empty()
    channel = builder().clock(clock).done()
    channel.suppliers.connect("gps", "Notify", on_demand=supplier_told.append)
    channel.consumers.connect("timed", got.append, nothing()).every("1 s")

    channel.push(event())
    clock.advance("2 s")

    assert [each.data["count"] for each in got] == [1, 2]
    assert supplier_told == [False]


def test_an_event_of_the_far_future_does_not_move_the_clock_of_a_correlation() -> None:
    channel, got = builder().done(), empty()
    consumer = channel.consumers.connect("silent", got.append, correlated(LIBRARY, "Silent"))
    channel.push(event("DataNotify", at=0, SourceID=1, Value=1.0))
    channel.push(event("DataNotify", at=250_000_000_000_000_000, SourceID=1, Value=1.0))

    assert consumer.figures.dropped == {"ahead": 1}
    assert got == []


def test_by_the_time_of_day_an_old_event_is_believed_and_one_from_the_future_is_not() -> None:
    """The timers of 36 hours fire, some at a time."""
    clock = WallClock()
    channel, got = builder().clock(clock).done(), empty()
    consumer = channel.consumers.connect("silent", got.append, correlated(LIBRARY, "Silent"))
    hour = 3_600_000_000
    channel.push(event("DataNotify", at=clock.now() + 36 * hour, SourceID=1, Value=1.0))
    assert consumer.figures.dropped == {"ahead": 1}
    channel.push(event("DataNotify", at=clock.now() - 36 * hour, SourceID=1, Value=1.0))

    assert eventually(lambda: len(got) >= 36 * 360 - 2)
    assert consumer.figures.dropped == {"ahead": 1}
    channel.close()

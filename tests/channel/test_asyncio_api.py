"""A channel in coroutines: published to, iterated over, and dispatching on a loop."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from ensue.channel import Block, Channel, Reason, build, correlated, want
from ensue.errors import UsageError
from ensue.events.event import Event
from tests.channel.making import LIBRARY, builder, empty, event


def test_events_are_published_and_iterated_over_in_coroutines() -> None:
    async def main() -> list[int]:
        channel, got = builder().done(), empty()

        async def collect() -> None:
            async for each in channel.subscribe(want("Notify", where="SourceID > 2")):
                got.append(each.data["SourceID"])

        collecting = asyncio.create_task(collect())
        await asyncio.sleep(0)
        for number in range(6):
            await channel.publish(event("Notify", SourceID=number))
        while len(got) < 3:
            await asyncio.sleep(0)
        await channel.aclose()
        await asyncio.wait_for(collecting, 5)
        return got

    assert asyncio.run(main()) == [3, 4, 5]


def test_a_subscription_is_iterated_over_in_a_thread_just_as_well() -> None:
    channel, got = builder().done(), empty()
    subscription = channel.subscribe("Notify")
    thread = threading.Thread(target=lambda: got.extend(subscription))
    thread.start()
    for _ in range(3):
        channel.push(event())
    while len(got) < 3 and thread.is_alive():
        time.sleep(0.001)
        if not subscription.consumer.figures.waiting:
            break
    channel.close()
    thread.join(60)

    assert not thread.is_alive()
    assert len(got) == 3


def test_taking_waits_no_longer_than_asked() -> None:
    channel = builder().done()
    subscription = channel.subscribe("Notify")

    assert subscription.take(within="10 ms") is None
    channel.push(event())
    assert subscription.take(within="10 ms") is not None
    channel.push(event())
    channel.push(event())
    assert len(subscription.take_all()) == 2


def test_a_subscription_can_be_to_a_correlation() -> None:
    channel = builder().done()
    subscription = channel.subscribe(correlated(LIBRARY, "Both"))

    channel.push(event("DataNotify", at=1, SourceID=5, Value=1.0))
    channel.push(event("Other", at=2))

    assert [each.data for each in subscription.take_all()] == [{"SourceID": 5}]


def test_publishing_waits_for_room_without_holding_up_the_loop() -> None:
    async def main() -> tuple[int, int]:
        channel = builder().done()
        subscription = channel.subscribe("Notify", capacity=2, overflow=Block("60 s"))
        ticks = 0

        async def publish() -> None:
            for _ in range(6):
                await channel.publish(event())

        publishing = asyncio.create_task(publish())
        for _ in range(5):
            await asyncio.sleep(0.001)
            ticks += 1
        assert not publishing.done()
        taken = 0
        async for _ in subscription:
            taken += 1
            if taken == 6:
                break
        await publishing
        return ticks, taken

    assert asyncio.run(main()) == (5, 6)


def test_publishing_that_is_cancelled_counts_where_there_was_no_room() -> None:
    async def main() -> Channel:
        channel = builder().done()
        for name in ("first", "second"):
            channel.subscribe("Notify", name=name, capacity=1, overflow=Block("60 s"))
        await channel.publish(event())
        publishing = asyncio.create_task(channel.publish(event()))
        await asyncio.sleep(0)
        publishing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await publishing
        return channel

    channel = asyncio.run(main())
    for name in ("first", "second"):
        assert channel.consumers[name].figures.dropped == {Reason.BLOCKED: 1}


def test_a_wait_for_an_event_that_is_cancelled_ends_no_subscription() -> None:
    async def main() -> list[object]:
        channel = builder().done()
        subscription = channel.subscribe("Notify")
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(subscription), 0.001)
        given = event()
        await channel.publish(given)
        assert await anext(subscription) is given
        await channel.aclose()
        return [each async for each in subscription]

    assert asyncio.run(main()) == []


def test_a_thread_can_push_to_a_subscription_whose_loop_has_ended() -> None:
    channel = builder().done()
    subscription = channel.subscribe("Notify")

    async def wait_in_vain() -> None:
        waiting = asyncio.ensure_future(anext(subscription))
        await asyncio.sleep(0)
        assert not waiting.done()

    asyncio.run(wait_in_vain())
    channel.push(event())

    assert len(subscription.take_all()) == 1


def test_what_comes_after_the_loop_of_a_channel_has_ended_waits_for_another_strategy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    got = empty()

    async def main() -> Channel:
        channel = builder("full").dispatching("asyncio").done()
        channel.consumers.connect("one", got.append, "Notify")
        return channel

    channel = asyncio.run(main())
    channel.push(event())
    channel.push(event())
    assert caplog.text.count("the event loop on which consumers are called has ended") == 1
    assert channel.figures().waiting == 2
    channel.dispatch_by("pool", threads=1)

    assert channel.settle()
    assert len(got) == 2
    channel.close()


def test_publishing_gives_up_at_the_deadline_and_counts() -> None:
    async def main() -> Channel:
        channel = builder().done()
        channel.subscribe("Notify", name="full", capacity=1, overflow=Block("10 ms"))
        await channel.publish(event())
        await channel.publish(event())
        return channel

    assert asyncio.run(main()).figures().consumers["full"].dropped == {Reason.BLOCKED: 1}


def test_coroutines_as_consumers_wait_without_holding_up_others() -> None:
    async def main() -> tuple[list[int], list[int]]:
        slow, quick = empty(), empty()
        go_on = asyncio.Event()

        async def wait(given: Event) -> None:
            await go_on.wait()
            slow.append(given.data["n"])

        async def note(given: Event) -> None:
            quick.append(given.data["n"])

        async with build("full").dispatching("asyncio").done() as channel:
            channel.consumers.connect("slow", wait, priority=9)
            channel.consumers.connect("quick", note)
            for number in range(5):
                await channel.publish(event(n=number))
            while len(quick) < 5:
                await asyncio.sleep(0)
            assert slow == []
            go_on.set()
        return slow, quick

    assert asyncio.run(main()) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])


def test_the_loop_calls_by_priority_too() -> None:
    async def main() -> list[str]:
        called = empty()
        async with build("full").dispatching("asyncio").done() as channel:
            for name, priority in (("low", 0), ("high", 5)):
                channel.consumers.connect(
                    name, lambda each: called.append(each.type), name, priority=priority
                )
            for type_ in ("low", "low", "high", "high"):
                channel.push(event(type_))
        return called

    assert asyncio.run(main()) == ["high", "high", "low", "low"]


def test_threads_may_push_into_a_channel_on_a_loop() -> None:
    async def main() -> int:
        got = empty()
        channel = build("full").dispatching("asyncio").done()
        channel.consumers.connect("one", got.append)

        def supply() -> None:
            for _ in range(200):
                channel.push(event())

        await asyncio.gather(*(asyncio.to_thread(supply) for _ in range(3)))
        await channel.aclose()
        return len(got)

    assert asyncio.run(main()) == 600


def test_a_failing_coroutine_is_contained_like_any_consumer() -> None:
    async def main() -> tuple[int, int]:
        async def fail(_: Event) -> None:
            raise ValueError("no good")

        channel = build("full").dispatching("asyncio").done()
        consumer = channel.consumers.connect("bad", fail, failures=2)
        for _ in range(4):
            await channel.publish(event())
        await channel.aclose()
        return consumer.figures.dropped[Reason.FAILED], consumer.figures.dropped[Reason.SUSPENDED]

    assert asyncio.run(main()) == (2, 2)


def test_a_coroutine_is_refused_where_nobody_could_await_it() -> None:
    async def receive(_: Event) -> None: ...

    with pytest.raises(UsageError, match="`one` is a coroutine, which the strategy `reactive`"):
        builder().done().consumers.connect("one", receive)
    with pytest.raises(UsageError, match="needs an event loop"):
        build("full").dispatching("asyncio").done()


def test_what_a_subscription_has_not_taken_is_still_there_after_a_drained_close() -> None:
    channel = builder().done()
    kept, lost = channel.subscribe("Notify"), builder().done()
    discarded = lost.subscribe("Notify")
    for each in (channel, lost):
        each.push(event())

    channel.close(drain=True)
    lost.close(drain=False)

    assert len(list(kept)) == 1
    assert list(discarded) == []

"""In which order, and in whose thread, consumers are called."""

from __future__ import annotations

import threading
import time

from ensue.channel import (
    want,
)
from ensue.events.event import Event
from tests.channel.making import (
    builder,
    empty,
    event,
    eventually,
    extended,
    held,
    noting,
    one_thread,
)


def test_reactive_calls_in_the_suppliers_thread_before_push_returns() -> None:
    channel, threads = builder().done(), empty()
    channel.consumers.connect("here", lambda _: threads.append(threading.current_thread()))

    channel.push(event())

    assert threads == [threading.current_thread()]


def test_reactive_keeps_threads_apart_that_come_and_go() -> None:
    channel, called = builder().done(), empty()

    def follow(given: Event) -> None:
        called.append((given.type, given.data["n"]))
        if given.type == "Cause":
            channel.push(event("Effect", n=given.data["n"]))

    channel.consumers.connect("first", follow, priority=1)
    channel.consumers.connect("last", follow)
    for number in range(50):
        # A new thread mostly has the number of the one that has just ended.
        thread = threading.Thread(target=channel.push, args=(event("Cause", n=number),))
        thread.start()
        thread.join()
        channel.push(event("Cause", n=-number))

    expected = [kind for kind in ("Cause", "Effect") for _ in range(2 if kind == "Cause" else 4)]
    assert called == [(kind, n) for each in range(50) for n in (each, -each) for kind in expected]
    channel.close()


def test_reactive_calls_by_priority_then_sub_priority_then_order_of_connection() -> None:
    channel, called = builder().done(), empty()
    places = {"c": (1, 0), "d": (1, 0), "b": (1, 5), "e": (0, 9), "a": (2, 0)}
    for name, (priority, sub_priority) in places.items():
        channel.consumers.connect(
            name,
            noting(called, name),
            priority=priority,
            sub_priority=sub_priority,
        )

    channel.push(event())

    assert called == ["a", "b", "c", "d", "e"]


def test_what_a_consumer_pushes_comes_after_the_event_at_hand_for_everybody() -> None:
    channel, seen = builder().done(), empty()

    def answer(given: Event) -> None:
        if given.type == "Question":
            channel.push(event("Answer"))

    channel.consumers.connect("answering", answer, priority=1)
    channel.consumers.connect("listening", lambda each: seen.append(each.type))

    channel.push(event("Question"))

    assert seen == ["Question", "Answer"]


def test_a_long_chain_of_pushes_does_not_deepen_the_stack() -> None:
    channel, last = builder().done(), empty()

    def count_down(given: Event) -> None:
        last.append(given.data["n"])
        if given.data["n"]:
            channel.push(event("Count", n=given.data["n"] - 1))

    channel.consumers.connect("counting", count_down, "Count")
    channel.push(event("Count", n=5_000))

    assert last[-1] == 0


def test_the_pool_calls_by_priority_then_sub_priority_then_arrival() -> None:
    channel, called = one_thread(), empty()
    places = {"c": (1, 0), "d": (1, 0), "b": (1, 5), "e": (0, 9), "a": (2, 0)}
    for name, (priority, sub_priority) in places.items():
        channel.consumers.connect(
            name,
            noting(called, name),
            want("Notify"),
            priority=priority,
            sub_priority=sub_priority,
        )
    with held(channel):
        channel.push(event("Notify"))

    assert called == ["a", "b", "c", "d", "e"]
    channel.close()


def test_a_more_urgent_consumer_overtakes_the_backlog_of_another() -> None:
    channel, called = one_thread(), empty()
    channel.consumers.connect("low", lambda _: called.append("low"), "Low")
    channel.consumers.connect("high", lambda _: called.append("high"), "High", priority=5)
    with held(channel):
        for type_ in ("Low", "Low", "Low", "High", "High"):
            channel.push(event(type_))

    assert called == ["high", "high", "low", "low", "low"]
    channel.close()


def test_events_of_higher_priority_overtake_in_their_consumers_queue_and_between_equals() -> None:
    channel, called = one_thread(), empty()
    for name in ("one", "two"):
        channel.consumers.connect(
            name, lambda each: called.append((each.type, each.extensions.get("priority"))), name
        )
    with held(channel):
        channel.push(extended("one"))
        channel.push(extended("one", priority=5))
        channel.push(extended("two", priority=9))
        channel.push(extended("one", priority=-1))
        channel.push(extended("one", priority=5))

    assert called == [("two", 9), ("one", 5), ("one", 5), ("one", None), ("one", -1)]
    channel.close()


def test_an_urgent_event_lends_its_place_to_no_other_of_its_consumer() -> None:
    channel, called = one_thread(), empty()
    for name in ("one", "two"):
        channel.consumers.connect(name, lambda each: called.append(each.data["n"]), name)
    with held(channel):
        channel.push(extended("one", data={"n": 3}, priority=4))
        channel.push(extended("one", data={"n": 1}, priority=9))
        channel.push(extended("one", data={"n": 5}))
        channel.push(extended("two", data={"n": 2}, priority=5))
        channel.push(extended("two", data={"n": 4}, priority=4))

    assert called == [1, 2, 3, 4, 5]
    channel.close()


def test_a_slow_consumer_does_not_hold_up_others() -> None:
    channel = builder("full").dispatching("pool", threads=2).done()
    go_on, called = threading.Event(), empty()
    channel.consumers.connect("slow", lambda _: go_on.wait(60), "Notify", priority=9)
    channel.consumers.connect("quick", called.append, "Notify")

    for _ in range(100):
        channel.push(event())

    assert eventually(lambda: len(called) == 100)
    go_on.set()
    channel.close()


def test_a_long_filter_does_not_hold_up_others_nor_the_supplier() -> None:
    channel = builder("full").dispatching("pool", threads=2).done()
    go_on, called, passed = threading.Event(), empty(), empty()

    def ponder(_: Event) -> bool:
        return go_on.wait(60)

    channel.consumers.connect("pondering", passed.append, want("Notify", where=ponder), priority=9)
    channel.consumers.connect("quick", called.append, "Notify")

    for _ in range(100):
        channel.push(event())

    assert eventually(lambda: len(called) == 100)
    assert passed == []
    go_on.set()
    assert channel.settle()
    assert len(passed) == 100
    channel.close()


def test_a_consumer_is_called_by_one_thread_at_a_time_and_in_order() -> None:
    channel = builder("full").dispatching("pool", threads=4).done()
    inside, overlaps, numbers = [0], [0], empty()

    def slowly(given: Event) -> None:
        inside[0] += 1
        overlaps[0] += inside[0] > 1
        time.sleep(0)
        numbers.append(given.data["n"])
        inside[0] -= 1

    channel.consumers.connect("serial", slowly, "Notify")
    for number in range(3_000):
        channel.push(event(n=number))
    assert channel.settle()

    assert overlaps == [0]
    assert numbers == list(range(3_000))
    channel.close()

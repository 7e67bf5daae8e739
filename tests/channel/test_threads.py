"""A channel used by several threads at once: storms of a few seeds, and the races they found."""

from __future__ import annotations

import logging
import random
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from ensue.channel import Channel
from ensue.errors import UsageError
from tests.channel.making import builder, event
from tests.channel.storms import storm


@pytest.fixture(autouse=True)
def often_switched() -> Iterator[None]:
    """Let threads take turns as often as they can, and leave consumers that fail out of the log."""
    before = sys.getswitchinterval()
    logging.getLogger("ensue.channel").disabled = True
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
    logging.getLogger("ensue.channel").disabled = False


def at_once(*works: Callable[[], object], times: int = 1) -> None:
    """Run functions in threads of their own, all from one moment on."""
    begin = threading.Barrier(len(works) * times)
    failures: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        begin.wait()
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works * times]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures, failures[:3]


@pytest.mark.parametrize("seed", range(4))
def test_a_storm_ends_and_all_that_was_wanted_is_delivered_or_counted(seed: int) -> None:
    storm(random.Random(seed))


def test_events_that_nobody_wants_are_counted_once_each_by_any_number_of_threads() -> None:
    channel = builder().done()
    supplier = channel.suppliers.connect("s", "Notify")
    kept = channel.suppliers.connect("kept", "Notify")

    def supply() -> None:
        for _ in range(2_000):
            supplier.push(event("Notify"))
            kept.send("Notify")

    at_once(supply, times=4)
    assert supplier.unwanted == kept.unwanted == 8_000
    supplier.disconnect()
    assert channel.figures().unwanted == 16_000
    channel.close()


def test_subscriptions_of_several_threads_have_names_of_their_own() -> None:
    channel = builder().done()
    at_once(lambda: [channel.subscribe("Notify") for _ in range(100)], times=4)
    assert len(channel.consumers) == 400
    channel.close()


def test_a_consumer_that_changes_while_it_leaves_is_found_by_no_event() -> None:
    channel = builder("full").done()
    for _ in range(200):
        consumer = channel.consumers.connect("one", lambda _: None, "Notify")

        def change(consumer: object = consumer) -> None:
            consumer.change("Notify")  # type: ignore[attr-defined]
            consumer.require(priority=3)  # type: ignore[attr-defined]

        at_once(change, consumer.disconnect)
        assert not channel.lookup.find(event("Notify"))
    channel.close()


def test_a_closed_channel_takes_no_consumer_and_no_strategy() -> None:
    channel = builder("full").done()
    channel.close()
    before = threading.active_count()
    with pytest.raises(UsageError, match="is closed: no consumer can connect to it"):
        channel.consumers.connect("late", lambda _: None)
    with pytest.raises(UsageError, match="is closed: it dispatches nothing"):
        channel.dispatch_by("pool", threads=4)
    assert threading.active_count() <= before


def test_a_puller_that_comes_while_the_channel_closes_does_not_wait_for_ever() -> None:
    for _ in range(100):
        channel: Channel = builder("full").done()

        def pull(channel: Channel = channel) -> None:
            try:
                subscription = channel.subscribe("Notify")
            except UsageError:
                return
            assert not list(subscription)

        at_once(pull, channel.close)


def test_a_pool_has_a_bound() -> None:
    with pytest.raises(UsageError, match="from 1 to 1000 threads; given is 1000000"):
        builder("full").dispatching("pool", threads=1_000_000).done()

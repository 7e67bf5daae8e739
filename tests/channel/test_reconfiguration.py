"""Parts are swapped while events flow; every event arrives once, whatever is swapped meanwhile."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import ensue
from ensue.channel import Block, Channel, any_of, correlated, want
from ensue.errors import UsageError
from ensue.events.event import Event
from tests.channel.making import LIBRARY, builder, empty, event, eventually, held, noting
from tests.channel.scenarios import suppliers_of

SUPPLIERS = 3
EVENTS = 1_500
STRETCH = 250
"""Events that a supplier pushes before it looks whether changes keep up with it."""


class Changes:
    """Counts changes. Suppliers wait where they are ahead of them, so that on no machine, however
    busy, they are through before there have been some; a change waits for nobody.
    """

    def __init__(self) -> None:
        self.made = 0
        self._more = threading.Condition()

    def note(self) -> None:
        with self._more:
            self.made += 1
            self._more.notify_all()

    def keep_up(self, count: int) -> None:
        if count % STRETCH == 0:
            with self._more:
                # Where a change has failed, the test ends by that and not by waiting for more.
                self._more.wait_for(lambda: self.made >= count // STRETCH, timeout=60)

    def check(self) -> None:
        assert self.made >= (EVENTS - 1) // STRETCH


def under_load(channel: Channel, change: Callable[[random.Random], None], seed: int) -> None:
    """Push from several threads while `change` is called again and again."""
    chance, changes = random.Random(seed), Changes()
    threads = suppliers_of(channel, SUPPLIERS, EVENTS, changes.keep_up)
    while any(thread.is_alive() for thread in threads):
        change(chance)
        changes.note()
    for thread in threads:
        thread.join()
    assert channel.settle("60 s")
    changes.check()


class Tally:
    """Counts what arrives, and whether each supplier's events kept their order."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[int, int]] = Counter()
        self.last: dict[int, int] = {}
        self.disorder = 0

    def __call__(self, given: Event) -> None:
        supplier, count = given.data["supplier"], given.data["count"]
        self.seen[(supplier, count)] += 1
        self.disorder += count <= self.last.get(supplier, -1)
        self.last[supplier] = count

    def check(self) -> None:
        assert len(self.seen) == SUPPLIERS * EVENTS
        assert set(self.seen.values()) == {1}
        assert self.disorder == 0


def patient(configuration: str = "full") -> Channel:
    return builder(configuration).consumers(capacity=50, overflow=Block("60 s")).done()


@pytest.mark.parametrize("seed", range(3))
def test_swapping_the_strategy_under_load_loses_and_doubles_nothing(seed: int) -> None:
    channel, tallies = patient(), [Tally(), Tally()]
    for number, tally in enumerate(tallies):
        channel.consumers.connect(f"c{number}", tally, "Notify", priority=number)

    def swap(chance: random.Random) -> None:
        channel.dispatch_by(chance.choice(["reactive", "pool"]), threads=chance.randint(1, 4))

    under_load(channel, swap, seed)

    for tally in tallies:
        tally.check()
    channel.close()


@pytest.mark.parametrize("seed", range(2))
def test_resizing_the_pool_under_load_loses_and_doubles_nothing(seed: int) -> None:
    channel, tally = patient(), Tally()
    channel.consumers.connect("one", tally, "Notify")

    under_load(
        channel, lambda chance: channel.dispatch_by("pool", threads=chance.randint(1, 8)), seed
    )

    tally.check()
    channel.close()


def test_the_pool_has_as_many_threads_as_it_was_last_told() -> None:
    before = set(threading.enumerate())

    def threads() -> int:
        return sum(each.name == "ensue-pool" for each in set(threading.enumerate()) - before)

    channel = patient()
    channel.dispatch_by("pool", threads=6)
    assert threads() == 6
    channel.dispatch_by("pool", threads=1)
    assert eventually(lambda: threads() == 1)
    channel.close()
    assert eventually(lambda: threads() == 0)


FILTERS: tuple[Any, ...] = (
    "Notify",
    want(source="test"),
    want("Notify", where="count >= 0"),
    want("Notify", where=lambda each: each.data["count"] >= 0),
    any_of("Notify", "Other"),
    None,
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("strategy", ["reactive", "pool"])
def test_changing_a_filter_under_load_loses_and_doubles_nothing(strategy: str, seed: int) -> None:
    channel, tally = patient(), Tally()
    channel.dispatch_by(strategy, threads=2)
    consumer = channel.consumers.connect("one", tally, "Notify")

    under_load(channel, lambda chance: consumer.change(chance.choice(FILTERS)), seed)

    tally.check()
    channel.close()


FORWARDING = [
    ensue.parse(f"""
eventtype Notify {{ attribute long supplier; attribute long count; }};
Notify correlation {name} (Notify a) l:a {{ case l: push a; }}
""")
    for name in ("Forward", "Again")
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("strategy", ["reactive", "pool"])
def test_swapping_a_correlation_under_load_loses_and_doubles_nothing(
    strategy: str, seed: int
) -> None:
    channel, tally = patient(), Tally()
    channel.dispatch_by(strategy, threads=2)
    choices = [correlated(library) for library in FORWARDING]
    consumer = channel.consumers.connect("one", tally, choices[0])

    under_load(channel, lambda chance: consumer.change(chance.choice(choices)), seed)

    tally.check()
    channel.close()


def test_a_correlation_that_is_swapped_out_still_reads_what_waited_for_it() -> None:
    channel, got = builder("full").dispatching("pool", threads=1).done(), empty()
    consumer = channel.consumers.connect(
        "one", lambda each: got.append(each.id), correlated(LIBRARY, "Both", lateness="10 s")
    )
    channel.push(event("DataNotify", at=1, SourceID=1, Value=1.0))
    channel.push(event("Other", at=2))
    assert channel.settle()
    assert got == []

    consumer.change("Other")
    assert channel.settle()

    assert len(got) == 1
    assert got[0].startswith("Both:")
    channel.close()


def test_swapping_between_threads_and_a_loop_under_load_loses_and_doubles_nothing() -> None:
    async def main() -> None:
        channel, tally = patient(), Tally()
        channel.consumers.connect("one", tally, "Notify", capacity=100_000)
        chance, changes = random.Random(1), Changes()
        threads = suppliers_of(channel, SUPPLIERS, EVENTS, changes.keep_up)
        while any(thread.is_alive() for thread in threads):
            channel.dispatch_by(chance.choice(["reactive", "pool", "asyncio"]), threads=2)
            changes.note()
            await asyncio.sleep(0.001)
        closing = await channel.aclose()

        assert closing.drained
        changes.check()
        tally.check()

    asyncio.run(main())


def test_a_strategy_that_cannot_await_is_refused_while_a_consumer_is_a_coroutine() -> None:
    async def receive(_: Event) -> None: ...

    async def main() -> None:
        channel = builder("full").dispatching("asyncio").done()
        channel.consumers.connect("waiting", receive)
        with pytest.raises(UsageError, match="`waiting` is a coroutine"):
            channel.dispatch_by("pool")
        await channel.aclose()

    asyncio.run(main())


def test_promises_can_be_changed_while_events_flow() -> None:
    channel, order = builder().done(), empty()
    for name in ("a", "b"):
        channel.consumers.connect(name, noting(order, name))
    channel.push(event())
    channel.consumers["b"].require(priority=5)
    channel.push(event())

    assert order == ["a", "b", "b", "a"]


def test_a_consumer_gets_nothing_that_only_its_former_wants_would_have_found() -> None:
    channel, got = builder().done(), empty()
    consumer = channel.consumers.connect("one", lambda each: got.append(each.type), "Notify")
    found = channel.lookup.find(event("Notify"))
    consumer.change("Other")

    # As a supplier would that looked it up just before the change.
    for receiver in found:
        receiver.offer(event("Notify"))
    channel.push(event("Other"))

    assert got == ["Other"]


def test_counts_of_consumers_that_have_left_are_kept() -> None:
    channel = builder().done()
    consumer = channel.consumers.connect("one", lambda _: None, "Notify")
    channel.push(event())
    consumer.disconnect()

    assert channel.figures().delivered == 1


@pytest.mark.parametrize(("priority", "order"), [(9, ["moved", "other"]), (1, ["other", "moved"])])
def test_what_waits_moves_in_line_when_its_consumers_priority_changes(
    priority: int, order: list[str]
) -> None:
    channel = builder("full").dispatching("pool", threads=1).done()
    called = empty()
    moved = channel.consumers.connect("moved", noting(called, "moved"), "Notify", priority=5)
    channel.consumers.connect("other", noting(called, "other"), "Notify", priority=5)
    with held(channel):
        channel.push(event())
        channel.push(event())
        moved.require(priority=priority)

    assert called == [order[0]] * 2 + [order[1]] * 2
    channel.close()


def test_filtering_and_correlation_come_and_go_while_events_flow() -> None:
    """Consumers of everything miss nothing, whichever look-up an event meets."""
    channel = builder("dispatching").dispatching("pool", threads=2).done()
    got = [Counter[str](), Counter[str]()]
    channel.consumers.connect("one", lambda each: got[0].update([each.id]))
    channel.consumers.connect("two", lambda each: got[1].update([each.id]))
    wanted = empty()

    def change(chance: random.Random) -> None:
        channel.reconfigure(filtering=True, correlation=chance.random() < 0.5)
        some = channel.consumers.connect("some", wanted.append, want("Notify", where="n > 5"))
        with pytest.raises(UsageError, match="filtering cannot be taken away: what `some` want"):
            channel.reconfigure(filtering=False, correlation=False)
        some.disconnect()
        channel.reconfigure(filtering=False, correlation=False)

    under_load(channel, change, 1)
    figures = channel.figures()
    channel.close()

    assert all(set(each.values()) == {1} for each in got)
    assert [len(each) for each in got] == [figures.published, figures.published]


def test_a_part_that_wants_need_stays_and_what_needs_it_is_named() -> None:
    channel = builder("full").done()
    channel.consumers.connect("pairs", noting(empty(), 1), correlated(LIBRARY, "Both"))

    with pytest.raises(UsageError, match="correlation cannot be taken away: what `pairs` want"):
        channel.reconfigure(correlation=False)
    with pytest.raises(UsageError, match="correlation needs filtering"):
        channel.reconfigure(filtering=False)
    channel.consumers["pairs"].disconnect()
    channel.reconfigure(correlation=False)
    with pytest.raises(UsageError, match="without correlation"):
        channel.consumers.connect("pairs", noting(empty(), 1), correlated(LIBRARY, "Both"))
    channel.close()

"""The contract of a dispatching strategy, as a class of tests.

    from ensue.testing.dispatching import DispatchingContract

    class TestMine(DispatchingContract):
        def strategy(self):
            return Mine()

pytest runs what the three strategies of Ensue pass as well: every event reaches every consumer that
wants it once and in order, a consumer has one turn at a time, failures stay with their consumer,
full queues make suppliers wait, a strategy can be replaced while events flow, and closing leaves
nothing behind. In which order different consumers get their turns is the strategy's own affair,
unless `goes_by_priority` is true.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, ClassVar

from ensue.channel import Block, Channel, Dispatcher, DropNewest, build
from ensue.events.event import Event

PATIENCE_SECONDS = 60.0

_ids = count(1)


def _event(type_: str = "Notify", **data: Any) -> Event:
    return Event(f"e{next(_ids)}", "contract", type_, 0, data)


def _eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


class DispatchingContract:
    """Tests that every strategy passes."""

    goes_by_priority: ClassVar[bool] = False
    """Whether of several consumers that are ready the one of the highest priority goes first."""
    has_one_thread: ClassVar[bool] = False
    """Whether all turns are given in one thread, so that a held consumer holds up all others."""

    def strategy(self) -> Dispatcher:
        """A new strategy for one channel."""
        raise NotImplementedError

    @contextmanager
    def channel(self) -> Iterator[Channel]:
        """A channel that dispatches by a new strategy."""
        made = build("full").dispatching(self.strategy()).done()
        try:
            yield made
        finally:
            made.close()

    def test_every_event_reaches_every_consumer_once_and_in_order(self) -> None:
        got: dict[str, list[int]] = {name: [] for name in ("one", "two", "three")}
        with self.channel() as channel:
            for name, numbers in got.items():
                channel.consumers.connect(name, _noting(numbers), "Notify", priority=len(name))
            for number in range(2_000):
                channel.push(_event(n=number))
            assert channel.settle("60 s")

        for numbers in got.values():
            assert numbers == list(range(2_000))

    def test_a_consumer_has_one_turn_at_a_time_whoever_supplies(self) -> None:
        inside, overlaps, numbers = [0], [0], Counter[tuple[int, int]]()
        last = [-1] * 4
        disorder = [0]

        def consume(event: Event) -> None:
            inside[0] += 1
            overlaps[0] += inside[0] > 1
            supplier, number = event.data["supplier"], event.data["n"]
            disorder[0] += number <= last[supplier]
            last[supplier] = number
            numbers[supplier, number] += 1
            time.sleep(0)
            inside[0] -= 1

        def supply(supplier: int) -> None:
            for number in range(500):
                channel.push(_event(supplier=supplier, n=number))

        with self.channel() as channel:
            channel.consumers.connect("serial", consume, "Notify")
            suppliers = [threading.Thread(target=supply, args=(each,)) for each in range(4)]
            for each in suppliers:
                each.start()
            for each in suppliers:
                each.join()
            assert channel.settle("60 s")

        assert overlaps == [0]
        assert disorder == [0]
        assert set(numbers.values()) == {1}
        assert len(numbers) == 2_000

    def test_a_failure_stays_with_its_consumer(self) -> None:
        got: list[int] = []

        def fail(event: Event) -> None:
            raise ValueError(event.data["n"])

        with self.channel() as channel:
            channel.consumers.connect("failing", fail, "Notify", failures=None, priority=9)
            channel.consumers.connect("well", _noting(got), "Notify")
            for number in range(50):
                channel.push(_event(n=number))
            assert channel.settle("60 s")
            figures = channel.figures().consumers

        assert got == list(range(50))
        assert figures["failing"].failures == 50
        assert figures["well"].failures == 0

    def test_what_a_consumer_pushes_in_its_turn_is_dispatched_too(self) -> None:
        last: list[int] = []

        def count_down(event: Event) -> None:
            last.append(event.data["n"])
            assert in_turn()
            if event.data["n"]:
                channel.push(_event("Count", n=event.data["n"] - 1))

        dispatcher = self.strategy()
        in_turn = dispatcher.is_in_turn
        channel = build("full").dispatching(dispatcher).done()
        channel.consumers.connect("counting", count_down, "Count", failures=None)
        channel.push(_event("Count", n=3_000))
        assert channel.settle("60 s")
        assert not in_turn()
        assert channel.figures().consumers["counting"].failures == 0
        channel.close()

        assert last == list(range(3_000, -1, -1))

    def test_a_full_queue_makes_its_supplier_wait_and_loses_nothing(self) -> None:
        got: list[int] = []

        def slowly(event: Event) -> None:
            time.sleep(0.0005)
            got.append(event.data["n"])

        with self.channel() as channel:
            channel.consumers.connect("slow", slowly, "Notify", capacity=3, overflow=Block("60 s"))
            for number in range(200):
                channel.push(_event(n=number))
            assert channel.settle("60 s")
            dropped = channel.figures().dropped

        assert got == list(range(200))
        assert dropped == {}

    def test_what_finds_no_room_is_counted(self) -> None:
        with self.channel() as channel, self._held(channel) as go_on:
            got: list[int] = []
            channel.consumers.connect(
                "small", _noting(got), "Notify", capacity=2, overflow=DropNewest()
            )
            for number in range(10):
                channel.push(_event(n=number))
            go_on.set()
            assert channel.settle("60 s")
            figures = channel.figures().consumers["small"]

        assert len(got) + sum(figures.dropped.values()) == figures.wanted == 10
        assert got == sorted(got)

    def test_more_urgent_consumers_go_first(self) -> None:
        if not self.goes_by_priority:
            return
        called: list[str] = []
        with self.channel() as channel, self._held(channel) as go_on:
            for name, priority in (("c", 1), ("d", 0), ("a", 5), ("b", 3)):
                channel.consumers.connect(name, _naming(called, name), "Notify", priority=priority)
            channel.push(_event())
            go_on.set()
            assert channel.settle("60 s")

        if self.has_one_thread:
            assert called == ["a", "b", "c", "d"]
        assert set(called) == {"a", "b", "c", "d"}

    def test_a_strategy_is_replaced_while_events_flow(self) -> None:
        got = Counter[int]()
        is_over = threading.Event()
        pushed = [0]

        def supply() -> None:
            while not is_over.is_set():
                channel.push(_event(n=pushed[0]))
                pushed[0] += 1
                if pushed[0] % 200 == 0:
                    channel.settle("60 s")

        with self.channel() as channel:
            channel.consumers.connect("one", lambda each: got.update([each.data["n"]]), "Notify")
            supplier = threading.Thread(target=supply)
            supplier.start()
            for strategy in ("pool", self.strategy(), "reactive", self.strategy()):
                reached = pushed[0] + 100
                assert _eventually(lambda reached=reached: pushed[0] > reached)  # type: ignore[misc]
                channel.dispatch_by(strategy, threads=2)
            is_over.set()
            supplier.join()
            assert channel.settle("60 s")

        assert got == Counter(range(pushed[0]))

    def test_closing_calls_with_what_waits_and_leaves_no_thread(self) -> None:
        before = set(threading.enumerate())
        got: list[int] = []
        with self.channel() as channel:
            channel.consumers.connect("one", _noting(got), "Notify")
            for number in range(300):
                channel.push(_event(n=number))
            assert channel.close(within="60 s").drained

        assert got == list(range(300))
        assert _eventually(lambda: set(threading.enumerate()) <= before | self.lasting_threads())

    def lasting_threads(self) -> set[threading.Thread]:
        """Threads that a strategy may leave behind, as those of a loop that it was given."""
        return set()

    @contextmanager
    def _held(self, channel: Channel) -> Iterator[threading.Event]:
        """Keep one consumer in its turn until the event is set.

        A strategy that calls consumers in the thread of the supplier holds that one up.
        """
        begun, go_on = threading.Event(), threading.Event()

        def hold(_: Event) -> None:
            begun.set()
            go_on.wait(PATIENCE_SECONDS)

        channel.consumers.connect("holder", hold, "Hold", priority=1_000)
        supplier = threading.Thread(target=channel.push, args=(_event("Hold"),))
        supplier.start()
        assert begun.wait(PATIENCE_SECONDS)
        try:
            yield go_on
        finally:
            go_on.set()
            supplier.join()


def _noting(into: list[int]) -> Callable[[Event], None]:
    return lambda event: into.append(event.data["n"])


def _naming(into: list[str], name: str) -> Callable[[Event], None]:
    return lambda _: into.append(name)

"""The strategies that come along keep the contract that strategies of users keep."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator, Sequence

import pytest

from ensue.channel import Dispatcher, Receiver, build, offered
from ensue.channel.delivery.receiver import ChannelContext
from ensue.channel.dispatch.asyncio_loop import AsyncioDispatcher
from ensue.channel.dispatch.pool import ThreadPool
from ensue.channel.dispatch.reactive import ReactiveDispatcher
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.testing.dispatching import DispatchingContract
from tests.channel.making import empty, event


class TestReactive(DispatchingContract):
    goes_by_priority = True

    def strategy(self) -> Dispatcher:
        return ReactiveDispatcher()


class TestPool(DispatchingContract):
    goes_by_priority = True

    def strategy(self) -> Dispatcher:
        return ThreadPool(3)


class TestPoolOfOne(DispatchingContract):
    goes_by_priority = True
    has_one_thread = True

    def strategy(self) -> Dispatcher:
        return ThreadPool(1)


class TestAsyncio(DispatchingContract):
    goes_by_priority = True
    has_one_thread = True

    @pytest.fixture(autouse=True)
    def loop_in_a_thread(self) -> Iterator[None]:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        yield
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def strategy(self) -> Dispatcher:
        return AsyncioDispatcher(self.loop)

    def lasting_threads(self) -> set[threading.Thread]:
        return {self.thread}


class FirstCome:
    """A strategy of a user: one thread, consumers in the order in which they have work."""

    def __init__(self) -> None:
        self._ready: queue.SimpleQueue[Receiver | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_stopped = False
        self._successor: Dispatcher | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, context: ChannelContext) -> None:  # noqa: ARG002
        self._thread.start()

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        ready, full = offered(event, receivers)
        for each in ready:
            self.ready(each)
        return full

    def ready(self, receiver: Receiver) -> None:
        with self._lock:
            if not self._is_stopped:
                self._ready.put(receiver)
                return
        if self._successor is not None:
            self._successor.ready(receiver)

    def is_in_turn(self) -> bool:
        return threading.current_thread() is self._thread

    def may_wait(self) -> bool:
        return not self.is_in_turn()

    def stop(self, successor: Dispatcher | None) -> None:
        with self._lock:
            self._is_stopped, self._successor = True, successor
        self._ready.put(None)

    def _run(self) -> None:
        while (receiver := self._ready.get()) is not None:
            if receiver.turn():
                self.ready(receiver)


class TestOfAUser(DispatchingContract):
    has_one_thread = True

    def strategy(self) -> Dispatcher:
        return FirstCome()


def test_a_channel_takes_a_strategy_or_its_class_and_is_called_by_its_name() -> None:
    got = empty()
    with build("full").dispatching(FirstCome).done() as channel:
        channel.consumers.connect("one", got.append)
        channel.push(event())
        assert channel.settle()
        assert channel.strategy == "FirstCome"

    assert len(got) == 1


def test_what_is_no_strategy_is_refused_with_what_it_lacks() -> None:
    class Half:
        def start(self, context: object) -> None: ...

        def ready(self, receiver: object) -> None: ...

    with pytest.raises(
        UsageError, match="`Half` is no dispatching strategy: it lacks `spread`, `is_in_turn`, "
    ):
        build("full").dispatching(Half()).done()  # type: ignore[arg-type]

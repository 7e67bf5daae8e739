"""A channel in asyncio: waiting for room, for events and for the end without holding up the loop.

There is one implementation of queues and policies, in `receivers`; here it is only waited for, by a
future that a receiver's thread wakes. `Subscription` is the other way round of a consumer: its
events are pulled, by `for` in a thread or by `async for` in a coroutine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Self

from ensue.channel.consumers import Consumer
from ensue.channel.delivery.async_waiting import woken
from ensue.channel.delivery.receiver import Receiver
from ensue.channel.timing.clock import DurationLike, microseconds_in
from ensue.events.event import Event


async def settled(is_settled: Callable[[], bool], within: DurationLike) -> bool:
    """Look again and again, up to a time, whether a channel has nothing to do. False if it has."""
    deadline = time.monotonic() + microseconds_in(within) / 1_000_000
    while not is_settled():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(0.001)
    return True


class Subscription:
    """Events of a channel to iterate over, until it is closed or the channel is."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer

    def take(self, within: DurationLike | None = None) -> Event | None:
        """The next event; None if none comes in time, or ever."""
        receiver = self.consumer.receiver
        seconds = None if within is None else microseconds_in(within) / 1_000_000
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            event = receiver.take()
            if event is not None or self._is_over(receiver):
                return event
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return None
            receiver.wait_for_event(left)

    def take_all(self) -> list[Event]:
        """What waits now, without waiting for more."""
        receiver = self.consumer.receiver
        return list(iter(receiver.take, None))

    def close(self) -> None:
        self.consumer.disconnect()

    def __iter__(self) -> Iterator[Event]:
        while (event := self.take()) is not None:
            yield event

    def __aiter__(self) -> Self:
        # No generator: that would be over after a wait that was cancelled.
        return self

    async def __anext__(self) -> Event:
        receiver = self.consumer.receiver
        while True:
            event = receiver.take()
            if event is not None:
                return event
            if self._is_over(receiver):
                raise StopAsyncIteration
            await woken(receiver, receiver.when_event, None)

    @staticmethod
    def _is_over(receiver: Receiver) -> bool:
        return receiver.state in ("disconnected", "finished")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

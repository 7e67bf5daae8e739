"""Subscriptions, and waiting for a channel from a coroutine without blocking its event loop.

A `Subscription` pulls events, by `for` in a thread or by `async for` in a coroutine. Its queue and
overflow policy are those of any consumer (`delivery`).
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
    """Poll whether a channel has no work left. False if it still has some when time runs out."""
    deadline = time.monotonic() + microseconds_in(within) / 1_000_000
    while not is_settled():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(0.001)
    return True


class Subscription:
    """Events to iterate over, until the subscription or its channel is closed."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer

    def take(self, within: DurationLike | None = None) -> Event | None:
        """The next event; None if none comes in time, or the subscription has ended."""
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
        """The events that wait now."""
        receiver = self.consumer.receiver
        return list(iter(receiver.take, None))

    def close(self) -> None:
        self.consumer.disconnect()

    def __iter__(self) -> Iterator[Event]:
        while (event := self.take()) is not None:
            yield event

    def __aiter__(self) -> Self:
        # Not a generator, which would end with the first cancelled wait.
        return self

    async def __anext__(self) -> Event:
        receiver = self.consumer.receiver
        while True:
            event = receiver.take()
            if event is not None:
                return event
            if self._is_over(receiver):
                raise StopAsyncIteration
            await woken(receiver.when_event, receiver.cancel_wake, None)

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

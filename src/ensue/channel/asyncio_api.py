"""A channel in asyncio: waiting for room, for events and for the end without holding up the loop.

There is one implementation of queues and policies, in `receivers`; here it is only waited for, by a
future that a receiver's thread wakes. `Subscription` is the other way round of a consumer: its
events are pulled, by `for` in a thread or by `async for` in a coroutine.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from ensue.channel.consumers import Consumer
from ensue.channel.delivery.receiver import Receiver
from ensue.channel.timing.clock import DurationLike, microseconds_in
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.channel import Channel
    from ensue.channel.links.federation import Federation


async def offer_all(event: Event, full: Sequence[Receiver]) -> None:
    """Wait for room at each receiver, as long as its policy says."""
    waiting = deque(full)
    try:
        while waiting:
            receiver = waiting[0]
            deadline = time.monotonic() + receiver.patience
            while not receiver.offer(event):
                left = deadline - time.monotonic()
                if left <= 0 or not await _woken(receiver, receiver.when_room, left):
                    if not receiver.offer(event):
                        receiver.give_up(event)
                    break
            waiting.popleft()
    except asyncio.CancelledError:
        # Nobody will offer it again to those that had no room so far.
        for each in waiting:
            each.give_up(event)
        raise


async def settle(channel: Channel, within: DurationLike) -> bool:
    deadline = time.monotonic() + microseconds_in(within) / 1_000_000
    while not channel.is_settled():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(0.001)
    return True


async def leave(federation: Federation, deadline: float) -> bool:
    """Let links send what they still have, in another thread. Whether they could in time."""
    return await asyncio.to_thread(federation.close, deadline)


async def _woken(
    receiver: Receiver, tell_me: Callable[[Callable[[], None]], None], seconds: float | None
) -> bool:
    """Wait until a receiver calls back, from whichever thread. False if time ran out."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    def wake_from_any_thread() -> None:
        # Where the loop has ended, nobody waits there either.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(wake)

    tell_me(wake_from_any_thread)
    try:
        await asyncio.wait_for(future, seconds)
    except TimeoutError:
        return False
    finally:
        receiver.forget(wake_from_any_thread)
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
            await _woken(receiver, receiver.when_event, None)

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

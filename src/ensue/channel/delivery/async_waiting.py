"""Coroutines that wait at a receiver, for room or for events, without blocking their event loop.

The receiver calls back from the thread that makes room or brings an event, and the callback sets a
future of the waiting loop. Waiting threads are handled in `mailbox`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from ensue.channel.delivery.receiver import Receiver
from ensue.events.event import Event


async def offer_all(event: Event, full: Sequence[Receiver]) -> None:
    """Wait for room in each full queue, as long as its overflow policy says."""
    waiting = deque(full)
    try:
        while waiting:
            receiver = waiting[0]
            deadline = time.monotonic() + receiver.block_seconds
            while not receiver.offer(event):
                left = deadline - time.monotonic()
                if left <= 0 or not await woken(receiver, receiver.when_room, left):
                    if not receiver.offer(event):
                        receiver.drop_blocked(event)
                    break
            waiting.popleft()
    except asyncio.CancelledError:
        # The event will not be offered again to the receivers that are left.
        for each in waiting:
            each.drop_blocked(event)
        raise


async def woken(
    receiver: Receiver, register: Callable[[Callable[[], None]], None], seconds: float | None
) -> bool:
    """Wait until the receiver calls back, from any thread. False if time ran out."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    def wake_from_any_thread() -> None:
        # The loop has been closed, and nothing waits on it any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(wake)

    register(wake_from_any_thread)
    try:
        await asyncio.wait_for(future, seconds)
    except TimeoutError:
        return False
    finally:
        receiver.cancel_wake(wake_from_any_thread)
    return True

"""Coroutines that wait for room or for events without blocking their event loop.

A coroutine registers a callback with the queue or link. The thread that makes room or brings an
event calls it, and the callback sets a future of the waiting loop. Threads wait in `blocked` and in
`mailbox`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from ensue.channel.delivery.blocked import Blocked
from ensue.channel.delivery.waiters import Wake


async def wait_all(blocked: Iterable[Blocked]) -> None:
    """Wait until each event has room, or the time of its overflow policy is over."""
    loop, left = asyncio.get_running_loop(), deque(blocked)
    try:
        while left:
            one = left[0]
            deadline = loop.time() + one.block_seconds
            while not one.retry():
                seconds = deadline - loop.time()
                if seconds <= 0 or not await woken(one.when_room, one.cancel_wake, seconds):
                    if not one.retry():
                        one.give_up()
                    break
            left.popleft()
    except asyncio.CancelledError:
        # The supplier will not offer the event again.
        for each in left:
            each.give_up()
        raise


async def woken(
    register: Callable[[Wake], None], cancel: Callable[[Wake], None], seconds: float | None
) -> bool:
    """Wait until a registered callback is called, from any thread. False if time ran out."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    def wake_from_any_thread() -> None:
        # The loop may have been closed; then no coroutine waits on it any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(wake)

    register(wake_from_any_thread)
    try:
        await asyncio.wait_for(future, seconds)
    except TimeoutError:
        return False
    finally:
        cancel(wake_from_any_thread)
    return True

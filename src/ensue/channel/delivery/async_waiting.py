"""Coroutines that wait at a receiver, for room or for events, without holding up their loop.

A receiver calls back from whichever thread makes room or brings an event; the call sets a future of
the loop that waits. Threads wait in `receiver` instead.
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
    """Wait for room at each receiver, as long as its policy says."""
    waiting = deque(full)
    try:
        while waiting:
            receiver = waiting[0]
            deadline = time.monotonic() + receiver.patience
            while not receiver.offer(event):
                left = deadline - time.monotonic()
                if left <= 0 or not await woken(receiver, receiver.when_room, left):
                    if not receiver.offer(event):
                        receiver.give_up(event)
                    break
            waiting.popleft()
    except asyncio.CancelledError:
        # Nobody will offer it again to those that had no room so far.
        for each in waiting:
            each.give_up(event)
        raise


async def woken(
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

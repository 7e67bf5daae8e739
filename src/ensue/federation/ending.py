"""Ends tasks: each is cancelled until it has ended.

A library may swallow a cancellation that comes in the moment in which what it waits for is there;
its task then goes on as if nothing had been said. So it is said again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

_SECONDS_BETWEEN = 0.5


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for them, whatever they end with."""
    waiting = list(tasks)
    while waiting:
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting, timeout=_SECONDS_BETWEEN)
        for each in waiting:
            # asyncio would log an exception that is never retrieved.
            if each.done() and not each.cancelled():
                each.exception()
        waiting = [each for each in waiting if not each.done()]

"""What a driver hands over by callbacks, in lists for those who wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_CONTROL = 5_000
MOST_CONTROL_BYTES = 32 * 1024 * 1024
"""What control messages of one service may wait."""


class Inbox(Generic[T]):
    """`put` from callbacks of the loop, `take` from one task. `fail` ends the waiting."""

    def __init__(self, limit: int = 1000) -> None:
        self._items: deque[T] = deque()
        self._limit = limit
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._error: BaseException | None = None

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_failed(self) -> bool:
        return self._error is not None

    def put(self, item: T) -> None:
        self._items.append(item)
        self._filled.set()

    async def put_when_free(self, item: T) -> None:
        """Wait until there is room: the driver then stops reading, and the service waits."""
        while len(self._items) >= self._limit and self._error is None:
            self._emptied.clear()
            await self._emptied.wait()
        self.put(item)

    def drain(self) -> list[T]:
        """Everything that waits."""
        taken = list(self._items)
        self._items.clear()
        self._emptied.set()
        return taken

    def fail(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        self._filled.set()
        self._emptied.set()

    async def take(self, most: int = 500) -> list[T]:
        """At least one item. Raises what `fail` was given, once nothing is left."""
        while not self._items:
            if self._error is not None:
                raise self._error
            self._filled.clear()
            await self._filled.wait()
        taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
        self._emptied.set()
        return taken


class ControlInbox(Inbox[bytes]):
    """Control messages, which any client of a service can send as fast as it likes.

    What finds no room is let go: gateways say everything again, and clients ask again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._bytes = 0

    def put(self, item: bytes) -> None:
        if len(self) < MOST_CONTROL and self._bytes + len(item) <= MOST_CONTROL_BYTES:
            self._bytes += len(item)
            super().put(item)

    async def take(self, most: int = 500) -> list[bytes]:
        taken = await super().take(most)
        self._bytes -= sum(map(len, taken))
        return taken

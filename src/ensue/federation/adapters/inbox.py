"""Messages that a driver hands over by callbacks, in lists for waiting coroutines."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from ensue.errors import LinkError
from ensue.federation.limits import limits

T = TypeVar("T")

MOST_CONTROL = 5_000
MOST_CONTROL_BYTES = 32 * 1024 * 1024
"""What control messages of one service may wait."""


class Inbox(Generic[T]):
    """`put` from callbacks of the loop, `take` from one task. `fail` ends the waiting."""

    def __init__(self, limit: int = 1000) -> None:
        self._items: deque[T] = deque()
        self._bytes = 0
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
        self._bytes += _size(item)
        self._filled.set()

    def put_or_fail(self, item: T, service: str, becomes: str = "some are lost") -> None:
        """For a driver that cannot wait: no room is a broken link, and this becomes of the rest."""
        if self._error is not None:
            # Behind what was let go nothing may come: its acknowledgement could cover that, too.
            return
        if (
            len(self._items) < limits().without_waiting
            and self._bytes <= 4 * limits().waiting_bytes
        ):
            self.put(item)
        else:
            self.fail(
                LinkError(
                    f"service `{service}`: events come faster than they can be passed on, and"
                    f" {becomes}"
                )
            )

    async def put_when_free(self, item: T) -> None:
        """Wait until there is room: the driver then stops reading, and the service waits."""
        while self._is_full and self._error is None:
            self._emptied.clear()
            await self._emptied.wait()
        self.put(item)

    @property
    def _is_full(self) -> bool:
        return len(self._items) >= self._limit or self._bytes > limits().waiting_bytes

    def waiting(self) -> list[T]:
        """Everything that waits; it goes on waiting."""
        return list(self._items)

    def drain(self) -> list[T]:
        """Everything that waits."""
        taken = list(self._items)
        self._items.clear()
        self._bytes = 0
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
        self._bytes -= sum(map(_size, taken))
        self._emptied.set()
        return taken


class ControlInbox(Inbox[bytes]):
    """Control messages, which any client of a service can send as fast as it likes.

    What finds no room is let go: gateways say everything again, and clients ask again.
    """

    def put(self, item: bytes) -> None:
        if len(self) < MOST_CONTROL and self._bytes + len(item) <= MOST_CONTROL_BYTES:
            super().put(item)


def _size(item: object) -> int:
    return len(item) if isinstance(item, bytes) else getattr(item, "size", 0)

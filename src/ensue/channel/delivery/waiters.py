"""Those who wait at a receiver: suppliers for room, and whoever pulls for events.

Threads wait on a condition over the receiver's own lock; coroutines leave something to call. Both
are woken together and look for themselves whether what they wait for has come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

Wake = Callable[[], None]


class Waiting:
    """The lock is the receiver's, and is held whenever one of these is called."""

    def __init__(self, lock: threading.Lock) -> None:
        self._changed = threading.Condition(lock)
        self._wakers: list[Wake] = []

    def wait(self, seconds: float | None) -> None:
        self._changed.wait(seconds)

    def add(self, wake: Wake) -> None:
        """Have something called once, the next time that everybody is woken."""
        self._wakers.append(wake)

    def remove(self, wake: Wake) -> None:
        if wake in self._wakers:
            self._wakers.remove(wake)

    def wake_all(self) -> None:
        self._changed.notify_all()
        if self._wakers:
            wakers, self._wakers = self._wakers, []
            for wake in wakers:
                wake()

"""Threads and coroutines that wait at a mailbox: suppliers for room, subscribers for events.

Threads wait on a condition over the mailbox's lock; coroutines register a callback. A change of the
mailbox wakes all of them, and each checks for itself whether it can go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

Wake = Callable[[], None]


class Waiters:
    """Every method is called with the mailbox's lock held."""

    def __init__(self, lock: threading.Lock) -> None:
        self._changed = threading.Condition(lock)
        self._wakers: list[Wake] = []

    def wait(self, seconds: float | None) -> None:
        self._changed.wait(seconds)

    def add(self, wake: Wake) -> None:
        """Call `wake` once, at the next change."""
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

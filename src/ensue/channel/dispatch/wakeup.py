"""Where a thread of a pool sleeps until somebody brings work.

Whoever wakes it holds the interpreter, and a woken thread can do nothing before it has that. A lock
is released with the interpreter in hand: the sleeper wakes, finds it taken, sleeps again, and is
woken a second time when the waker is done. Writing to an event counter of the system lets go of the
interpreter for the moment of the write, so that the sleeper, if the system lets it go first, calls
its consumer at once. Where there are no such counters, a lock does. What is to be done when awake
is the pool's business.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

COUNTER_BYTES = 8


class Bed(Protocol):
    """For one thread. Each `wake` ends one `sleep`, also one that has not begun."""

    def sleep(self) -> None: ...

    def wake(self) -> None: ...

    def close(self) -> None: ...


class CounterBed:
    def __init__(self) -> None:
        self._counter = os.eventfd(0)

    def sleep(self) -> None:
        # Not `os.eventfd_read`: a signal would end that with an exception.
        os.read(self._counter, COUNTER_BYTES)

    def wake(self) -> None:
        os.eventfd_write(self._counter, 1)

    def close(self) -> None:
        os.close(self._counter)


class LockBed:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def sleep(self) -> None:
        self._lock.acquire()

    def wake(self) -> None:
        self._lock.release()

    def close(self) -> None:
        """There is nothing to give back."""


def new_bed() -> Bed:
    if hasattr(os, "eventfd"):
        try:
            return CounterBed()
        except OSError:
            # The process has no more descriptors to give away.
            return LockBed()
    return LockBed()

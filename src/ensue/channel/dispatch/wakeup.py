"""Sleepers: a thread of a pool sleeps on one until another thread wakes it.

A woken thread needs the interpreter lock, which the waking thread holds. With a plain lock the
sleeping thread wakes up, finds the interpreter lock taken, and sleeps a second time. Writing to an
`eventfd` releases the interpreter lock during the system call, so that the woken thread can run at
once if the system schedules it first. A system without `eventfd` uses a lock.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

COUNTER_BYTES = 8


class Sleeper(Protocol):
    """Belongs to one thread. Each `wake` ends one `sleep`, also one that has not begun."""

    def sleep(self) -> None: ...

    def wake(self) -> None: ...

    def close(self) -> None: ...


class EventFdSleeper:
    def __init__(self) -> None:
        self._counter = os.eventfd(0)

    def sleep(self) -> None:
        # Not `os.eventfd_read`, which a signal ends with an exception.
        os.read(self._counter, COUNTER_BYTES)

    def wake(self) -> None:
        os.eventfd_write(self._counter, 1)

    def close(self) -> None:
        os.close(self._counter)


class LockSleeper:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def sleep(self) -> None:
        self._lock.acquire()

    def wake(self) -> None:
        self._lock.release()

    def close(self) -> None:
        """A lock holds no resource of the system."""


def new_sleeper() -> Sleeper:
    if hasattr(os, "eventfd"):
        try:
            return EventFdSleeper()
        except OSError:
            # The process has no file descriptor left.
            return LockSleeper()
    return LockSleeper()

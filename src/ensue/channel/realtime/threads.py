"""Priorities of a real-time channel's threads in the operating system.

Python runs one thread at a time and switches between threads evenly, whatever their urgency. So a
consumer that computes would share the interpreter with a more urgent consumer. Therefore:

- threads of a pool, of the clock and of the links join the system's real-time class. A pool thread
  has the priority of the consumer whose turn it runs; an idle one is ready at the highest priority.
  Turns of consumers with priority 0 run outside of the class: Linux withholds a processor from
  the class for a twentieth of every second if it is never free, so work that may fill a processor
  must not be in the class;
- these threads stay on one processor, since only there does the system's order decide which thread
  may ask for the interpreter: a more urgent turn then interrupts a less urgent one;
- a supplier's thread joins for the duration of a `with channel.in_real_time(...)` block.

The system has to allow it (on Linux, CAP_SYS_NICE or a limit for `rtprio`); otherwise priorities
are left as they are. Settings of the whole process are in `process`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from ensue.channel.realtime.process import PROCESS

IDLE_PRIORITY = 97
"""The priority of an idle pool thread and of the clock: above every consumer."""
HIGHEST_OF_CONSUMERS = 95
LEAST_NICE = -20
"""The nice value of a thread outside of the class, so that it soon releases the interpreter."""


class RealTimeThreads:
    """The thread priorities of one channel. Created by `builder` for `real_time=True`."""

    def __init__(self) -> None:
        self._thread = threading.local()
        self._processors = _last_processor()
        self._all_processors = os.sched_getaffinity(0) if self._processors else set()

    def begin(self) -> None:
        PROCESS.begin()

    def end(self) -> None:
        PROCESS.end()

    def idle(self) -> None:
        """Run a garbage collection that is due, since the calling thread is idle."""
        PROCESS.idle()

    def join(self) -> None:
        """Move the calling thread into the real-time class, if the system allows it."""
        self._thread.nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        self._thread.priority = (
            IDLE_PRIORITY if _join_class(IDLE_PRIORITY, self._processors) else None
        )
        if self._thread.priority is not None:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LEAST_NICE)

    def leave(self) -> None:
        """Move the calling thread out of the real-time class."""
        if self._thread.priority is not None:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.sched_setaffinity(0, self._all_processors)
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._thread.nice)
            self._thread.priority = None

    @contextmanager
    def joined(self, priority: int) -> Iterator[bool]:
        """Give the calling thread the priority of a consumer. Yields whether that was allowed."""
        if not self._processors:
            yield False
            return
        before = os.sched_getscheduler(0), os.sched_getparam(0), os.sched_getaffinity(0)
        is_in = _join_class(min(max(priority, 1), HIGHEST_OF_CONSUMERS), self._processors)
        try:
            yield is_in
        finally:
            if is_in:
                os.sched_setscheduler(0, *before[:2])
                os.sched_setaffinity(0, before[2])

    def stand_by(self) -> None:
        """Take the priority of an idle thread, before waiting for work."""
        self._set_priority(IDLE_PRIORITY)

    def run_at(self, priority: int) -> None:
        """Take the priority of a consumer, from 0 to 95."""
        self._set_priority(min(max(priority, 0), HIGHEST_OF_CONSUMERS))

    def _set_priority(self, priority: int) -> None:
        current = self._thread.priority
        if current is not None and current != priority:
            os.sched_setscheduler(0, *_policy_of(priority))
            self._thread.priority = priority


@cache
def _policy_of(priority: int) -> tuple[int, os.sched_param]:
    """The scheduling policy and parameter of a priority; cached, as it changes with every wake."""
    # Threads and processes that a consumer starts do not inherit the priority.
    policy = (os.SCHED_FIFO if priority else os.SCHED_OTHER) | os.SCHED_RESET_ON_FORK
    return policy, os.sched_param(priority)


def _last_processor() -> set[int]:
    """The last processor: on most systems the first one handles interrupts."""
    return {max(os.sched_getaffinity(0))} if hasattr(os, "sched_getaffinity") else set()


def _join_class(priority: int, processors: set[int]) -> bool:
    """Move the calling thread into the real-time class. Returns whether that was allowed."""
    if not hasattr(os, "sched_setscheduler"):
        return False
    try:
        os.sched_setscheduler(0, *_policy_of(priority))
        os.sched_setaffinity(0, processors)
    except OSError:
        return False
    return True


def is_permitted() -> bool:
    """Whether the system allows threads of this process in its real-time class."""
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(_join_class(1, _last_processor())))
    asking.start()
    asking.join()
    return answers == [True]

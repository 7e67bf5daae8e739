"""What threads of a channel in real time do so that its urgent consumers are on time.

Python runs one thread's code at a time, and hands over by turns, whoever is more urgent. Left to
that, a consumer that computes shares the interpreter evenly with one that matters more. So:

- threads of a pool, the clock and the links join the system's real-time class, and a thread of the
  pool is as urgent there as the consumer whose turn it has; one that waits for work is ready to be
  the most urgent. A consumer of priority 0 has its turn outside of that class, before all other
  programs: the system takes a processor from the class for a twentieth of every second if it is
  never free, so what may fill a processor must not be in it;
- they stay on one processor, for only there does the system's order decide who may even ask for the
  interpreter: a turn of a more urgent consumer cuts in on a less urgent one and is left alone;
- a thread of a supplier joins them for as long as it says, by `channel.in_real_time`.

That needs the system's leave (on Linux, CAP_SYS_NICE or a limit for `rtprio`) and is left out
without it. What concerns the process as a whole is told in `process`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from ensue.channel.realtime.process import PROCESS

STANDING_BY = 97
"""How urgent a thread is that waits for work, and the clock: more than any consumer."""
MOST_OF_A_CONSUMER = 95
FIRST_OF_OTHERS = -20
"""How nice a thread is outside of the real-time class, so that it gives the interpreter back."""


class Urgency:
    """How urgent each thread of a channel is. Made by `builder` where `real_time` is asked for."""

    def __init__(self) -> None:
        self._here = threading.local()
        self._cores = _last_core()
        self._all_cores = os.sched_getaffinity(0) if self._cores else set()

    def begin(self) -> None:
        PROCESS.begin()

    def end(self) -> None:
        PROCESS.end()

    def rest(self) -> None:
        """The calling thread has nothing to do at the moment."""
        PROCESS.rest()

    def join(self) -> None:
        """Make the calling thread one of those that the system lets go first, if it may be."""
        self._here.nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        self._here.level = STANDING_BY if _join_class(STANDING_BY, self._cores) else None
        if self._here.level is not None:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), FIRST_OF_OTHERS)

    def leave(self) -> None:
        """Be a thread like others again."""
        if self._here.level is not None:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.sched_setaffinity(0, self._all_cores)
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._here.nice)
            self._here.level = None

    @contextmanager
    def joined(self, priority: int) -> Iterator[bool]:
        """Let the calling thread be as urgent as a consumer; whether the system has let it."""
        if not self._cores:
            yield False
            return
        before = os.sched_getscheduler(0), os.sched_getparam(0), os.sched_getaffinity(0)
        is_in = _join_class(min(max(priority, 1), MOST_OF_A_CONSUMER), self._cores)
        try:
            yield is_in
        finally:
            if is_in:
                os.sched_setscheduler(0, *before[:2])
                os.sched_setaffinity(0, before[2])

    def stand_by(self) -> None:
        """Wait for work, ready to be the most urgent."""
        self._be(STANDING_BY)

    def rise_to(self, priority: int) -> None:
        """Be as urgent as a consumer: by its priority, from 0 to 95."""
        self._be(min(max(priority, 0), MOST_OF_A_CONSUMER))

    def _be(self, level: int) -> None:
        current = self._here.level
        if current is not None and current != level:
            os.sched_setscheduler(0, *_place_at(level))
            self._here.level = level


@cache
def _place_at(level: int) -> tuple[int, os.sched_param]:
    """What the system calls a level; made once, as it changes with every wake."""
    # What a consumer starts in its turn is not to be urgent as well.
    policy = (os.SCHED_FIFO if level else os.SCHED_OTHER) | os.SCHED_RESET_ON_FORK
    return policy, os.sched_param(level)


def _last_core() -> set[int]:
    """One processor for all: the last, as the first is where most systems handle interrupts."""
    return {max(os.sched_getaffinity(0))} if hasattr(os, "sched_getaffinity") else set()


def _join_class(level: int, cores: set[int]) -> bool:
    """Whether the calling thread is in the real-time class now."""
    if not hasattr(os, "sched_setscheduler"):
        return False
    try:
        os.sched_setscheduler(0, *_place_at(level))
        os.sched_setaffinity(0, cores)
    except OSError:
        return False
    return True


def is_permitted() -> bool:
    """Whether the system lets threads of this process join its real-time class."""
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(_join_class(1, _last_core())))
    asking.start()
    asking.join()
    return answers == [True]

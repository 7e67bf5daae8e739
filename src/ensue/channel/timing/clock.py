"""The time of a channel, and the execution of callouts when their time comes.

A channel reads the time by `now()`, in microseconds since 1970, and registers its queues of
callouts with the clock. On a `WallClock` a thread waits for the next callout. A `VirtualClock`
stands still until it is moved, and then runs the callouts that fall due in order, so that a test or
a replay does not have to wait. The clock knows nothing about what a callout does.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from ensue.channel.timing.callouts import CalloutQueue
from ensue.errors import UsageError
from ensue.events.event import instant_of
from ensue.lang.durations import parse_duration

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import RealTimeThreads

DurationLike = str | timedelta


def microseconds_in(duration: DurationLike, *, at_least: int = 0) -> int:
    """A duration in microseconds, given as in the language (`10 s`) or as a `timedelta`."""
    if isinstance(duration, timedelta):
        length = duration // timedelta(microseconds=1)
    else:
        try:
            length = parse_duration(duration).microseconds
        except ValueError as error:
            raise UsageError(str(error)) from None
    if length < at_least:
        raise UsageError(
            f"a duration of at least {at_least} microseconds is needed here; given is `{duration}`"
        )
    return length


class Clock(Protocol):
    """What a channel needs of a clock."""

    def now(self) -> int:
        """Microseconds since 1970; never decreases."""

    def drive(self, callouts: CalloutQueue) -> None:
        """Run the callouts of a queue as they fall due, from now on."""

    def release(self, callouts: CalloutQueue) -> None:
        """Run no more callouts of a queue."""

    def woken(self) -> None:
        """Look at the queues again: one of them has a new first callout."""


class WallClock:
    """The time of day, monotonic from the start of the process on."""

    # The system's time of day may be set back while the process runs.
    _offset = time.time_ns() - time.perf_counter_ns()

    def __init__(self, real_time: RealTimeThreads | None = None) -> None:
        self._real_time = real_time
        self._changed = threading.Condition()
        self._queues: list[CalloutQueue] = []
        self._thread: threading.Thread | None = None

    def now(self) -> int:
        return (self._offset + time.perf_counter_ns()) // 1_000

    def drive(self, callouts: CalloutQueue) -> None:
        with self._changed:
            self._queues.append(callouts)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._wait_and_run, name="ensue-clock", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def release(self, callouts: CalloutQueue) -> None:
        with self._changed:
            if callouts in self._queues:
                self._queues.remove(callouts)
            self._changed.notify()

    def woken(self) -> None:
        with self._changed:
            self._changed.notify()

    def _wait_and_run(self) -> None:
        if self._real_time is not None:
            self._real_time.join()
        while True:
            with self._changed:
                if not self._queues:
                    self._thread = None
                    return
                due = _first_due(self._queues)
                wait = None if due is None else (due - self.now()) / 1_000_000
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
                queues = list(self._queues)
            for queue in queues:
                # `SystemExit` and the like have been counted as a consumer's failure, and must not
                # end the thread of the clock.
                with suppress(BaseException):
                    queue.run_due(self.now())


class VirtualClock:
    """A clock that stands still until `advance` or `move_to` moves it."""

    def __init__(self, start: int | datetime | str = 0) -> None:
        self._now = instant_of(start)
        self._queues: list[CalloutQueue] = []

    def now(self) -> int:
        return self._now

    def drive(self, callouts: CalloutQueue) -> None:
        self._queues.append(callouts)

    def release(self, callouts: CalloutQueue) -> None:
        if callouts in self._queues:
            self._queues.remove(callouts)

    def woken(self) -> None:
        """No thread waits: `move_to` looks at the queues itself."""

    def advance(self, duration: DurationLike) -> None:
        """Move the clock by a duration; each callout on the way runs at its own time."""
        self.move_to(self._now + microseconds_in(duration))

    def move_to(self, instant: int | datetime | str) -> None:
        """Move the clock to an instant. An instant in the past changes nothing."""
        target = instant_of(instant)
        while (due := _first_due(self._queues)) is not None and due <= target:
            self._now = max(self._now, due)
            for queue in list(self._queues):
                queue.run_due(self._now, limit=1)
        self._now = max(self._now, target)


def _first_due(queues: list[CalloutQueue]) -> int | None:
    return min((due for queue in queues if (due := queue.next_due()) is not None), default=None)

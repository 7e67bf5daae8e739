"""What time it is in a channel, and who lets it pass.

A channel asks its clock for `now()`, in microseconds since 1970, and hands it the queues of
callouts that are to run as time passes. On a `WallClock` a thread waits for the next one; a
`VirtualClock` stands still until somebody moves it, and then runs what falls due on the way, in
order, so that a test or a replay needs no waiting. What a callout does is not known here.
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
    from ensue.channel.realtime.threads import Urgency

DurationLike = str | timedelta


def microseconds_in(duration: DurationLike, *, at_least: int = 0) -> int:
    """A duration as in the language (`10 s`) or as Python has it, in microseconds."""
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
        """Microseconds since 1970; never less than before."""

    def drive(self, callouts: CalloutQueue) -> None:
        """Run what is in a queue as it falls due, from now on."""

    def release(self, callouts: CalloutQueue) -> None:
        """Run nothing more from a queue."""

    def woken(self) -> None:
        """A queue has a new first callout."""


class WallClock:
    """The time of day, monotonic from the start of the process on."""

    # The time of day may be set back while we run; what has been measured against it must not be.
    _offset = time.time_ns() - time.perf_counter_ns()

    def __init__(self, urgency: Urgency | None = None) -> None:
        self._urgency = urgency
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
        if self._urgency is not None:
            self._urgency.join()
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
                # What would end a thread of its own is counted as the failure of a consumer, and
                # must not end the one that lets time pass.
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
        """Nobody waits: the next move of the clock looks for itself."""

    def advance(self, duration: DurationLike) -> None:
        """Let time pass, running what falls due on the way, each at its own time."""
        self.move_to(self._now + microseconds_in(duration))

    def move_to(self, instant: int | datetime | str) -> None:
        """Let time pass up to an instant. An instant that is over changes nothing."""
        target = instant_of(instant)
        while (due := _first_due(self._queues)) is not None and due <= target:
            self._now = max(self._now, due)
            for queue in list(self._queues):
                queue.run_due(self._now, limit=1)
        self._now = max(self._now, target)


def _first_due(queues: list[CalloutQueue]) -> int | None:
    return min((due for queue in queues if (due := queue.next_due()) is not None), default=None)

"""Timeouts of consumers: at an interval, or after a period without a notification.

Each timeout is one callout in the channel's heap. An interval fires whole periods after its start,
however late an earlier firing ran. A watchdog is due one period after the consumer was last
notified. It checks this when it is due instead of being rescheduled with every event, so that
events cost nothing extra. A firing is an event of type `TIMEOUT`, queued and dispatched like any
other event. The alarms of steps with timers use the same heap.
"""

from __future__ import annotations

import threading
from typing import Literal, Protocol

from ensue.channel.timing.callouts import Callout, CalloutQueue
from ensue.channel.timing.clock import Clock, DurationLike, WallClock, microseconds_in
from ensue.channel.timing.clock_events import TIMEOUT, Timeout


class TimedReceiver(Protocol):
    """What a timer or an alarm needs of its receiver."""

    name: str
    state: str
    last_notified: int

    @property
    def priority(self) -> int: ...

    def watch(self) -> None: ...

    def offer_timeout(self, event: Timeout) -> None: ...

    def tick(self, now: int) -> None: ...


class Timeouts:
    """The timers and alarms of one channel."""

    def __init__(self, clock: Clock) -> None:
        self.callouts = CalloutQueue(clock.woken)
        self.clock = clock
        clock.drive(self.callouts)

    def add(
        self,
        receiver: TimedReceiver,
        kind: Literal["interval", "deadline"],
        period: DurationLike,
        name: str,
    ) -> ConsumerTimer:
        return ConsumerTimer(self, receiver, kind, microseconds_in(period, at_least=1), name)

    def alarm(self, receiver: TimedReceiver, grace: int) -> TickAlarm:
        return TickAlarm(self, receiver, grace)

    def close(self) -> None:
        self.clock.release(self.callouts)


class ConsumerTimer:
    """One timeout of one consumer, until `cancel`."""

    def __init__(
        self,
        timeouts: Timeouts,
        receiver: TimedReceiver,
        kind: Literal["interval", "deadline"],
        period: int,
        name: str,
    ) -> None:
        self.kind = kind
        self.name = name
        self.period = period
        self.fired = 0
        self._timeouts = timeouts
        self._receiver = receiver
        self._is_active = True
        if kind == "deadline":
            receiver.watch()
        receiver.last_notified = timeouts.clock.now()
        self._callout = self._schedule(timeouts.clock.now() + period)

    def cancel(self) -> bool:
        """Cancel the timeout. True if it was still active."""
        was_active, self._is_active = self._is_active, False
        self._timeouts.callouts.cancel(self._callout)
        return was_active

    def _schedule(self, due: int) -> Callout:
        priority = self._receiver.priority
        return self._timeouts.callouts.schedule(due, self._fire, priority)

    def _fire(self, due: int) -> None:
        if not self._is_active or self._receiver.state == "disconnected":
            return
        if self.kind == "deadline":
            quiet_until = self._receiver.last_notified + self.period
            if quiet_until > due:
                self._callout = self._schedule(quiet_until)
                return
        self.fired += 1
        self._callout = self._schedule(due + self.period)
        data = {"timer": self.name, "kind": self.kind, "count": self.fired}
        source = f"ensue/channel/{self._receiver.name}"
        event = Timeout(f"{self.name}:{self.fired}", source, TIMEOUT, due, data)
        self._receiver.offer_timeout(event)


class TickAlarm:
    """Sends a tick to a receiver when the next timer of its step is due."""

    def __init__(self, timeouts: Timeouts, receiver: TimedReceiver, grace: int) -> None:
        self._timeouts = timeouts
        self._receiver = receiver
        # On a wall clock an event made just before the due time may arrive just after it.
        self._grace = grace if isinstance(timeouts.clock, WallClock) else 0
        self._lock = threading.Lock()
        self._due: int | None = None
        self._callout: Callout | None = None
        self._is_active = True

    def set(self, due: int | None) -> None:
        """Replace the due time. A due time in the past sends the tick at once."""
        with self._lock:
            if due == self._due or not self._is_active:
                return
            self._unschedule()
            if due is None:
                return
            now = self._timeouts.clock.now() - self._grace
            if due > now:
                self._due = due
                self._callout = self._timeouts.callouts.schedule(due + self._grace, self._fire)
                return
        self._receiver.tick(now)

    def cancel(self) -> None:
        with self._lock:
            self._is_active = False
            self._unschedule()

    def _unschedule(self) -> None:
        if self._callout is not None:
            self._timeouts.callouts.cancel(self._callout)
        self._callout = self._due = None

    def _fire(self, at: int) -> None:
        with self._lock:
            if not self._is_active:
                return
            self._callout = self._due = None
        self._receiver.tick(at - self._grace)

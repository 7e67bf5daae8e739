"""The queue of one consumer, and the rules under which events enter and leave it.

Events come in from any thread. By the consumer's `Quality`, each is queued, replaces an older
event, or is dropped and counted. One lock guards the whole mailbox and is held only briefly. The
queue belongs to the consumer and not to a dispatching strategy, so that the strategy can be
replaced under load without losing or repeating an event. `receiver` takes events out of the queue.

The module is long because one lock guards entering, waiting and dropped events together.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ensue.channel.delivery.drops import Drops
from ensue.channel.delivery.event_queue import EventQueue, Slot
from ensue.channel.delivery.steps import DeliveryStep, Guard, RuleOutput, StepVersions
from ensue.channel.delivery.waiters import Waiters, Wake
from ensue.channel.policies import Block, Disconnect, DropOldest, Quality, Reason, conflation_key
from ensue.channel.timing.clock import Clock, DurationLike, microseconds_in
from ensue.channel.timing.clock_events import Tick, Timeout
from ensue.events.event import Event

FULL, QUEUED, READY = range(3)
"""The result of offering an event.

`FULL`: the queue is full, and the supplier has to wait. `QUEUED`: the event was queued or dropped.
`READY`: as `QUEUED`, and the receiver has to be scheduled for a turn.
"""

_TICK_KEY = object()


Call = Callable[[Event], Any]
"""A consumer's function, or coroutine function if the channel dispatches on asyncio."""


class MailboxContext(Protocol):
    """What a mailbox needs of its channel.

    `is_timed` is true once a consumer has asked for a deadline, a time to live or a watchdog, for
    which the time of publication has to be known.
    """

    clock: Clock
    on_drop: Callable[[str, Event, Reason], None] | None
    is_timed: bool


class Mailbox(ABC):
    """Events waiting for one consumer. Without a `call`, the consumer pulls them itself."""

    def __init__(
        self,
        name: str,
        number: int,
        call: Call | None,
        quality: Quality,
        context: MailboxContext,
        step: DeliveryStep | None,
    ) -> None:
        self.name = name
        self.number = number
        self.call = call
        self.context = context
        self.state = "connected"
        self.last_notified = context.clock.now()
        self._offered = 0
        self._read = 0
        self._put_out = 0
        self._lock = threading.Lock()
        # The thread that runs a turn has popped this token. `list.pop` is atomic, and costs a
        # quarter of taking a lock.
        self.turn_token: list[None] = [None]
        self._waiters = Waiters(self._lock)
        self._drops = Drops(name, context.on_drop)
        self._queue = EventQueue()
        self._outputs = EventQueue()
        self._disconnect_reason = Reason.DISCONNECTED
        self.is_scheduled = False
        self._scheduled_level = 0
        self._base_key = (0, 0, 0)
        self._steps = StepVersions(step)
        self._is_watched = False
        self.require(quality)

    @abstractmethod
    def schedule(self) -> None:
        """Ask the dispatching strategy for a turn."""

    @abstractmethod
    def _after_disconnect(self) -> None:
        """Remove a consumer from the channel that its overflow policy has disconnected."""

    def require(self, quality: Quality) -> None:
        """Replace the quality of service, from the next event on."""
        with self._lock:
            before = self._base_key
            self.quality = quality
            self.rank = (-quality.priority, -quality.sub_priority, self.number)
            self._base_key = (-quality.priority, -quality.sub_priority, 0)
            self._capacity = quality.capacity
            self._deadline = _length(quality.deadline)
            self._time_to_live = _length(quality.time_to_live)
            self._key_of = conflation_key(quality.conflate)
            self._choose_fast_paths()
            # The new capacity may have room, or the new policy may not wait for room.
            self._waiters.wake_all()
            must_move = self._base_key != before and self.is_scheduled and bool(self.turn_token)
        if must_move and self.call is not None:
            # The receiver is scheduled under its old priority.
            self.schedule()

    def change_step(
        self, step: DeliveryStep | None, guard: Guard | None, if_offered: int | None = None
    ) -> bool:
        """Use a new step for events from now on; the old step still reads the queued events.

        With `if_offered`, only if as many events have been offered so far. Whether it is used.
        """
        with self._lock:
            if if_offered is not None and self._offered != if_offered:
                return False
            self._enqueue_outputs(self._steps.replace(step, guard))
            self._choose_fast_paths()
            must_run = self._must_schedule()
        if must_run:
            self.schedule()
        return True

    def watch(self) -> None:
        """Record from now on when the consumer was last notified, which a watchdog needs."""
        with self._lock:
            self._is_watched = True
            self._choose_fast_paths()

    def _choose_fast_paths(self) -> None:
        """Decide which fast paths the present state, step and quality allow."""
        self._rejects = self.state in ("suspended", "disconnected")
        is_unguarded = self.state == "connected" and self._steps.guard is None
        may_call = is_unguarded and self._steps.step is None and self.call is not None
        self._queues_plainly = may_call and self._key_of is None
        self.is_timed = self._is_watched or self._deadline is not None
        self.direct_call: Call | None = self.call if may_call else None
        if self.is_timed or self._time_to_live is not None:
            self.context.is_timed = True

    def accept(self, event: Event, now: int) -> int:
        """Queue an event, or drop one by the overflow policy: `FULL`, `QUEUED` or `READY`."""
        with self._lock:
            if self._queues_plainly and self._queue.size < self._capacity and not event.extensions:
                # The fast path, which nearly every event takes.
                self._offered += 1
                self.last_notified = now
                self._queue.put_plain(event, now)
                if self.is_scheduled:
                    return READY if self._must_schedule() else QUEUED
                self.is_scheduled = True
                return READY
            if not self._has_room(event):
                return FULL
            must_run = self._enqueue_or_drop(event, now)
            if self.call is None:
                self._waiters.wake_all()
                must_run = False
        self._report_drops()
        return READY if must_run else QUEUED

    def accept_all(self, events: Sequence[Event]) -> bool:
        """Queue events in this order whatever the capacity. Whether to schedule the receiver."""
        with self._lock:
            now = self.context.clock.now()
            for event in events:
                self._offered += 1
                self._enqueue(Slot(event, now, 0, self._steps.step))
            return self._must_schedule()

    def offer(self, event: Event, since: int | None = None) -> bool:
        """Queue an event, or drop one by the overflow policy. False if the supplier has to wait.

        Its waiting time is measured from `since`, the time of publication, or from now.
        """
        answer = self.accept(event, self.context.clock.now() if since is None else since)
        if answer == READY:
            self.schedule()
        return answer != FULL

    def offer_timeout(self, event: Timeout) -> None:
        """Queue a timeout. Its waiting time is measured from when it was due."""
        with self._lock:
            has_room = self._has_room(event)
            must_run = has_room and self._enqueue_or_drop(event, event.time)
            if self.call is None:
                self._waiters.wake_all()
                must_run = False
        if not has_room:
            # The thread of the clock must not wait for one consumer.
            self.drop_blocked(event)
            return
        self._report_drops()
        if must_run:
            self.schedule()

    def offer_within(self, event: Event, seconds: float) -> bool:
        """Queue an event once there is room. False if there was none in time and it was dropped."""
        deadline = time.monotonic() + seconds
        while not self.offer(event):
            left = deadline - time.monotonic()
            if left <= 0:
                self.drop_blocked(event)
                return False
            try:
                with self._lock:
                    if not self._has_room(event):
                        self._waiters.wait(left)
            except BaseException:
                # An interrupt: the supplier will not offer the event again.
                self.drop_blocked(event)
                raise
        return True

    def drop_blocked(self, event: Event) -> None:
        """Count an event as dropped because its supplier found no room in time."""
        with self._lock:
            self._offered += 1
            self._drops.note(event, Reason.BLOCKED)
        self._drops.report()

    def when_room(self, wake: Wake) -> None:
        """Call `wake` once when there is room, immediately if there is room now."""
        with self._lock:
            if self._queue.size >= self._capacity and self.state == "connected":
                self._waiters.add(wake)
                return
        wake()

    @property
    def priority(self) -> int:
        """The consumer's priority."""
        return self.quality.priority

    @property
    def block_seconds(self) -> float:
        """How many seconds a supplier waits for room in this queue."""
        overflow = self.quality.overflow
        return overflow.seconds if isinstance(overflow, Block) else 0.0

    def tick(self, now: int) -> None:
        """Queue a tick, so that the step sees time pass in order with the waiting events."""
        with self._lock:
            step = self._steps.step
            if step is None or self.state != "connected":
                return
            tick = Tick("tick", "", "", now)
            held = self._queue.slot_of(_TICK_KEY)
            if held is not None:
                held.event = tick
                return
            self._enqueue(Slot(tick, now, 0, step, _TICK_KEY))
            must_run = self.call is not None and self._must_schedule()
            if self.call is None:
                self._waiters.wake_all()
        if must_run:
            self.schedule()

    def finish(self) -> None:
        """Accept no more events; waiting events can still be pulled."""
        with self._lock:
            self._set_state("finished")

    def disconnect(self, reason: Reason = Reason.DISCONNECTED) -> int:
        """Accept no more events and drop the waiting ones; returns how many were dropped."""
        with self._lock:
            count = self._disconnect(reason)
        self._drops.report()
        return count

    def _report_drops(self) -> None:
        """Report drops that an offer has caused, and a disconnection by the overflow policy."""
        if self._drops.unreported:
            self._drops.report()
        if self.state == "disconnected":
            self._after_disconnect()

    def wait_for_event(self, seconds: float | None) -> None:
        """Block until an event is queued or the consumer is disconnected."""
        with self._lock:
            if self._is_idle():
                self._waiters.wait(seconds)

    def cancel_wake(self, wake: Wake) -> None:
        """Do not call `wake` any more."""
        with self._lock:
            self._waiters.remove(wake)

    def when_event(self, wake: Wake) -> None:
        """Call `wake` once when an event is queued or the consumer is disconnected."""
        with self._lock:
            if self._is_idle():
                self._waiters.add(wake)
                return
        wake()

    def _is_idle(self) -> bool:
        return not (self._queue.size or self._outputs.size) and self.state == "connected"

    @property
    def is_busy(self) -> bool:
        with self._lock:
            # An event leaves the queue only within a turn, so one of the two is always true.
            return bool(self._queue.size or self._outputs.size) or not self.turn_token

    def _has_room(self, event: Event) -> bool:
        """Whether the event can be queued or dropped now; only `Block` makes a supplier wait."""
        return (
            self._queue.size < self._capacity
            or self.state != "connected"
            or not isinstance(self.quality.overflow, Block)
            or self._queue.slot_of(self._key(event)) is not None
        )

    def _key(self, event: Event) -> object:
        """The conflation key of an event; None if it replaces no other."""
        return None if self._key_of is None or type(event) is Timeout else self._key_of(event)

    def _enqueue_or_drop(self, event: Event, now: int) -> bool:
        """Queue the event, or drop one. Returns whether the receiver has to be scheduled."""
        is_timeout = type(event) is Timeout
        guard = self._steps.guard
        if guard is not None and not is_timeout and not guard(event):
            return False
        step = None if is_timeout else self._steps.step
        if isinstance(event, RuleOutput):
            step = event.step
            if event.step.is_over:
                return False
        self._offered += 1
        if self.state != "connected":
            self._drops.note(event, self._reason_of_state())
            return False
        key = self._key(event)
        held = self._queue.slot_of(key)
        if held is not None:
            self._drops.note(held.event, Reason.CONFLATED)
            held.event, held.arrived = event, now
            if _priority_of(event) == held.level:
                return False
            self._queue.move(held, _priority_of(event))
            return self._must_schedule()
        if self._queue.size >= self._capacity and not self._make_room(event):
            return False
        self._enqueue(Slot(event, now, _priority_of(event), step, key))
        return self._must_schedule()

    def _make_room(self, event: Event) -> bool:
        overflow = self.quality.overflow
        if isinstance(overflow, DropOldest):
            self._drop(self._queue.take_lowest(), Reason.OLDEST)
            return True
        if isinstance(overflow, Disconnect):
            self._drops.note(event, Reason.DISCONNECTED)
            self._disconnect(Reason.DISCONNECTED)
        else:
            self._drops.note(event, Reason.NEWEST)
        return False

    def _enqueue(self, slot: Slot) -> None:
        if slot.step is not None:
            self._steps.queued(slot.step)
        elif type(slot.event) is not Timeout:
            self.last_notified = slot.arrived
        self._queue.put(slot)

    def _must_schedule(self) -> bool:
        if not (self._queue.size or self._outputs.size):
            return False
        if not self.is_scheduled:
            self.is_scheduled = True
            return True
        # The receiver is scheduled already, but a more urgent event may move it forward.
        return self._top_level > self._scheduled_level and bool(self.turn_token)

    @property
    def _top_level(self) -> int:
        """The highest event priority that waits. Outputs go before events that are not read yet,
        so that a read event's outputs never pile up."""
        if not self._outputs.size:
            return self._queue.top_level
        level = self._outputs.top_level
        return max(level, self._queue.top_level) if self._queue.size else level

    def _enqueue_outputs(self, events: Sequence[Event], arrived: int | None = None) -> None:
        """Queue outputs of a step for delivery, or drop them if the consumer is disconnected."""
        self._put_out += len(events)
        if self.state == "disconnected":
            for event in events:
                self._drops.note(event, self._disconnect_reason)
        elif events:
            since = self.context.clock.now() if arrived is None else arrived
            for event in events:
                self._outputs.put(Slot(event, since, _priority_of(event), None))

    def _set_state(self, state: str) -> None:
        self.state = state
        self._choose_fast_paths()
        self._waiters.wake_all()

    def _disconnect(self, reason: Reason) -> int:
        self._disconnect_reason = reason
        self._set_state("disconnected")
        count = 0
        while self._queue.size or self._outputs.size:
            slot = self._outputs.take() if self._outputs.size else self._queue.take()
            count += type(slot.event) is not Tick
            self._drop(slot, reason)
        return count

    def _drop(self, slot: Slot, reason: Reason) -> None:
        if type(slot.event) is not Tick:
            self._drops.note(slot.event, reason)
        if slot.step is not None:
            self._enqueue_outputs(self._steps.done(slot.step))

    def _waiting_events(self) -> int:
        """The number of waiting events, without a waiting tick."""
        has_tick = self._queue.slot_of(_TICK_KEY) is not None
        return self._queue.size + self._outputs.size - has_tick

    def _reason_of_state(self) -> Reason:
        return Reason.SUSPENDED if self.state == "suspended" else self._disconnect_reason


def _length(duration: DurationLike | None) -> int | None:
    return None if duration is None else microseconds_in(duration)


def _priority_of(event: Event) -> int:
    priority = event.extensions.get("priority", 0) if event.extensions else 0
    return priority if isinstance(priority, int) else 0

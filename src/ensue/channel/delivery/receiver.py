"""One consumer as the dispatching strategy sees it: its turns and its failures.

A strategy gives turns. One turn does one thing: a step (a Python test, a group, a correlation)
reads one event, or the consumer is called with one event. So slow work delays only its own
consumer.

At most one thread runs a turn of a receiver at a time: the thread that has popped `turn_token`.
Other threads do not wait for the token; the thread that ends a turn looks for events that came
meanwhile. An exception in a consumer is counted as a failure and goes no further. `SystemExit`, an
interrupt or a cancellation is counted too, and then raised to the caller of the turn. `mailbox`
does the queueing; the strategy keeps the priorities between receivers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ensue.channel.delivery.event_queue import Slot
from ensue.channel.delivery.mailbox import Call, Mailbox
from ensue.channel.delivery.steps import DeliveryStep
from ensue.channel.figures.values import ConsumerFigures, LaxityMeter
from ensue.channel.policies import Quality, Reason
from ensue.channel.timing.clock import Clock
from ensue.channel.timing.clock_events import Tick
from ensue.events.event import Event
from ensue.events.expiry import has_expired

if TYPE_CHECKING:
    from ensue.channel.timing.timeouts import TickAlarm


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception raised by a consumer, and whether the consumer is suspended because of it."""

    consumer: str
    event: Event
    error: BaseException
    suspended: bool


class TurnScheduler(Protocol):
    """What a receiver needs of a dispatching strategy."""

    def ready(self, receiver: Receiver) -> None:
        """Schedule a receiver that has work. It calls again only after its turns are over."""


@dataclass(slots=True)
class ChannelContext:
    """What all receivers of a channel share. `dispatcher` changes when the strategy is replaced."""

    clock: Clock
    dispatcher: TurnScheduler
    on_failure: Callable[[Failure], None]
    on_drop: Callable[[str, Event, Reason], None] | None
    on_disconnect: Callable[[Receiver], None]
    is_timed: bool = False


class Receiver(Mailbox):
    """The channel's end of one consumer. Without a `call`, events are pulled with `take`."""

    def __init__(
        self,
        name: str,
        number: int,
        call: Call | None,
        quality: Quality,
        context: ChannelContext,
        step: DeliveryStep | None,
    ) -> None:
        super().__init__(name, number, call, quality, context, step)
        self.context: ChannelContext = context
        self.is_coroutine = call is not None and is_coroutine(call)
        self.alarm: TickAlarm | None = None
        self.scheduled_key: tuple[int, ...] | None = None
        self.failures = 0
        self.laxity = LaxityMeter()
        self.failed_in_row = 0
        self._delivered_in_turns = 0
        self.direct_calls = 0

    def schedule(self) -> None:
        self.context.dispatcher.ready(self)

    def _after_disconnect(self) -> None:
        self.context.on_disconnect(self)

    def note_direct_call(self, since: int | None) -> None:
        """Record laxity and time of a call that bypassed the queue."""
        # Read once: another thread may replace the quality at any moment.
        deadline = self._deadline
        if deadline is not None and since is not None:
            self._note_laxity(deadline, since)
        self.last_notified = self.context.clock.now()

    def note_direct_failure(self, event: Event, error: BaseException) -> None:
        """Count a failure of a call that bypassed the queue."""
        with self._lock:
            self._offered += 1
        self.last_notified = self.context.clock.now()
        self._note_failure(event, error)
        self._drops.report()

    def schedule_key(self) -> tuple[int, ...]:
        """The key under which the receiver is scheduled: the smallest key gets its turn first."""
        self._scheduled_level = level = self._top_level
        return self._base_key if level == 0 else (*self._base_key[:2], -level)

    def _take_turn(self) -> bool:
        try:
            self.turn_token.pop()
        except IndexError:
            return False
        return True

    def turn(self) -> bool:
        """Run one turn. True if there is more to do: the caller has to schedule the next turn."""
        if not self._take_turn():
            return False
        slot = self._begin_turn()
        if slot is not None:
            try:
                self.call(slot.event)  # type: ignore[misc]
            except BaseException as error:
                self._note_failure(slot.event, error)
                if not isinstance(error, Exception):
                    self._abort_turn()
                    raise
            else:
                self._note_success(slot)
        return self._end_turn()

    async def turn_async(self) -> bool:
        """Run one turn of a consumer that is a coroutine function."""
        if not self._take_turn():
            return False
        slot = self._begin_turn()
        if slot is not None:
            try:
                await self.call(slot.event)  # type: ignore[misc]
            except BaseException as error:
                self._note_failure(slot.event, error)
                if not isinstance(error, Exception):
                    self._abort_turn()
                    raise
            else:
                self._note_success(slot)
        return self._end_turn()

    def take(self) -> Event | None:
        """Pull the next event; None if none waits."""
        has_more = True
        while has_more and self._take_turn():
            slot = self._begin_turn()
            if slot is not None:
                self._note_success(slot)
            has_more = self._end_turn()
            if slot is not None:
                return slot.event
        return None

    def _begin_turn(self) -> Slot | None:
        """Take the next slot to deliver; None if the turn was spent on a step or a drop."""
        with self._lock:
            if self._outputs.size:
                slot = self._outputs.take()
            elif self._queue.size:
                slot = self._queue.take()
                if self._queue.size == self._capacity - 1:
                    self._waiters.wake_all()
            else:
                return None
            if self._rejects:
                self._drop(slot, self._reason_of_state())
                return None
            if (self._time_to_live is not None or slot.event.extensions) and self._has_expired(
                slot
            ):
                self._drop(slot, Reason.EXPIRED)
                return None
        if slot.step is None:
            return slot
        self._run_step(slot.step, slot)
        return None

    def _run_step(self, step: DeliveryStep, slot: Slot) -> None:
        event, is_tick = slot.event, type(slot.event) is Tick
        failure: BaseException | None = None
        passed: Sequence[Event] = ()
        try:
            passed = step.advance(event.time) if is_tick else step.read(event)
        except BaseException as error:
            failure = error
            self._note_failure(event, error)
        with self._lock:
            drops = step.take_drops()
            for lost, reason in drops:
                self._drops.note(lost, reason)
            self._read += (not is_tick and failure is None) - len(drops)
            if passed:
                self.last_notified = self.context.clock.now()
                self._enqueue_outputs(passed, slot.arrived)
            self._enqueue_outputs(self._steps.done(step))
            is_current = step is self._steps.step
        alarm = self.alarm
        # After a failed tick, the same tick would be due at once, again and again.
        if alarm is not None and is_current and not (is_tick and failure is not None):
            alarm.set(step.next_due())
        if failure is not None and not isinstance(failure, Exception):
            self._abort_turn()
            raise failure

    def _end_turn(self) -> bool:
        with self._lock:
            self.is_scheduled = has_more = bool(self._queue.size or self._outputs.size)
            self.turn_token.append(None)
        if self._drops.unreported:
            self._drops.report()
        return has_more

    def _abort_turn(self) -> None:
        """End a turn whose caller gets an exception and will not schedule the next one."""
        if self._end_turn():
            self.schedule()

    def _has_expired(self, slot: Slot) -> bool:
        if type(slot.event) is Tick:
            return False
        now = self.context.clock.now()
        if self._time_to_live is not None and now > slot.arrived + self._time_to_live:
            return True
        return has_expired(slot.event, now)

    def _note_success(self, slot: Slot) -> None:
        self._delivered_in_turns += 1
        self.failed_in_row = 0
        # Read once: another thread may replace the quality at any moment.
        deadline = self._deadline
        if deadline is not None:
            self._note_laxity(deadline, slot.arrived)

    def _note_laxity(self, deadline: int, arrived: int) -> None:
        taken = self.context.clock.now() - arrived
        self.laxity.note(self.quality.priority, deadline, taken)

    def _note_failure(self, event: Event, error: BaseException) -> None:
        with self._lock:
            self.failures += 1
            self.failed_in_row += 1
            if type(event) is not Tick:
                self._drops.note(event, Reason.FAILED)
            allowed = self.quality.failures
            suspended = (
                allowed is not None and self.failed_in_row >= allowed and self.state == "connected"
            )
            if suspended:
                self._set_state("suspended")
        self.context.on_failure(Failure(self.name, event, error, suspended))

    def resume(self) -> None:
        """Let a suspended consumer receive events again."""
        with self._lock:
            if self.state == "suspended":
                self.failed_in_row = 0
                self._set_state("connected")

    @property
    def offered(self) -> int:
        """How many events its queue has been offered."""
        return self._offered

    @property
    def wanted(self) -> int:
        """How many events the consumer wanted, whether delivered, waiting or dropped."""
        return self._offered + self.direct_calls

    @property
    def delivered(self) -> int:
        """How many events the consumer was called with, or pulled, without a failure."""
        return self._delivered_in_turns + self.direct_calls

    def figures(self) -> ConsumerFigures:
        with self._lock:
            return ConsumerFigures(
                self.name,
                self.state,
                self.wanted,
                self.delivered,
                self._waiting_events(),
                self.failures,
                dict(self._drops.counts),
                self._read,
                self._put_out,
            )


def is_coroutine(call: Call) -> bool:
    """Whether a call returns an awaitable."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)

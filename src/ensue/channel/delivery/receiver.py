"""One consumer from inside: its turns and its failures.

Whoever publishes offers an event; a dispatching strategy gives turns, and in each turn exactly one
thing is done: a step reads one event (a Python test, a group, a correlation), or the consumer is
called with one. So whatever takes long takes only its own consumer's turns.

A receiver is run by one thread at a time, which has taken `turn_token`. Nobody waits for that:
whoever finds it taken goes away, and whoever ends a turn looks for what came meanwhile. An
exception ends here, as a failure of the consumer; what is meant to end more than a call
(`SystemExit`, an interrupt, a cancellation) counts as one too, and goes on to whoever gave the
turn. What waits, and how it came there, is told in `mailbox`; priorities between receivers are the
strategy's business, and what an event means is the step's.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ensue.channel.delivery.event_queue import Slot
from ensue.channel.delivery.mailbox import Call, Mailbox
from ensue.channel.delivery.steps import Step
from ensue.channel.figures.values import ConsumerFigures, LaxityMeter
from ensue.channel.policies import Quality, Reason
from ensue.channel.timing.clock import Clock
from ensue.channel.timing.clock_events import Tick
from ensue.events.event import Event
from ensue.events.times import parse_time

if TYPE_CHECKING:
    from ensue.channel.timing.timeouts import Alarm


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception in a consumer: by name, on which event, and whether it is suspended now."""

    consumer: str
    event: Event
    error: BaseException
    suspended: bool


class TurnGiver(Protocol):
    """What a receiver needs of a dispatching strategy."""

    def ready(self, receiver: Receiver) -> None:
        """A receiver has something to do. It will not be told again until its turns are over."""


@dataclass(slots=True)
class Surroundings:
    """What every receiver of a channel shares. `turns` changes when strategies are swapped."""

    clock: Clock
    turns: TurnGiver
    on_failure: Callable[[Failure], None]
    on_drop: Callable[[str, Event, Reason], None] | None
    leave: Callable[[Receiver], None]
    is_timed: bool = False


class Receiver(Mailbox):
    """A consumer's side in the channel. Without a `call`, its events are pulled with `take`."""

    def __init__(
        self,
        name: str,
        number: int,
        call: Call | None,
        quality: Quality,
        around: Surroundings,
        step: Step | None,
    ) -> None:
        super().__init__(name, number, call, quality, around, step)
        self.around: Surroundings = around
        self.is_coroutine = call is not None and is_coroutine(call)
        self.alarm: Alarm | None = None
        self.place_in_line: tuple[int, ...] | None = None
        self.failures = 0
        self.laxity = LaxityMeter()
        self.failed_in_row = 0
        self._given_in_turn = 0
        self.called_at_once = 0

    def ask_for_turns(self) -> None:
        self.around.turns.ready(self)

    def _has_left(self) -> None:
        self.around.leave(self)

    # --- turns ---------------------------------------------------------------------------------

    def note_call_at_once(self, since: int | None) -> None:
        """What a deadline or a watchdog has to know of a call outside of the queue."""
        # Read once: promises may change at any moment.
        deadline = self._deadline
        if deadline is not None and since is not None:
            self._note_laxity(deadline, since)
        self.last_satisfied = self.around.clock.now()

    def note_failure_at_once(self, event: Event, error: BaseException) -> None:
        """The consumer was called at once, without a place in its queue, and has failed."""
        with self._lock:
            self._offered += 1
        self.last_satisfied = self.around.clock.now()
        self._note_failure(event, error)
        self._losses.tell()

    def standing(self) -> tuple[int, ...]:
        """Where the receiver stands in line: read by a strategy when it is told it is ready."""
        self._level_in_line = level = self._inbox.top_level
        return self._standing if level == 0 else (*self._standing[:2], -level)

    def _take_turn(self) -> bool:
        try:
            self.turn_token.pop()
        except IndexError:
            return False
        return True

    def turn(self) -> bool:
        """Do one thing. True if there is more to do, and whoever calls has to see to it."""
        if not self._take_turn():
            return False
        slot = self._begin()
        if slot is not None:
            try:
                self.call(slot.event)  # type: ignore[misc]
            except BaseException as error:
                self._note_failure(slot.event, error)
                if not isinstance(error, Exception):
                    self._end_early()
                    raise
            else:
                self._note_success(slot)
        return self._end()

    async def turn_async(self) -> bool:
        """The same for a coroutine: others go on while one waits."""
        if not self._take_turn():
            return False
        slot = self._begin()
        if slot is not None:
            try:
                await self.call(slot.event)  # type: ignore[misc]
            except BaseException as error:
                self._note_failure(slot.event, error)
                if not isinstance(error, Exception):
                    self._end_early()
                    raise
            else:
                self._note_success(slot)
        return self._end()

    def take(self) -> Event | None:
        """The next event, for whoever pulls; None if nothing waits."""
        has_more = True
        while has_more and self._take_turn():
            slot = self._begin()
            if slot is not None:
                self._note_success(slot)
            has_more = self._end()
            if slot is not None:
                return slot.event
        return None

    def _begin(self) -> Slot | None:
        """What the consumer is to be called with, or None if a step was all there was to do."""
        with self._lock:
            if self._outbox:
                slot = self._outbox.popleft()
            elif self._inbox.size:
                slot = self._inbox.take()
                if self._inbox.size == self._capacity - 1:
                    self._waiting.wake_all()
            else:
                return None
            if self._is_shut:
                self._forget(slot, self._reason_of_state())
                return None
            if (self._time_to_live is not None or slot.event.extensions) and self._is_over(slot):
                self._forget(slot, Reason.EXPIRED)
                return None
        if slot.step is None:
            return slot
        self._run_step(slot.step, slot)
        return None

    def _run_step(self, step: Step, slot: Slot) -> None:
        event = slot.event
        try:
            passed = step.advance(event.time) if type(event) is Tick else step.read(event)
        except Exception as error:
            passed = ()
            self._note_failure(event, error)
        with self._lock:
            for lost, reason in step.take_drops():
                self._losses.note(lost, reason)
            if passed:
                self.last_satisfied = self.around.clock.now()
                self._send_out(passed, slot.arrived)
            self._send_out(self._reading.done(step))
            is_current = step is self._reading.step
        alarm = self.alarm
        if alarm is not None and is_current:
            alarm.set(step.next_due())

    def _end(self) -> bool:
        with self._lock:
            self.is_in_line = has_more = bool(self._inbox.size or self._outbox)
            self.turn_token.append(None)
        if self._losses.untold:
            self._losses.tell()
        return has_more

    def _end_early(self) -> None:
        """Whoever gave the turn will not see to the rest."""
        if self._end():
            self.ask_for_turns()

    def _is_over(self, slot: Slot) -> bool:
        if type(slot.event) is Tick:
            return False
        now = self.around.clock.now()
        if self._time_to_live is not None and now > slot.arrived + self._time_to_live:
            return True
        expiry = slot.event.extensions.get("expirytime")
        return expiry is not None and now > _instant(expiry)

    # --- success and failure -------------------------------------------------------------------

    def _note_success(self, slot: Slot) -> None:
        self._given_in_turn += 1
        self.failed_in_row = 0
        # Read once: promises may change at any moment.
        deadline = self._deadline
        if deadline is not None:
            self._note_laxity(deadline, slot.arrived)

    def _note_laxity(self, deadline: int, arrived: int) -> None:
        taken = self.around.clock.now() - arrived
        self.laxity.note(self.quality.priority, deadline, taken)

    def _note_failure(self, event: Event, error: BaseException) -> None:
        with self._lock:
            self.failures += 1
            self.failed_in_row += 1
            self._losses.note(event, Reason.FAILED)
            allowed = self.quality.failures
            suspended = (
                allowed is not None and self.failed_in_row >= allowed and self.state == "connected"
            )
            if suspended:
                self._become("suspended")
        self.around.on_failure(Failure(self.name, event, error, suspended))

    def resume(self) -> None:
        """Give a suspended consumer another chance."""
        with self._lock:
            if self.state == "suspended":
                self.failed_in_row = 0
                self._become("connected")

    @property
    def wanted(self) -> int:
        """All that was meant for the consumer."""
        return self._offered + self.called_at_once

    @property
    def delivered(self) -> int:
        """How often the consumer was called, or an event pulled, without a failure."""
        return self._given_in_turn + self.called_at_once

    def figures(self) -> ConsumerFigures:
        with self._lock:
            return ConsumerFigures(
                self.name,
                self.state,
                self.wanted,
                self.delivered,
                self._inbox.size + len(self._outbox),
                self.failures,
                dict(self._losses.counts),
            )


def offer_each(event: Event, full: Sequence[Receiver], may_wait: bool = True) -> None:
    """Wait for room at each of some, as long as its policy says."""
    left = deque(full)
    try:
        while left:
            one = left.popleft()
            one.offer_within(event, one.patience if may_wait else 0.0)
    except BaseException:
        for each in left:
            each.give_up(event)
        raise


def is_coroutine(call: Call) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def _instant(expiry: object) -> int:
    """An expiry time that is none does not make its event expire."""
    if isinstance(expiry, int):
        return expiry
    try:
        return parse_time(str(expiry))
    except ValueError:
        return 1 << 63

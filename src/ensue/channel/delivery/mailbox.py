"""What waits for one consumer, and the promises under which it does.

In come events, from any thread; each is queued, takes the place of another, or is dropped and
counted, as the consumer's `Quality` says. Everything is guarded by one lock, which is held for
moments. The queue belongs to the consumer and not to a dispatching strategy: that is why strategies
can be swapped under load with nothing lost or doubled. Who takes events out again, and when, is the
business of `receivers`; what `losses`, `waiting` and `Reading` do is told there.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ensue.channel.delivery.drops import Losses
from ensue.channel.delivery.event_queue import Inbox, Slot
from ensue.channel.delivery.steps import Guard, Reading, Step
from ensue.channel.delivery.waiters import Waiting, Wake
from ensue.channel.policies import Block, Disconnect, DropOldest, Quality, Reason, conflation
from ensue.channel.timing.clock import Clock, DurationLike, microseconds_in
from ensue.channel.timing.clock_events import Tick, Timeout
from ensue.events.event import Event

FULL, QUEUED, READY = range(3)
"""What became of an event that was offered: the supplier has to wait; it is dealt with; it is dealt
with, and a strategy has to be told that the receiver has something to do."""

_TICK_KEY = object()


Call = Callable[[Event], Any]
"""What a consumer is called by: a function, or a coroutine function where asyncio dispatches."""


class MailboxContext(Protocol):
    """What a mailbox needs of its channel.

    `is_timed` says that some consumer has asked for something that depends on when an event came.
    """

    clock: Clock
    on_drop: Callable[[str, Event, Reason], None] | None
    is_timed: bool


class Mailbox(ABC):
    """Without a `call`, events are pulled, and no strategy is asked for turns."""

    def __init__(
        self,
        name: str,
        number: int,
        call: Call | None,
        quality: Quality,
        around: MailboxContext,
        step: Step | None,
    ) -> None:
        self.name = name
        self.number = number
        self.call = call
        self.around = around
        self.state = "connected"
        self.last_satisfied = around.clock.now()
        self._offered = 0
        self._lock = threading.Lock()
        # Whoever has the turn has taken this out: one step that nothing can cut in two, as with a
        # lock that nobody waits for, at a quarter of its price.
        self.turn_token: list[None] = [None]
        self._waiting = Waiting(self._lock)
        self._losses = Losses(name, around.on_drop)
        self._inbox = Inbox()
        self._outbox: deque[Slot] = deque()
        self._reason_for_leaving = Reason.DISCONNECTED
        self.is_in_line = False
        self._level_in_line = 0
        self._standing = (0, 0, 0)
        self._reading = Reading(step)
        self._is_watched = False
        self.require(quality)

    @abstractmethod
    def ask_for_turns(self) -> None:
        """There is something to do."""

    @abstractmethod
    def _has_left(self) -> None:
        """An offer has found the consumer disconnected."""

    # --- promises ------------------------------------------------------------------------------

    def require(self, quality: Quality) -> None:
        """Change what the consumer is promised, from the next event on."""
        with self._lock:
            before = self._standing
            self.quality = quality
            self.rank = (-quality.priority, -quality.sub_priority, self.number)
            self._standing = (-quality.priority, -quality.sub_priority, 0)
            self._capacity = quality.capacity
            self._deadline = _length(quality.deadline)
            self._time_to_live = _length(quality.time_to_live)
            self._key_of = conflation(quality.conflate)
            self._choose_ways()
            # There may be room now where there was none, or a policy that does not wait for it.
            self._waiting.wake_all()
            must_move = self._standing != before and self.is_in_line and bool(self.turn_token)
        if must_move and self.call is not None:
            # What waits has its place in line by the promises of before.
            self.ask_for_turns()

    def change_step(self, step: Step | None, guard: Guard | None) -> None:
        """Let a new step read what comes from now on; what waits is still the old one's."""
        with self._lock:
            self._send_out(self._reading.replace(step, guard))
            self._choose_ways()
            must_run = self._must_stand_in_line()
        if must_run:
            self.ask_for_turns()

    def watch(self) -> None:
        """A watchdog has to know when the consumer was last told something."""
        with self._lock:
            self._is_watched = True
            self._choose_ways()

    def _choose_ways(self) -> None:
        """Which short cuts are open, as long as nothing changes that would stand in their way."""
        self._is_shut = self.state in ("suspended", "disconnected")
        is_unguarded = self.state == "connected" and self._reading.guard is None
        may_call = is_unguarded and self._reading.step is None and self.call is not None
        self._may_queue = may_call and self._key_of is None
        self.is_timed = self._is_watched or self._deadline is not None
        self.call_at_once: Call | None = self.call if may_call else None
        if self.is_timed or self._time_to_live is not None:
            self.around.is_timed = True

    # --- offering ------------------------------------------------------------------------------

    def accept(self, event: Event, now: int) -> int:
        """Queue an event, or drop one as the policy says: `FULL`, `QUEUED` or `READY`."""
        with self._lock:
            if self._may_queue and self._inbox.size < self._capacity and not event.extensions:
                # Nearly every event goes this way, and each of its consumers pays for it.
                self._offered += 1
                self.last_satisfied = now
                self._inbox.put_plain(event, now)
                if self.is_in_line:
                    return READY if self._must_stand_in_line() else QUEUED
                self.is_in_line = True
                return READY
            if not self._has_room(event):
                return FULL
            must_run = self._take_in(event, now)
            if self.call is None:
                self._waiting.wake_all()
                must_run = False
        self._settle_losses()
        return READY if must_run else QUEUED

    def offer(self, event: Event, since: int | None = None) -> bool:
        """Queue an event, or drop one as the policy says. False: full, and the supplier waits.

        It counts from now, or since when it was published.
        """
        answer = self.accept(event, self.around.clock.now() if since is None else since)
        if answer == READY:
            self.ask_for_turns()
        return answer != FULL

    def offer_timeout(self, event: Timeout) -> None:
        """A timeout counts from when it was due, however late the clock came to it."""
        with self._lock:
            has_room = self._has_room(event)
            must_run = has_room and self._take_in(event, event.time)
            if self.call is None:
                self._waiting.wake_all()
                must_run = False
        if not has_room:
            # The clock waits for nobody.
            self.give_up(event)
            return
        self._settle_losses()
        if must_run:
            self.ask_for_turns()

    def offer_within(self, event: Event, seconds: float) -> bool:
        """Wait for room, up to a time, then offer; False if there was none and it was dropped."""
        deadline = time.monotonic() + seconds
        while not self.offer(event):
            left = deadline - time.monotonic()
            if left <= 0:
                self.give_up(event)
                return False
            try:
                with self._lock:
                    if not self._has_room(event):
                        self._waiting.wait(left)
            except BaseException:
                # An interrupt: whoever waited will not offer it again.
                self.give_up(event)
                raise
        return True

    def give_up(self, event: Event) -> None:
        """The supplier has waited long enough."""
        with self._lock:
            self._offered += 1
            self._losses.note(event, Reason.BLOCKED)
        self._losses.tell()

    def when_room(self, wake: Wake) -> None:
        """Have `wake` called once, when there is room; at once if there is some now."""
        with self._lock:
            if self._inbox.size >= self._capacity and self.state == "connected":
                self._waiting.add(wake)
                return
        wake()

    @property
    def priority(self) -> int:
        """The consumer's priority."""
        return self.quality.priority

    @property
    def patience(self) -> float:
        """How many seconds a supplier waits for room."""
        overflow = self.quality.overflow
        return overflow.seconds if isinstance(overflow, Block) else 0.0

    def tick(self, now: int) -> None:
        """Let time pass for the step, in its place among the events that wait."""
        with self._lock:
            step = self._reading.step
            if step is None or self.state != "connected":
                return
            tick = Tick("tick", "", "", now)
            held = self._inbox.waiting_under(_TICK_KEY)
            if held is not None:
                held.event = tick
                return
            self._put(Slot(tick, now, 0, step, _TICK_KEY))
            must_run = self.call is not None and self._must_stand_in_line()
            if self.call is None:
                self._waiting.wake_all()
        if must_run:
            self.ask_for_turns()

    # --- the end -------------------------------------------------------------------------------

    def finish(self) -> None:
        """Take no more, but let whoever pulls have what waits."""
        with self._lock:
            self._become("finished")

    def disconnect(self, reason: Reason = Reason.DISCONNECTED) -> int:
        """Take no more; count what still waits under the reason, and say how many that is."""
        with self._lock:
            count = self._leave(reason)
        self._losses.tell()
        return count

    def _settle_losses(self) -> None:
        """Tell of what an offer has cost, be it the consumer's own place."""
        if self._losses.untold:
            self._losses.tell()
        if self.state == "disconnected":
            self._has_left()

    # --- whoever pulls, and whoever asks -------------------------------------------------------

    def wait_for_event(self, seconds: float | None) -> None:
        """Wait until something is queued or the consumer is disconnected, for whoever pulls."""
        with self._lock:
            if self._is_idle():
                self._waiting.wait(seconds)

    def forget(self, wake: Wake) -> None:
        """Whoever was to be woken does not wait any more."""
        with self._lock:
            self._waiting.remove(wake)

    def when_event(self, wake: Wake) -> None:
        """Have `wake` called once, when something is queued or the consumer is disconnected."""
        with self._lock:
            if self._is_idle():
                self._waiting.add(wake)
                return
        wake()

    def _is_idle(self) -> bool:
        return not (self._inbox.size or self._outbox) and self.state == "connected"

    @property
    def is_busy(self) -> bool:
        with self._lock:
            # What is taken out of the queue is taken in a turn: one of the two shows it.
            return bool(self._inbox.size or self._outbox) or not self.turn_token

    @property
    def dropped(self) -> dict[Reason, int]:
        with self._lock:
            return dict(self._losses.counts)

    # --- with the lock held -----------------------------------------------------------------------

    def _has_room(self, event: Event) -> bool:
        """Whether the event's fate can be decided now; only `Block` lets a supplier wait."""
        return (
            self._inbox.size < self._capacity
            or self.state != "connected"
            or not isinstance(self.quality.overflow, Block)
            or self._inbox.waiting_under(self._key(event)) is not None
        )

    def _key(self, event: Event) -> object:
        """What the event is a value of, if a newer one takes the place of an older one."""
        return None if self._key_of is None or type(event) is Timeout else self._key_of(event)

    def _take_in(self, event: Event, now: int) -> bool:
        """Queue or drop; whether the receiver has to stand in line."""
        is_timeout = type(event) is Timeout
        guard = self._reading.guard
        if guard is not None and not is_timeout and not guard(event):
            return False
        self._offered += 1
        if self.state != "connected":
            self._losses.note(event, self._reason_of_state())
            return False
        key = self._key(event)
        held = self._inbox.waiting_under(key)
        if held is not None:
            self._losses.note(held.event, Reason.CONFLATED)
            held.event, held.arrived = event, now
            if _priority_of(event) == held.level:
                return False
            self._inbox.move(held, _priority_of(event))
            return self._must_stand_in_line()
        if self._inbox.size >= self._capacity and not self._make_room(event):
            return False
        step = None if is_timeout else self._reading.step
        self._put(Slot(event, now, _priority_of(event), step, key))
        return self._must_stand_in_line()

    def _make_room(self, event: Event) -> bool:
        overflow = self.quality.overflow
        if isinstance(overflow, DropOldest):
            self._forget(self._inbox.take_least(), Reason.OLDEST)
            return True
        if isinstance(overflow, Disconnect):
            self._losses.note(event, Reason.DISCONNECTED)
            self._leave(Reason.DISCONNECTED)
        else:
            self._losses.note(event, Reason.NEWEST)
        return False

    def _put(self, slot: Slot) -> None:
        if slot.step is not None:
            self._reading.queued(slot.step)
        elif type(slot.event) is not Timeout:
            self.last_satisfied = slot.arrived
        self._inbox.put(slot)

    def _must_stand_in_line(self) -> bool:
        if not (self._inbox.size or self._outbox):
            return False
        if not self.is_in_line:
            self.is_in_line = True
            return True
        # It stands in line already, but may have to stand further in front now.
        return self._inbox.top_level > self._level_in_line and bool(self.turn_token)

    def _send_out(self, events: Sequence[Event], arrived: int | None = None) -> None:
        """What a step has let through is next, unless the consumer has left meanwhile."""
        if self.state == "disconnected":
            for event in events:
                self._losses.note(event, self._reason_for_leaving)
        elif events:
            since = self.around.clock.now() if arrived is None else arrived
            self._outbox.extend(Slot(event, since, 0, None) for event in events)

    def _become(self, state: str) -> None:
        self.state = state
        self._choose_ways()
        self._waiting.wake_all()

    def _leave(self, reason: Reason) -> int:
        self._reason_for_leaving = reason
        self._become("disconnected")
        count = 0
        while self._inbox.size or self._outbox:
            slot = self._outbox.popleft() if self._outbox else self._inbox.take()
            count += type(slot.event) is not Tick
            self._forget(slot, reason)
        return count

    def _forget(self, slot: Slot, reason: Reason) -> None:
        if type(slot.event) is not Tick:
            self._losses.note(slot.event, reason)
        if slot.step is not None:
            self._send_out(self._reading.done(slot.step))

    def _reason_of_state(self) -> Reason:
        return Reason.SUSPENDED if self.state == "suspended" else self._reason_for_leaving


def _length(duration: DurationLike | None) -> int | None:
    return None if duration is None else microseconds_in(duration)


def _priority_of(event: Event) -> int:
    priority = event.extensions.get("priority", 0) if event.extensions else 0
    return priority if isinstance(priority, int) else 0

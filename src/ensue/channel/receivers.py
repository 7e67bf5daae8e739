"""One consumer from inside: its queue, its turns, its failures.

Whoever publishes offers an event; a dispatching strategy gives turns, and in each turn exactly one
thing is done: a step reads one event (a Python test, a group, a correlation), or the consumer is
called with one. So whatever takes long takes only its own consumer's turns. A receiver is run by
one thread at a time, and its queue belongs to it and not to the strategy: that is why strategies
can be swapped under load with nothing lost or doubled.

Priorities between receivers are the strategy's business, what an event means the step's. The file
is longer than most, since everything in it is guarded by one lock and has to be read together.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections import Counter, deque
from collections.abc import Callable

from ensue.channel.clock import DurationLike, microseconds_in
from ensue.channel.figures import ConsumerFigures
from ensue.channel.inbox import Inbox, Slot
from ensue.channel.policies import Block, Disconnect, DropOldest, Quality, Reason, conflation
from ensue.channel.steps import Step
from ensue.channel.turns import Call, Failure, Surroundings, Tick, Timeout
from ensue.events.event import Event
from ensue.events.times import parse_time

_TICK_KEY = object()


class Receiver:
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
        self.name = name
        self.number = number
        self.call = call
        self.is_coroutine = call is not None and is_coroutine(call)
        self.around = around
        self.state = "connected"
        self.failures = 0
        self.failed_in_row = 0
        self.wanted = 0
        self.delivered = 0
        self.dropped: Counter[Reason] = Counter()
        self.last_satisfied = around.clock.now()
        self.is_watched = False
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._wakers: list[Callable[[], None]] = []
        self._inbox = Inbox()
        self._outbox: deque[Slot] = deque()
        self._scheduled = False
        self._running = False
        self._waiting_level = 0
        self._step = step
        self._guard: Callable[[Event], bool] | None = None
        self._unread: Counter[int] = Counter()
        self._ending: dict[int, Step] = {}
        self._lost: list[tuple[Event, Reason]] = []
        self.require(quality)

    def require(self, quality: Quality) -> None:
        """Change what the consumer is promised, from the next event on."""
        with self._lock:
            self.quality = quality
            self.rank = (-quality.priority, -quality.sub_priority, self.number)
            self._deadline = _length(quality.deadline)
            self._time_to_live = _length(quality.time_to_live)
            self._key_of = conflation(quality.conflate)
            self._settle_shortcut()

    def _settle_shortcut(self) -> None:
        # What `direct` may do without a queue: call, and nothing else.
        self._is_plain = (
            self._step is None
            and self._deadline is None
            and self._guard is None
            and self.call is not None
            and self.state == "connected"
        )

    @property
    def step(self) -> Step | None:
        return self._step

    def change_step(self, step: Step | None, guard: Callable[[Event], bool] | None) -> None:
        """Let a new step read what comes from now on; what waits is still the old one's.

        Without a step, the guard keeps out what was found under the wants of before.
        """
        with self._lock:
            old, self._step = self._step, step
            self._guard = guard
            self._settle_shortcut()
            if old is None:
                return
            self._ending[id(old)] = old
            if not self._unread[id(old)]:
                self._finish(old)
            must_run = self._must_schedule()
        if must_run:
            self.around.dispatcher.ready(self)

    def _finish(self, step: Step) -> None:
        del self._ending[id(step)]
        self._unread.pop(id(step), None)
        now = self.around.clock.now()
        self._outbox.extend(Slot(event, now, 0, None) for event in step.finish())

    # --- offering ------------------------------------------------------------------------------

    def direct(self, event: Event) -> bool:
        """Call the consumer at once, if nothing stands in between. False means: offer it."""
        with self._lock:
            if self._scheduled or self._running or not self._is_plain or event.extensions:
                return False
            self._scheduled = self._running = True
            self.wanted += 1
        try:
            self.call(event)  # type: ignore[misc]
        except Exception as error:
            self._note_failure(event, error)
        else:
            self.delivered += 1
            self.failed_in_row = 0
        if self.is_watched:
            self.last_satisfied = self.around.clock.now()
        if self._has_more():
            self.around.dispatcher.ready(self)
        return True

    def offer(self, event: Event) -> bool:
        """Queue an event, or drop one as the policy says. False: full, and the supplier waits."""
        must_run = False
        with self._lock:
            if not self._has_room(event):
                return False
            must_run = self._accept(event)
        self._after_offer(must_run)
        return True

    def offer_within(self, event: Event, seconds: float) -> bool:
        """Wait for room, up to a time, then offer; False if there was none and it was dropped."""
        deadline = time.monotonic() + seconds
        with self._lock:
            while not self._has_room(event):
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._room.wait(left)
            has_room = self._has_room(event)
            must_run = has_room and self._accept(event)
        if not has_room:
            self.give_up(event)
            return False
        self._after_offer(must_run)
        return True

    def give_up(self, event: Event) -> None:
        """The supplier has waited long enough."""
        with self._lock:
            self.wanted += 1
            self._drop(event, Reason.BLOCKED)
        self._tell_lost()

    def when_room(self, wake: Callable[[], None]) -> None:
        """Have `wake` called once, when there is room; at once if there is some now."""
        with self._lock:
            if self._inbox.size >= self.quality.capacity and self.state == "connected":
                self._wakers.append(wake)
                return
        wake()

    @property
    def patience(self) -> float:
        """How many seconds a supplier waits for room."""
        overflow = self.quality.overflow
        return overflow.seconds if isinstance(overflow, Block) else 0.0

    def _has_room(self, event: Event) -> bool:
        """Whether the event's fate can be decided now; only `Block` lets a supplier wait."""
        return (
            self._inbox.size < self.quality.capacity
            or self.state != "connected"
            or not isinstance(self.quality.overflow, Block)
            or (self._key_of is not None and self._held(event) is not None)
        )

    def _accept(self, event: Event) -> bool:
        """Queue or drop; whether the receiver has to be scheduled. The lock is held."""
        if self._guard is not None and type(event) is not Timeout and not self._guard(event):
            return False
        self.wanted += 1
        if self.state != "connected":
            suspended = self.state == "suspended"
            self._drop(event, Reason.SUSPENDED if suspended else Reason.DISCONNECTED)
            return False
        key = None
        if self._key_of is not None and type(event) is not Timeout:
            key = self._key_of(event)
            held = self._inbox.waiting_under(key)
            if held is not None:
                self._drop(held.event, Reason.CONFLATED)
                held.event, held.arrived = event, self.around.clock.now()
                return False
        if self._inbox.size >= self.quality.capacity:
            overflow = self.quality.overflow
            if isinstance(overflow, DropOldest):
                self._forget(self._inbox.take_least(), Reason.OLDEST)
            elif isinstance(overflow, Disconnect):
                self._drop(event, Reason.DISCONNECTED)
                self._leave_locked()
                return False
            else:
                self._drop(event, Reason.NEWEST)
                return False
        # A timeout counts from when it was due, however late the clock's thread came to it.
        arrived = event.time if type(event) is Timeout else self.around.clock.now()
        self._put(Slot(event, arrived, _priority_of(event), self._step, key))
        return self._must_schedule()

    def _held(self, event: Event) -> Slot | None:
        return self._inbox.waiting_under(self._key_of(event)) if self._key_of else None

    def _put(self, slot: Slot) -> None:
        if type(slot.event) is Timeout:
            slot.step = None
        if slot.step is not None:
            self._unread[id(slot.step)] += 1
        elif type(slot.event) is not Timeout:
            self.last_satisfied = slot.arrived
        self._inbox.put(slot)

    def _must_schedule(self) -> bool:
        if not (self._inbox.size or self._outbox):
            return False
        if not self._scheduled:
            self._scheduled = True
            return True
        # It stands in line already, but may have to stand further in front now.
        return not self._running and self._inbox.top_level > self._waiting_level

    def _after_offer(self, must_run: bool) -> None:
        self._tell_lost()
        if self.state == "disconnected":
            self.around.leave(self)
        if self.call is None:
            self._wake_all()
        elif must_run:
            self.around.dispatcher.ready(self)

    def tick(self, now: int) -> None:
        """Let time pass for the step, in its place among the events that wait."""
        with self._lock:
            step = self._step
            if step is None or self.state != "connected":
                return
            tick = Tick("tick", "", "", now)
            held = self._inbox.waiting_under(_TICK_KEY)
            if held is not None:
                held.event = tick
                return
            self._put(Slot(tick, now, 0, step, _TICK_KEY))
            must_run = self._must_schedule()
        self._after_offer(must_run)

    # --- turns ---------------------------------------------------------------------------------

    def standing(self) -> tuple[int, ...]:
        """Where the receiver stands in line: read by a strategy when it is told it is ready."""
        self._waiting_level = level = self._inbox.top_level
        quality = self.quality
        return (-quality.priority, -quality.sub_priority, -level)

    def turn(self) -> bool:
        """Do one thing. True if there is more to do, and whoever calls has to see to it."""
        if not self._claim():
            return False
        slot = self._begin()
        if slot is not None:
            try:
                self.call(slot.event)  # type: ignore[misc]
            except Exception as error:
                self._note_failure(slot.event, error)
            else:
                self._note_success(slot)
        return self._has_more()

    async def turn_async(self) -> bool:
        """The same for consumers that are coroutines; the loop goes on while one waits."""
        if not self._claim():
            return False
        slot = self._begin()
        if slot is not None:
            try:
                await self.call(slot.event)  # type: ignore[misc]
            except Exception as error:
                self._note_failure(slot.event, error)
            else:
                self._note_success(slot)
        return self._has_more()

    def take(self) -> Event | None:
        """The next event, for whoever pulls; None if nothing waits."""
        more = self._claim()
        while more:
            slot = self._begin()
            if slot is not None:
                self._note_success(slot)
            more = self._has_more()
            if slot is not None:
                return slot.event
            if more and not self._claim():
                break
        return None

    def _claim(self) -> bool:
        """A turn is for one thread: if another has it, that one also sees what came since."""
        with self._lock:
            if self._running:
                return False
            self._running = True
            return True

    def _begin(self) -> Slot | None:
        """What the consumer is to be called with, or None if a step was all there was to do."""
        with self._lock:
            if self._outbox:
                slot = self._outbox.popleft()
            elif self._inbox.size:
                slot = self._inbox.take()
                if self._inbox.size == self.quality.capacity - 1:
                    self._make_room_known()
            else:
                return None
            step = slot.step
            if self.state in ("suspended", "disconnected"):
                suspended = self.state == "suspended"
                self._forget(slot, Reason.SUSPENDED if suspended else Reason.DISCONNECTED)
                return None
            if type(slot.event) is not Tick and self._is_over(slot):
                self._forget(slot, Reason.EXPIRED)
                return None
        if step is None:
            return slot
        self._run_step(step, slot)
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
                self._drop(lost, reason)
            if passed:
                self.last_satisfied = self.around.clock.now()
                self._outbox.extend(Slot(each, slot.arrived, slot.level, None) for each in passed)
            self._read_by(step)

    def _read_by(self, step: Step) -> None:
        self._unread[id(step)] -= 1
        if not self._unread[id(step)] and id(step) in self._ending:
            self._finish(step)

    def _has_more(self) -> bool:
        with self._lock:
            self._running = False
            more = bool(self._inbox.size or self._outbox)
            self._scheduled = more
        if self._lost:
            self._tell_lost()
        return more

    def _is_over(self, slot: Slot) -> bool:
        event = slot.event
        if self._time_to_live is None and not event.extensions:
            return False
        now = self.around.clock.now()
        if self._time_to_live is not None and now > slot.arrived + self._time_to_live:
            return True
        expiry = event.extensions.get("expirytime")
        return expiry is not None and now > _instant(expiry)

    # --- success, failure, end -----------------------------------------------------------------

    def _note_success(self, slot: Slot) -> None:
        self.delivered += 1
        self.failed_in_row = 0
        if self._deadline is not None:
            taken = self.around.clock.now() - slot.arrived
            self.around.meter.note(self.quality.priority, self._deadline, taken)

    def _note_failure(self, event: Event, error: Exception) -> None:
        with self._lock:
            self.failures += 1
            self.failed_in_row += 1
            self._drop(event, Reason.FAILED)
            allowed = self.quality.failures
            suspended = (
                allowed is not None and self.failed_in_row >= allowed and self.state == "connected"
            )
            if suspended:
                self.state = "suspended"
                self._settle_shortcut()
                self._make_room_known()
        self.around.on_failure(Failure(self.name, event, error, suspended))

    def resume(self) -> None:
        """Give a suspended consumer another chance."""
        with self._lock:
            if self.state == "suspended":
                self.state = "connected"
                self.failed_in_row = 0
                self._settle_shortcut()

    def finish(self) -> None:
        """Take no more, but let whoever pulls have what waits."""
        with self._lock:
            self.state = "finished"
            self._settle_shortcut()
        self._wake_all()

    def disconnect(self, reason: Reason = Reason.DISCONNECTED) -> int:
        """Take no more; count what still waits under the reason, and say how many that is."""
        with self._lock:
            count = self._leave_locked(reason)
        self._tell_lost()
        self._wake_all()
        return count

    def _leave_locked(self, reason: Reason = Reason.DISCONNECTED) -> int:
        self.state = "disconnected"
        self._settle_shortcut()
        count = 0
        while self._inbox.size or self._outbox:
            slot = self._outbox.popleft() if self._outbox else self._inbox.take()
            count += type(slot.event) is not Tick
            self._forget(slot, reason)
        self._make_room_known()
        return count

    def _forget(self, slot: Slot, reason: Reason) -> None:
        if type(slot.event) is not Tick:
            self._drop(slot.event, reason)
        if slot.step is not None:
            self._read_by(slot.step)

    def _drop(self, event: Event, reason: Reason) -> None:
        self.dropped[reason] += 1
        if self.around.on_drop is not None:
            self._lost.append((event, reason))

    def _tell_lost(self) -> None:
        """Report drops once no lock is held, for whoever listens may use the channel."""
        if self.around.on_drop is None:
            return
        while self._lost:
            with self._lock:
                lost, self._lost = self._lost, []
            for event, reason in lost:
                self.around.on_drop(self.name, event, reason)

    def _make_room_known(self) -> None:
        self._room.notify_all()
        wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    def _wake_all(self) -> None:
        with self._lock:
            self._make_room_known()

    def wait_for_event(self, seconds: float | None) -> None:
        """Wait until something is queued or the consumer is disconnected, for whoever pulls."""
        with self._lock:
            if not (self._inbox.size or self._outbox) and self.state == "connected":
                self._room.wait(seconds)

    def when_event(self, wake: Callable[[], None]) -> None:
        """Have `wake` called once, when something is queued or the consumer is disconnected."""
        with self._lock:
            if not (self._inbox.size or self._outbox) and self.state == "connected":
                self._wakers.append(wake)
                return
        wake()

    @property
    def is_busy(self) -> bool:
        with self._lock:
            return self._running or bool(self._inbox.size or self._outbox)

    def figures(self) -> ConsumerFigures:
        with self._lock:
            return ConsumerFigures(
                self.name,
                self.state,
                self.wanted,
                self.delivered,
                self._inbox.size + len(self._outbox),
                self.failures,
                dict(self.dropped),
            )


def is_coroutine(call: Call) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def _length(duration: DurationLike | None) -> int | None:
    return None if duration is None else microseconds_in(duration)


def _priority_of(event: Event) -> int:
    priority = event.extensions.get("priority", 0) if event.extensions else 0
    return priority if isinstance(priority, int) else 0


def _instant(expiry: object) -> int:
    """An expiry time that is none does not make its event expire."""
    if isinstance(expiry, int):
        return expiry
    try:
        return parse_time(str(expiry))
    except ValueError:
        return 1 << 63

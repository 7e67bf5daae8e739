"""Consumers: their wants, their quality of service and their timeouts.

`ConsumerAdmin` connects consumers; a `Consumer` is the handle that the user gets. Its wants, its
quality and its timeouts can be changed at any time. `delivery` does the queueing and the turns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ensue.channel.delivery.mailbox import Call
from ensue.channel.delivery.receiver import Receiver
from ensue.channel.lookup.interests import interests
from ensue.channel.lookup.lookup import Lookup
from ensue.channel.lookup.wants import Correlated, EventWant, Wants, as_wants
from ensue.channel.policies import Quality, Reason
from ensue.errors import UsageError

if TYPE_CHECKING:
    from ensue.channel.delivery.steps import AwayStep, DeliveryStep
    from ensue.channel.figures.values import ConsumerFigures
    from ensue.channel.scheduling.measured import ChannelSchedule
    from ensue.channel.timing.clock import DurationLike
    from ensue.channel.timing.timeouts import ConsumerTimer, Timeouts
    from ensue.events.event import Event


class ConsumerHost(Protocol):
    """What consumers need of their channel."""

    quality: Quality

    @property
    def schedule(self) -> ChannelSchedule: ...

    @property
    def lookup(self) -> Lookup[Receiver]: ...

    def new_receiver(
        self, name: str, number: int, call: Call | None, quality: Quality, step: DeliveryStep | None
    ) -> Receiver: ...

    def step_for(self, wants: Wants, owner: str) -> DeliveryStep | None: ...

    def check_wants(self, wants: Wants) -> None: ...

    def guard_for(self, wants: Wants) -> Callable[[Event], bool] | None: ...

    def timeouts(self) -> Timeouts: ...

    def wants_changed(self) -> None: ...

    @property
    def is_closed(self) -> bool: ...

    def keep_counts_of(self, receiver: Receiver) -> None: ...


class Consumer:
    """A connected consumer.

    While its rule runs in a linked channel, and if it runs the rule of one, the look-up does not
    know it. Its rule `may_move` until a channel is linked.
    """

    def __init__(
        self, admin: ConsumerAdmin, channel: ConsumerHost, receiver: Receiver, wants: Wants
    ) -> None:
        self._admin = admin
        self._channel = channel
        self._receiver = receiver
        self._timers: list[ConsumerTimer] = []
        self._changing = threading.Lock()
        self._has_left = False
        self._offered_before = 0
        self.wants = wants
        self.may_move = isinstance(wants, Correlated)
        self.is_looked_up = True

    @property
    def name(self) -> str:
        return self._receiver.name

    @property
    def state(self) -> str:
        """`connected`, `suspended` or `disconnected`."""
        return self._receiver.state

    @property
    def has_left(self) -> bool:
        return self._has_left or self.state == "disconnected"

    @property
    def quality(self) -> Quality:
        return self._receiver.quality

    @property
    def receiver(self) -> Receiver:
        """The consumer's queue and turns, for use inside the channel."""
        return self._receiver

    @property
    def figures(self) -> ConsumerFigures:
        return self._receiver.figures()

    def change(self, wants: Wants | str | None) -> None:
        """Replace the wants. Events that are queued are still read under the old wants."""
        new = as_wants(wants)
        with self._changing:
            step = self._channel.step_for(new, self.name)
            # What the old wants have asked linked channels for may be on its way.
            self.may_move = False
            self.is_looked_up = True
            # Before the step: the new step sets its alarm when it reads its first event.
            self.set_alarm_for(step)
            self._receiver.change_step(step, self._channel.guard_for(new) if step is None else None)
            self.wants = new
            self._put_in_lookup()
        self._channel.wants_changed()

    def looked_up(self) -> tuple[EventWant, ...]:
        """What the look-up of its channel has to find for it."""
        return tuple(interests(self.wants)) if self.is_looked_up else ()

    def run_away(self, step: AwayStep, wanted: Correlated) -> bool:
        """Let the rule that is wanted run elsewhere. False if it has read an event here."""
        with self._changing:
            if self.wants is not wanted:
                return False
            if not self._receiver.change_step(step, None, self._offered_before):
                return False
            self.set_alarm_for(None)
            self.is_looked_up = False
            self._put_in_lookup()
            return True

    def run_here(self, wanted: Correlated) -> None:
        """Let the rule that ran elsewhere begin anew here."""
        with self._changing:
            if self.wants is wanted and not self.has_left:
                step = self._channel.step_for(wanted, self.name)
                self.set_alarm_for(step)
                self._offered_before = self._receiver.offered
                self._receiver.change_step(step, None)
                self.is_looked_up = True
                self._put_in_lookup()

    def require(self, **quality: Any) -> None:
        """Change the quality of service: priority, capacity and the other fields of `Quality`."""
        with self._changing:
            self._receiver.require(self._receiver.quality.changed(**quality))
            if self._receiver.state != "disconnected":
                self._put_in_lookup()

    def unchanged(self) -> AbstractContextManager[bool]:
        """A block in which neither wants nor quality change."""
        return self._changing

    def _put_in_lookup(self) -> None:
        """Put the consumer into the look-up, unless another thread disconnects it meanwhile."""
        self._channel.lookup.put(self._receiver, self.looked_up())
        # `disconnect` sets `_has_left` before it removes the consumer from the look-up. So either
        # its removal comes after the `put` above, or the flag is seen here.
        if self.has_left:
            self._channel.lookup.remove(self._receiver)

    def every(self, period: DurationLike, name: str = "interval") -> ConsumerTimer:
        """Call the consumer with a timeout at an interval."""
        return self._timer("interval", period, name)

    def deadline(self, period: DurationLike, name: str = "deadline") -> ConsumerTimer:
        """Call the consumer with a timeout after every period without a notification."""
        return self._timer("deadline", period, name)

    def resume(self) -> None:
        """Let a suspended consumer receive events again."""
        self._receiver.resume()

    def disconnect(self) -> int:
        """Leave the channel; returns how many waiting events are dropped."""
        self._has_left = True
        self.stop_timers()
        is_known = self._admin.remove(self)
        dropped = self._receiver.disconnect()
        if is_known:
            self._channel.keep_counts_of(self._receiver)
        return dropped

    def stop_timers(self) -> None:
        timers, self._timers = self._timers, []
        for timer in timers:
            timer.cancel()
        self.set_alarm_for(None)

    def set_alarm_for(self, step: DeliveryStep | None) -> None:
        """Replace the alarm by one for a step with timers; cancel it for a step without."""
        before, self._receiver.alarm = self._receiver.alarm, None
        if before is not None:
            before.cancel()
        if step is not None and step.grace is not None:
            self._receiver.alarm = self._channel.timeouts().alarm(self._receiver, step.grace)

    def _timer(self, kind: Any, period: DurationLike, name: str) -> ConsumerTimer:
        timer = self._channel.timeouts().add(self._receiver, kind, period, name)
        self._timers.append(timer)
        return timer


class ConsumerAdmin:
    """Connects consumers, and finds them by name."""

    def __init__(self, channel: ConsumerHost) -> None:
        self._channel = channel
        self._consumers: dict[str, Consumer] = {}
        self._lock = threading.Lock()
        self._connected = 0

    def connect(
        self,
        name: str,
        call: Call | None,
        wants: Wants | str | None = None,
        *,
        operation: str | None = None,
        **quality: Any,
    ) -> Consumer:
        """Connect a consumer.

        `call` is the function to call with events; with None, the consumer pulls its events.
        Without `wants` it gets every event. `quality` has fields of `Quality`; as an `operation`
        of the channel's schedule it has the priority and the deadline of that, and is measured.
        """
        if call is not None and not callable(call):
            raise UsageError(
                f"the consumer `{name}` needs a function to call with events; given is `{call!r}`"
            )
        if operation is not None:
            quality = self._channel.schedule.quality_of(operation) | quality
            if call is not None:
                call = self._channel.schedule.measured(operation, call)
        wanted = as_wants(wants)
        required = self._channel.quality.changed(**quality)
        step = self._channel.step_for(wanted, name)
        before = self._consumers.get(name)
        if before is not None and before.state == "disconnected":
            # Its overflow policy has disconnected it, so its name is free.
            before.disconnect()
        with self._lock:
            consumer = self._add(name, call, wanted, required, step)
            receiver = consumer.receiver
            self._channel.lookup.put(receiver, consumer.looked_up())
        self._channel.wants_changed()
        if self._channel.is_closed:
            # Another thread has closed the channel meanwhile, and did not see this consumer.
            if call is None:
                receiver.finish()
            else:
                receiver.disconnect(Reason.DISCARDED)
        return consumer

    def host(self, name: str, call: Call, wanted: Correlated) -> Consumer:
        """Connect a consumer that runs a rule of a linked channel, and is given its events."""
        step = self._channel.step_for(wanted, name)
        with self._lock:
            consumer = self._add(name, call, wanted, Quality(failures=None), step)
            consumer.may_move = consumer.is_looked_up = False
        return consumer

    def _add(
        self,
        name: str,
        call: Call | None,
        wanted: Wants,
        quality: Quality,
        step: DeliveryStep | None,
    ) -> Consumer:
        # Parts of the channel may have been taken away meanwhile.
        self._channel.check_wants(wanted)
        if name in self._consumers:
            raise UsageError(f"a consumer `{name}` is connected already: choose another name")
        self._connected += 1
        receiver = self._channel.new_receiver(name, self._connected, call, quality, step)
        consumer = Consumer(self, self._channel, receiver, wanted)
        consumer.set_alarm_for(step)
        self._consumers[name] = consumer
        return consumer

    @contextmanager
    def standing_still(self) -> Iterator[list[Consumer]]:
        """The consumers, none of which comes, goes or changes its wants within the block."""
        with self._lock, ExitStack() as stack:
            consumers = list(self._consumers.values())
            for each in consumers:
                stack.enter_context(each.unchanged())
            yield consumers

    def remove(self, consumer: Consumer) -> bool:
        """Remove a consumer. False if it was not connected."""
        with self._lock:
            is_known = self._consumers.get(consumer.name) is consumer
            if is_known:
                del self._consumers[consumer.name]
        self._channel.lookup.remove(consumer.receiver)
        self._channel.wants_changed()
        return is_known

    def of(self, receiver: Receiver) -> Consumer | None:
        found = self._consumers.get(receiver.name)
        return found if found is not None and found.receiver is receiver else None

    def __getitem__(self, name: str) -> Consumer:
        return self._consumers[name]

    def __contains__(self, name: object) -> bool:
        return name in self._consumers

    def __iter__(self) -> Iterator[Consumer]:
        return iter(list(self._consumers.values()))

    def __len__(self) -> int:
        return len(self._consumers)

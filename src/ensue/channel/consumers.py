"""Consumers: who is called, what they want, and what they are promised.

`ConsumerAdmin` connects and disconnects them; a `Consumer` is what the outside holds of one. Its
wants, its promises and its timeouts can be changed at any time. How it gets its turns is the
business of `receivers` and of the dispatching strategy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from ensue.channel.delivery.mailbox import Call
from ensue.channel.delivery.receiver import Receiver
from ensue.channel.lookup.interests import interests
from ensue.channel.lookup.lookup import LookUp
from ensue.channel.lookup.wants import Wants, as_wants, is_decided_by_one_event
from ensue.channel.policies import Quality
from ensue.errors import UsageError

if TYPE_CHECKING:
    from ensue.channel.delivery.steps import Step
    from ensue.channel.figures.values import ConsumerFigures
    from ensue.channel.timing.clock import DurationLike
    from ensue.channel.timing.timeouts import Timeouts, Timer
    from ensue.events.event import Event


class ConsumerHost(Protocol):
    """What consumers need of their channel."""

    quality: Quality

    @property
    def look_up(self) -> LookUp[Receiver]: ...

    def new_receiver(
        self, name: str, number: int, call: Call | None, quality: Quality, step: Step | None
    ) -> Receiver: ...

    def step_for(self, wants: Wants, owner: str) -> Step | None: ...

    def guard_for(self, wants: Wants) -> Callable[[Event], bool] | None: ...

    def timeouts(self) -> Timeouts: ...

    def wants_changed(self) -> None: ...

    def remember(self, receiver: Receiver) -> None: ...


class Consumer:
    """A connected consumer."""

    def __init__(
        self, admin: ConsumerAdmin, channel: ConsumerHost, receiver: Receiver, wants: Wants
    ) -> None:
        self._admin = admin
        self._channel = channel
        self._receiver = receiver
        self._timers: list[Timer] = []
        self._changing = threading.Lock()
        self.wants = wants

    @property
    def name(self) -> str:
        return self._receiver.name

    @property
    def state(self) -> str:
        """`connected`, `suspended` or `disconnected`."""
        return self._receiver.state

    @property
    def quality(self) -> Quality:
        return self._receiver.quality

    @property
    def receiver(self) -> Receiver:
        """What the rooms of a channel work with."""
        return self._receiver

    @property
    def figures(self) -> ConsumerFigures:
        return self._receiver.figures()

    def change(self, wants: Wants | str | None) -> None:
        """Want something else from now on. What is queued is still dealt with as it was wanted."""
        new = as_wants(wants)
        with self._changing:
            step = self._channel.step_for(new, self.name)
            # First the alarm, so that the step finds it when it reads its first event.
            self.set_alarm_for(step)
            self._receiver.change_step(step, self._channel.guard_for(new) if step is None else None)
            self._channel.look_up.put(self._receiver, tuple(interests(new)))
            self.wants = new
        self._channel.wants_changed()

    def require(self, **promises: Any) -> None:
        """Change what is promised: priority, capacity, overflow and the rest of `Quality`."""
        with self._changing:
            self._receiver.require(self._receiver.quality.changed(**promises))
            if self._receiver.state != "disconnected":
                self._channel.look_up.put(self._receiver, tuple(interests(self.wants)))

    def every(self, period: DurationLike, name: str = "interval") -> Timer:
        """Have the consumer called with a timeout at an interval."""
        return self._timer("interval", period, name)

    def deadline(self, period: DurationLike, name: str = "deadline") -> Timer:
        """Have the consumer called with a timeout whenever it was told nothing for so long."""
        return self._timer("deadline", period, name)

    def resume(self) -> None:
        """End a suspension."""
        self._receiver.resume()

    def disconnect(self) -> int:
        """Leave the channel. Says how many waiting events are dropped by that."""
        self.stop_timers()
        is_known = self._admin.forget(self)
        dropped = self._receiver.disconnect()
        if is_known:
            self._channel.remember(self._receiver)
        return dropped

    def stop_timers(self) -> None:
        timers, self._timers = self._timers, []
        for timer in timers:
            timer.cancel()
        self.set_alarm_for(None)

    def set_alarm_for(self, step: Step | None) -> None:
        """Let the channel's clock move a step that has timers in it."""
        before, self._receiver.alarm = self._receiver.alarm, None
        if before is not None:
            before.cancel()
        if step is not None and step.grace is not None:
            self._receiver.alarm = self._channel.timeouts().alarm(self._receiver, step.grace)

    def _timer(self, kind: Any, period: DurationLike, name: str) -> Timer:
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
        **promises: Any,
    ) -> Consumer:
        """Connect a consumer: what to call, what it wants (everything, if left out), and what it
        is promised, by the names of `Quality`. Without a `call`, its events are pulled."""
        if call is not None and not callable(call):
            raise UsageError(
                f"the consumer `{name}` is to be called with events; given is `{call!r}`"
            )
        wanted = as_wants(wants)
        quality = self._channel.quality.changed(**promises)
        step = self._channel.step_for(wanted, name)
        before = self._consumers.get(name)
        if before is not None and before.state == "disconnected":
            # It did not keep up and was taken off; its name is free again.
            before.disconnect()
        with self._lock:
            if name in self._consumers:
                raise UsageError(f"a consumer `{name}` is connected already: choose another name")
            self._connected += 1
            receiver = self._channel.new_receiver(name, self._connected, call, quality, step)
            consumer = Consumer(self, self._channel, receiver, wanted)
            consumer.set_alarm_for(step)
            self._channel.look_up.put(receiver, tuple(interests(wanted)))
            self._consumers[name] = consumer
        self._channel.wants_changed()
        return consumer

    def forget(self, consumer: Consumer) -> bool:
        """Take a consumer off the list. False if it was not on it."""
        with self._lock:
            is_known = self._consumers.get(consumer.name) is consumer
            if is_known:
                del self._consumers[consumer.name]
        self._channel.look_up.remove(consumer.receiver)
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


def needs_step(wants: Wants) -> bool:
    return not is_decided_by_one_event(wants)

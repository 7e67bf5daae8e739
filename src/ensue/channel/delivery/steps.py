"""The interface of steps, which read events between the look-up and one consumer.

A step belongs to one consumer, runs in its turns, one event at a time, and may keep state:
`conditions` has the steps of groups and Python tests, `correlation` those of correlations. A step
can be replaced under load. It still reads the events that were queued for it, so that none is lost
or read twice; `StepVersions` counts these events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ensue.channel.policies import Reason
from ensue.events.event import Event


class DeliveryStep(Protocol):
    """Decides which events a consumer is called with. Methods return the events to deliver."""

    def read(self, event: Event) -> Sequence[Event]: ...

    def advance(self, now: int) -> Sequence[Event]:
        """Let time pass up to `now`."""

    def finish(self) -> Sequence[Event]:
        """End the step: no more events will come."""

    def take_drops(self) -> Sequence[tuple[Event, Reason]]:
        """Events that the step could not use, since the last call."""

    def next_due(self) -> int | None:
        """When `advance` has to be called next; None if the step waits for no time."""

    @property
    def grace(self) -> int | None:
        """The delay of `advance` in microseconds, in which earlier events can still arrive.

        None if the step has no timers.
        """


class RuleOutput(Event, frozen=True, kw_only=True):
    """The output of a rule that runs in a linked channel, as it waits for its consumer."""

    output: Event
    step: AwayStep


class AwayStep:
    """The step of a rule that runs in a linked channel, which sends its outputs.

    An event that was on its way to the rule when it left is sent on to it. The step `is_over` once
    the consumer wants something else.
    """

    grace = None

    def __init__(self, send_on: Callable[[Event], None]) -> None:
        self._send_on = send_on
        self.is_over = False

    def wrapped(self, output: Event) -> RuleOutput:
        fields = {name: getattr(output, name) for name in output.__struct_fields__}
        return RuleOutput(**fields, output=output, step=self)

    def read(self, event: Event) -> Sequence[Event]:
        if isinstance(event, RuleOutput):
            return (event.output,)
        self._send_on(event)
        return ()

    def advance(self, now: int) -> Sequence[Event]:  # noqa: ARG002 - part of the protocol
        return ()

    def finish(self) -> Sequence[Event]:
        return ()

    def take_drops(self) -> Sequence[tuple[Event, Reason]]:
        return ()

    def next_due(self) -> int | None:
        return None


Guard = Callable[[Event], bool]
"""Tests an event, which the look-up found by earlier wants, against the present wants.

Used only if the present wants need no step."""


class StepVersions:
    """The present step of a receiver, and replaced steps that still have queued events to read."""

    def __init__(self, step: DeliveryStep | None) -> None:
        self.step = step
        self.guard: Guard | None = None
        self._unread: dict[int, int] = {}
        self._ending: dict[int, DeliveryStep] = {}

    def replace(self, step: DeliveryStep | None, guard: Guard | None) -> Sequence[Event]:
        """Make another step the present one. Returns the last outputs of the old one if it ends."""
        old, self.step = self.step, step
        self.guard = guard
        if old is None:
            return ()
        self._ending[id(old)] = old
        return () if self._unread.get(id(old)) else self._finish(old)

    def queued(self, step: DeliveryStep) -> None:
        """Count an event that waits to be read by a step."""
        self._unread[id(step)] = self._unread.get(id(step), 0) + 1

    def done(self, step: DeliveryStep) -> Sequence[Event]:
        """Count an event as read or dropped. Returns the last outputs of the step if it ends."""
        self._unread[id(step)] -= 1
        if self._unread[id(step)] or id(step) not in self._ending:
            return ()
        return self._finish(step)

    def _finish(self, step: DeliveryStep) -> Sequence[Event]:
        del self._ending[id(step)]
        self._unread.pop(id(step), None)
        return step.finish()

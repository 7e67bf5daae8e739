"""What may stand between the look-up of a channel and one of its consumers.

A step belongs to one consumer, is run in that consumer's turn, one event at a time, and may
remember. `conditions` has those for groups and Python tests, `correlating` those for correlations.
`Reading` holds the step that a receiver has now, and those before it that still have to read what
was queued for them: so a step can be replaced under load with nothing lost or read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ensue.channel.policies import Reason
from ensue.events.event import Event


class Step(Protocol):
    """What stands between the look-up and a consumer."""

    def read(self, event: Event) -> Sequence[Event]: ...

    def advance(self, now: int) -> Sequence[Event]:
        """Let time pass."""

    def finish(self) -> Sequence[Event]:
        """What still follows from what was read, now that nothing more comes."""

    def take_drops(self) -> Sequence[tuple[Event, Reason]]:
        """Events that the step could not use, since it was last asked."""

    def next_due(self) -> int | None:
        """When it has to be told that time has passed; None if it waits for nothing."""

    @property
    def grace(self) -> int | None:
        """By how many microseconds it may be told later, so that events made before can arrive.

        None if time means nothing to it.
        """


Guard = Callable[[Event], bool]
"""Whether an event that was found by the wants of before is still wanted, where no step reads."""


class Reading:
    """The steps of one receiver, and how much each has still to read."""

    def __init__(self, step: Step | None) -> None:
        self.step = step
        self.guard: Guard | None = None
        self._unread: dict[int, int] = {}
        self._ending: dict[int, Step] = {}

    def replace(self, step: Step | None, guard: Guard | None) -> Sequence[Event]:
        """Let another step read from now on. Returns what the old one ends with, if it can end."""
        old, self.step = self.step, step
        self.guard = guard
        if old is None:
            return ()
        self._ending[id(old)] = old
        return () if self._unread.get(id(old)) else self._finish(old)

    def queued(self, step: Step) -> None:
        """One more event waits to be read by a step."""
        self._unread[id(step)] = self._unread.get(id(step), 0) + 1

    def done(self, step: Step) -> Sequence[Event]:
        """One of them was read, or never will be. Returns what the step ends with, if it ends."""
        self._unread[id(step)] -= 1
        if self._unread[id(step)] or id(step) not in self._ending:
            return ()
        return self._finish(step)

    def _finish(self, step: Step) -> Sequence[Event]:
        del self._ending[id(step)]
        self._unread.pop(id(step), None)
        return step.finish()

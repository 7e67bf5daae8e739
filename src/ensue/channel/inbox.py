"""What waits for one consumer: in order of event priority, then of arrival.

Nearly all events have no priority of their own, and then this is one deque. Events that have one
(the extension `priority`, an integer, 0 if left out, the larger first) get a deque for each value.
With conflation a newer value takes the place of the one that waits. Bounds and what happens at
them are the business of `receivers`; nothing here is locked.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.steps import Step


class Slot:
    """A place in the queue: an event, when it arrived, and the step that has to read it first."""

    __slots__ = ("arrived", "event", "key", "level", "step")

    def __init__(
        self, event: Event, arrived: int, level: int, step: Step | None, key: object = None
    ) -> None:
        self.event = event
        self.arrived = arrived
        self.level = level
        self.step = step
        self.key = key


class Inbox:
    def __init__(self) -> None:
        self._levels: dict[int, deque[Slot]] = {0: deque()}
        self._order = [0]
        self._by_key: dict[object, Slot] = {}
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def put(self, slot: Slot) -> None:
        level = self._levels.get(slot.level)
        if level is None:
            level = self._levels[slot.level] = deque()
            self._order = sorted(self._levels, reverse=True)
        level.append(slot)
        self.size += 1
        if slot.key is not None:
            self._by_key[slot.key] = slot

    def waiting_under(self, key: object) -> Slot | None:
        """The slot whose event a newer one of the same key may replace."""
        return self._by_key.get(key)

    @property
    def top_level(self) -> int:
        """The highest event priority that waits."""
        return next((level for level in self._order if self._levels[level]), 0)

    def take(self) -> Slot:
        """The next in line."""
        return self._taken(next(self._levels[n] for n in self._order if self._levels[n]))

    def take_least(self) -> Slot:
        """What can best be spared: the oldest of the lowest event priority."""
        return self._taken(next(self._levels[n] for n in reversed(self._order) if self._levels[n]))

    def _taken(self, level: deque[Slot]) -> Slot:
        slot = level.popleft()
        self.size -= 1
        if slot.key is not None:
            self._by_key.pop(slot.key, None)
        return slot

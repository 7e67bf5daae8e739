"""The events that wait for one consumer, by event priority and then by arrival.

The priority of an event is its extension `priority`: an integer, 0 by default; larger ones come
first. Nearly all events have priority 0, so the queue is mostly one deque; each other priority adds
a deque. With conflation, a newer event replaces a waiting event of the same key. `mailbox` applies
bounds and overflow policies. Nothing here is locked.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.delivery.steps import DeliveryStep


class Slot(msgspec.Struct, gc=False):
    """One waiting event: when it arrived, its priority, and the step that has to read it first.

    One is created for each event and consumer, hence a struct that is allocated in C. It cannot be
    part of a reference cycle, so the garbage collector does not track it.
    """

    event: Event
    arrived: int
    level: int
    step: DeliveryStep | None
    key: object = None


class EventQueue:
    """The queue of one consumer."""

    def __init__(self) -> None:
        self._plain: deque[Slot] = deque()
        self._levels: dict[int, deque[Slot]] = {0: self._plain}
        self._order = [0]
        self._by_key: dict[object, Slot] = {}
        self.size = 0

    def put(self, slot: Slot) -> None:
        level = self._levels.get(slot.level)
        if level is None:
            level = self._levels[slot.level] = deque()
            self._order = sorted(self._levels, reverse=True)
        level.append(slot)
        self.size += 1
        if slot.key is not None:
            self._by_key[slot.key] = slot

    def slot_of(self, key: object) -> Slot | None:
        """The waiting slot of a conflation key, whose event a newer one may replace."""
        return self._by_key.get(key)

    def move(self, slot: Slot, level: int) -> None:
        """Change the event priority of a waiting slot; it goes last among its new equals."""
        waiting = self._levels[slot.level]
        del waiting[next(n for n, each in enumerate(waiting) if each is slot)]
        self.size -= 1
        slot.level = level
        self.put(slot)

    @property
    def top_level(self) -> int:
        """The highest event priority that waits."""
        if len(self._order) == 1:
            return 0
        return next((level for level in self._order if self._levels[level]), 0)

    def put_plain(self, event: Event, arrived: int) -> None:
        """Queue an event that has no priority, no step and no conflation key."""
        self._plain.append(Slot(event, arrived, 0, None))
        self.size += 1

    def take(self) -> Slot:
        """Remove the oldest slot of the highest event priority."""
        if len(self._order) == 1:
            slot = self._plain.popleft()
            self.size -= 1
            if slot.key is not None:
                self._by_key.pop(slot.key, None)
            return slot
        return self._taken(next(self._levels[n] for n in self._order if self._levels[n]))

    def take_lowest(self) -> Slot:
        """Remove the oldest slot of the lowest event priority."""
        return self._taken(next(self._levels[n] for n in reversed(self._order) if self._levels[n]))

    def _taken(self, level: deque[Slot]) -> Slot:
        slot = level.popleft()
        self.size -= 1
        if slot.key is not None:
            self._by_key.pop(slot.key, None)
        return slot

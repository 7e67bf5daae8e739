"""What waits for one consumer: in order of event priority, then of arrival.

Nearly all events have no priority of their own, and then this is one deque. Events that have one
(the extension `priority`, an integer, 0 if left out, the larger first) get a deque for each value.
With conflation a newer value takes the place of the one that waits, if its priority is the same.
Bounds and what happens at
them are the business of `receivers`; nothing here is locked.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.delivery.steps import Step


class Slot(msgspec.Struct, gc=False):
    """A place in the queue: an event, when it arrived, and the step that has to read it first.

    One is made for each event and consumer: it is made in C, and the garbage collector does not
    look at it, since nothing that it holds can lead back to it.
    """

    event: Event
    arrived: int
    level: int
    step: Step | None
    key: object = None


class Inbox:
    def __init__(self) -> None:
        self._plain: deque[Slot] = deque()
        self._levels: dict[int, deque[Slot]] = {0: self._plain}
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

    def move(self, slot: Slot, level: int) -> None:
        """Give what waits another event priority, and the last place there."""
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
        """The same for most events: without a priority, a step or a key."""
        self._plain.append(Slot(event, arrived, 0, None))
        self.size += 1

    def take(self) -> Slot:
        """The next in line."""
        if len(self._order) == 1:
            slot = self._plain.popleft()
            self.size -= 1
            if slot.key is not None:
                self._by_key.pop(slot.key, None)
            return slot
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

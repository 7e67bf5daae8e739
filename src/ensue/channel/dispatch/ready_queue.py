"""Receivers that have work, by urgency; equally urgent ones in the order in which they came.

There is one deque for each schedule key (consumer priority, sub-priority, event priority) and a
heap of the keys in use, so that receivers of equal urgency cost no comparisons. A receiver that
becomes more urgent while it waits gets a second entry, and its older entry is skipped later (lazy
deletion). Every strategy has such queues. Nothing here is locked.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from ensue.channel.delivery.receiver import Receiver

EMPTY_QUEUES_KEPT = 64
"""How many empty deques are kept for reuse: an event's priority may be any integer."""


class ReadyQueue:
    """Receivers with work, by urgency."""

    def __init__(self) -> None:
        self._queues: dict[tuple[int, ...], deque[Receiver]] = {}
        self._keys: list[tuple[int, ...]] = []
        self.size = 0

    def put(self, receiver: Receiver) -> None:
        key = receiver.schedule_key()
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
        if not queue:
            heappush(self._keys, key)
        queue.append(receiver)
        self.size += 1
        receiver.scheduled_key = key

    def take(self) -> Receiver | None:
        """The most urgent receiver, or None if the queue is empty."""
        while self._keys:
            key = self._keys[0]
            queue = self._queues[key]
            receiver = queue.popleft()
            self.size -= 1
            if not queue:
                heappop(self._keys)
                if len(self._queues) > EMPTY_QUEUES_KEPT:
                    del self._queues[key]
            if receiver.scheduled_key == key:
                return receiver
        return None

    def take_all(self) -> list[Receiver]:
        return list(iter(self.take, None))

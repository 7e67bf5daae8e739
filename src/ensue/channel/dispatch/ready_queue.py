"""Receivers that have something to do, the most urgent first and the longest ready among equals.

There is a queue for each standing (consumer priority, sub-priority, event priority) and a heap of
the standings that have somebody: so what waits in one place costs no comparisons, however many do.
Every strategy keeps one. A receiver that has to stand further in front than it does is put in once
more; what is left of it in its old place is passed over. Nothing here is locked.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ensue.channel.delivery.receiver import Receiver

EMPTY_QUEUES_KEPT = 64
"""Standings come back again and again, but an event's priority may be any number."""


class Line:
    def __init__(self) -> None:
        self._queues: dict[tuple[int, ...], deque[Receiver]] = {}
        self._standings: list[tuple[int, ...]] = []
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def put(self, receiver: Receiver) -> None:
        standing = receiver.standing()
        queue = self._queues.get(standing)
        if queue is None:
            queue = self._queues[standing] = deque()
        if not queue:
            heappush(self._standings, standing)
        queue.append(receiver)
        self.size += 1
        receiver.place_in_line = standing

    def take(self) -> Receiver | None:
        """The next, or None if nobody is left."""
        while self._standings:
            standing = self._standings[0]
            queue = self._queues[standing]
            receiver = queue.popleft()
            self.size -= 1
            if not queue:
                heappop(self._standings)
                if len(self._queues) > EMPTY_QUEUES_KEPT:
                    del self._queues[standing]
            if receiver.place_in_line == standing:
                return receiver
        return None

    def take_all(self) -> list[Receiver]:
        return list(iter(self.take, None))

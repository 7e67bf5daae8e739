"""A queue of things to do at a time: a heap in which every callout knows its place.

Scheduling, cancelling and taking the first each cost O(log n), in the worst case too, since a
cancelled callout is taken out at once and leaves nothing behind to be skipped later. Callouts due
at one instant run by priority, then in the order of scheduling. Time itself passes in `clock`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Callout:
    """One thing to do at a time. `place` is where it stands in its heap, -1 when in none."""

    __slots__ = ("action", "order", "place")

    def __init__(self, order: tuple[int, int, int], action: Callable[[int], None]) -> None:
        self.order = order
        self.action = action
        self.place = -1

    @property
    def due(self) -> int:
        return self.order[0]


class CalloutQueue:
    """Callouts by their due times. Safe to use from several threads."""

    def __init__(self, on_new_first: Callable[[], None] = lambda: None) -> None:
        self._heap: list[Callout] = []
        self._lock = threading.Lock()
        self._scheduled = 0
        self._on_new_first = on_new_first

    def __len__(self) -> int:
        return len(self._heap)

    def schedule(self, due: int, action: Callable[[int], None], priority: int = 0) -> Callout:
        """Have `action` called with its due time, once that has come."""
        with self._lock:
            self._scheduled += 1
            callout = Callout((due, -priority, self._scheduled), action)
            self._heap.append(callout)
            self._rise(callout, len(self._heap) - 1)
            is_first = callout.place == 0
        if is_first:
            self._on_new_first()
        return callout

    def cancel(self, callout: Callout) -> bool:
        """Take a callout out. False if it has already run or been cancelled."""
        with self._lock:
            if callout.place < 0:
                return False
            self._remove(callout.place)
            return True

    def next_due(self) -> int | None:
        with self._lock:
            return self._heap[0].order[0] if self._heap else None

    def run_due(self, now: int, limit: int | None = None) -> int:
        """Run what is due at or before `now`, at most `limit` callouts; say how many ran."""
        ran = 0
        while limit is None or ran < limit:
            with self._lock:
                if not self._heap or self._heap[0].order[0] > now:
                    break
                callout = self._remove(0)
            callout.action(callout.order[0])
            ran += 1
        return ran

    def _remove(self, place: int) -> Callout:
        callout, last = self._heap[place], self._heap.pop()
        callout.place = -1
        if callout is not last:
            parent = (place - 1) // 2
            if place > 0 and last.order < self._heap[parent].order:
                self._rise(last, place)
            else:
                self._sink(last, place)
        return callout

    def _rise(self, callout: Callout, place: int) -> None:
        heap, order = self._heap, callout.order
        while place > 0:
            parent = (place - 1) // 2
            above = heap[parent]
            if above.order <= order:
                break
            heap[place] = above
            above.place = place
            place = parent
        heap[place] = callout
        callout.place = place

    def _sink(self, callout: Callout, place: int) -> None:
        heap, order, size = self._heap, callout.order, len(self._heap)
        while (child := 2 * place + 1) < size:
            if child + 1 < size and heap[child + 1].order < heap[child].order:
                child += 1
            below = heap[child]
            if order <= below.order:
                break
            heap[place] = below
            below.place = place
            place = child
        heap[place] = callout
        callout.place = place

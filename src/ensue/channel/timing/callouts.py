"""A queue of callouts: a binary heap in which every callout knows its position.

Scheduling, cancelling and removing the first cost O(log n) in the worst case: a cancelled callout
is removed at once and leaves no entry to skip later. Callouts due at the same instant run by
priority, then in the order of scheduling. `clock` decides when they run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Callout:
    """A function to call at its due time, the first part of `order`.

    `index` is its index in the heap, -1 if it is not in the heap.
    """

    __slots__ = ("action", "index", "order")

    def __init__(self, order: tuple[int, int, int], action: Callable[[int], None]) -> None:
        self.order = order
        self.action = action
        self.index = -1


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
        """Call `action` with its due time when that time has come."""
        with self._lock:
            self._scheduled += 1
            callout = Callout((due, -priority, self._scheduled), action)
            self._heap.append(callout)
            self._rise(callout, len(self._heap) - 1)
            is_first = callout.index == 0
        if is_first:
            self._on_new_first()
        return callout

    def cancel(self, callout: Callout) -> bool:
        """Remove a callout. False if it has run or was cancelled before."""
        with self._lock:
            if callout.index < 0:
                return False
            self._remove(callout.index)
            return True

    def next_due(self) -> int | None:
        with self._lock:
            return self._heap[0].order[0] if self._heap else None

    def run_due(self, now: int, limit: int | None = None) -> int:
        """Run callouts due at or before `now`, at most `limit`. Returns how many ran."""
        ran = 0
        while limit is None or ran < limit:
            with self._lock:
                if not self._heap or self._heap[0].order[0] > now:
                    break
                callout = self._remove(0)
            callout.action(callout.order[0])
            ran += 1
        return ran

    def _remove(self, index: int) -> Callout:
        callout, last = self._heap[index], self._heap.pop()
        callout.index = -1
        if callout is not last:
            parent = (index - 1) // 2
            if index > 0 and last.order < self._heap[parent].order:
                self._rise(last, index)
            else:
                self._sink(last, index)
        return callout

    def _rise(self, callout: Callout, index: int) -> None:
        heap, order = self._heap, callout.order
        while index > 0:
            parent = (index - 1) // 2
            above = heap[parent]
            if above.order <= order:
                break
            heap[index] = above
            above.index = index
            index = parent
        heap[index] = callout
        callout.index = index

    def _sink(self, callout: Callout, index: int) -> None:
        heap, order, size = self._heap, callout.order, len(self._heap)
        while (child := 2 * index + 1) < size:
            if child + 1 < size and heap[child + 1].order < heap[child].order:
                child += 1
            below = heap[child]
            if order <= below.order:
                break
            heap[index] = below
            below.index = index
            index = child
        heap[index] = callout
        callout.index = index

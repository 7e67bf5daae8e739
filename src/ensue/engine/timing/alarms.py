"""The alarms of instances: a lazy heap of due times.

In come instances that have read something or fired; out go instances whose timers are due, in the
order of the stream: by time, then by the place of the correlation in the library, then by the last
event that each has read. An alarm that is put off or stopped stays in the heap until its time has
come (lazy deletion), since most timers are set anew before they fire; when such alarms outnumber
the others, the heap is made anew without them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ensue.engine.instance import Instance

Owner = TypeVar("Owner")

FEWEST_ALARMS = 64
"""The fewest alarms in the heap for which it pays to look for those that are out of date."""


@dataclass(order=True, slots=True)
class Alarm(Generic[Owner]):
    """A due time of an instance; `order` and `last_read` order alarms that are due together."""

    due: int
    order: int
    last_read: int
    owner: Owner = field(compare=False)
    instance: Instance = field(compare=False)


class Alarms(Generic[Owner]):
    """The alarms of a stream. `heap` may be read by others: no alarm is due before its first."""

    def __init__(self) -> None:
        self.heap: list[Alarm[Owner]] = []
        self._most = FEWEST_ALARMS

    def __len__(self) -> int:
        return len(self.heap)

    def clear(self) -> None:
        self.heap.clear()
        self._most = FEWEST_ALARMS

    def arm(self, owner: Owner, order: int, instance: Instance) -> None:
        """Have an instance in the heap for when it is due next."""
        due = instance.next_due()
        if due is not None and due != instance.armed_for:
            heapq.heappush(self.heap, Alarm(due, order, instance.last_read, owner, instance))
        instance.armed_for = due
        if len(self.heap) > self._most:
            self._compact()

    def take(self, limit: int) -> Alarm[Owner] | None:
        """The first alarm that is due up to a time. Its instance fires now, and is armed again."""
        heap = self.heap
        while heap and heap[0].due <= limit:
            if self._first_stands():
                alarm = heapq.heappop(heap)
                alarm.instance.armed_for = None
                return alarm
        return None

    def next_due(self) -> int | None:
        """When the first timer is due."""
        heap = self.heap
        while heap and not self._first_stands():
            pass
        return heap[0].due if heap else None

    def _first_stands(self) -> bool:
        """Whether the first alarm stands; else it is put where it belongs, or nowhere."""
        heap = self.heap
        alarm = heap[0]
        if alarm.due != alarm.instance.armed_for:
            heapq.heappop(heap)
            return False
        if alarm.last_read != alarm.instance.last_read:
            # The instance has read events since, which leave it due at the same time.
            alarm.last_read = alarm.instance.last_read
            heapq.heapreplace(heap, alarm)
            return False
        return True

    def _compact(self) -> None:
        """Drop the alarms that are out of date; of an instance one is enough."""
        current = {
            id(each.instance): each for each in self.heap if each.due == each.instance.armed_for
        }
        # In place: generated code holds on to the heap.
        self.heap[:] = current.values()
        heapq.heapify(self.heap)
        self._most = max(FEWEST_ALARMS, 2 * len(self.heap))

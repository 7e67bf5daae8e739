"""When a stream has to look after its keys: alarms of timers, long advances, and sweeps.

- `Alarms` is a lazy heap of due times. In come instances that have read something or fired; out go
  instances whose timers are due, in the order of the stream: by time, then by the place of the
  correlation in the library, then by the last event that each has read. An alarm that is put off
  or stopped stays in the heap until its time has come (lazy deletion), since most timers are set
  anew before they fire; when such alarms outnumber the others, the heap is made anew without them.
- `advance_in_steps` moves a clock far in steps, so that the outputs of its timers need not all be
  held at once. How much a step brings about depends on the keys and on what they wait for, so the
  length of a step follows from the number of outputs of the step before.
- `Sweeps` says when to look through all keys for idle ones: when there are
  `growth` times as many keys as the last sweep has left, or when the clock has moved by the longest
  window or timeout of the rules. Where a sweep finds that most keys still hold something, the next
  one waits for twice that time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ensue.engine.instance import ENDLESS, Instance
from ensue.lang.derived.parts import timeouts_in
from ensue.lang.syntax import Correlation, EclCorrelation

Owner = TypeVar("Owner")

FEWEST_ALARMS = 64
"""The fewest alarms in the heap for which it pays to look for outdated ones."""


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
        """Put an alarm for the next due time of an instance into the heap."""
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
        """Whether the first alarm is up to date; if not, it is moved to its place or dropped."""
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
        # In place: the routines of event types hold on to the heap.
        self.heap[:] = current.values()
        heapq.heapify(self.heap)
        self._most = max(FEWEST_ALARMS, 2 * len(self.heap))


Outcome = TypeVar("Outcome", bound=Sized)

OUTPUTS_OF_A_STEP = 4096
"""A step that puts out more than this is followed by a shorter one."""

FIRST_STEP = 1_000_000


def advance_in_steps(
    time: int,
    next_due: Callable[[], int | None],
    advance: Callable[[int], Outcome],
    most: int = OUTPUTS_OF_A_STEP,
) -> Iterator[Outcome]:
    """What `advance` makes up to a time, step by step; the timers of one moment are one step.

    `next_due` says when the first timer fires.
    """
    step = FIRST_STEP
    while (due := next_due()) is not None and due <= time:
        made = advance(min(time, due + step))
        if len(made):
            yield made
        step = max(1, step // 2) if len(made) > most else 2 * step


class Sweeps:
    """A sweep is due from `most_keys` keys on, or from the time `due` on.

    `longest` is the longest window or timeout; `growth` is how many times as many keys there may be
    as the last sweep has left.
    """

    def __init__(self, fewest_keys: int, longest: int | None, growth: int = 2) -> None:
        self._fewest = fewest_keys
        self._longest = longest
        self._growth = growth
        self._wait = longest
        self.most_keys = fewest_keys
        self.due = ENDLESS if longest is None else -ENDLESS

    def begin(self, now: int) -> None:
        """Count the time from here."""
        if self._wait is not None:
            self.due = now + self._wait

    def done(self, before: int, left: int, now: int) -> None:
        """A sweep is done: of `before` keys, `left` still hold something."""
        self.most_keys = max(self._fewest, self._growth * left)
        if self._wait is not None and now >= self.due:
            # Only where time has passed: keys that come quickly say nothing of how long they stay.
            self._wait = 2 * self._wait if 2 * left > max(before, self._fewest) else self._longest
        self.begin(now)


def longest_wait(correlations: Iterable[Correlation]) -> int | None:
    """The longest window or timeout of some rules; None if they have neither."""
    found = []
    for each in correlations:
        if each.clauses.within is not None:
            found.append(each.clauses.within.microseconds)
        body = each.body if isinstance(each, EclCorrelation) else each.branches
        found += [after.microseconds for after in timeouts_in(body)]
    return max(found, default=None)

"""Figures of a channel as plain values, and the counters they are read from.

Laxity is the share of a deadline that is left when a consumer is done: the deadline minus waiting
and execution time, divided by the deadline. A negative laxity means that the deadline was missed.
It is kept per priority, for consumers that have a deadline. Each receiver records its own laxity in
its turns, and the records are merged when figures are read, so that recording takes no lock.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from ensue.channel.policies import Reason


@dataclass(frozen=True, slots=True)
class Laxity:
    """The laxity of one priority, as shares of the deadline: 1 is the whole deadline."""

    count: int = 0
    missed: int = 0
    least: float = 0.0
    average: float = 0.0
    most: float = 0.0


@dataclass(frozen=True, slots=True)
class ConsumerFigures:
    """Counts of one consumer.

    `read` counts events that the consumer's step (a group, a Python test, a correlation) has read,
    and `made` the events that the step put out. Always: wanted + made = delivered + read + waiting
    + dropped.
    """

    name: str
    state: str
    wanted: int
    delivered: int
    waiting: int
    failures: int
    dropped: Mapping[Reason, int]
    read: int = 0
    made: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of a channel and its consumers at one moment.

    `wanted`, `read` and `made` are sums over consumers, disconnected consumers included.
    """

    published: int
    unwanted: int
    delivered: int
    waiting: int
    dropped: Mapping[Reason, int]
    consumers: Mapping[str, ConsumerFigures]
    laxity: Mapping[int, Laxity]
    wanted: int = 0
    read: int = 0
    made: int = 0


class LaxityMeter:
    """Laxity by priority. Only one thread notes at a time: the one that runs the turn."""

    def __init__(self) -> None:
        self._by_priority: dict[int, tuple[int, int, float, float, float]] = {}

    def note(self, priority: int, deadline: int, taken: int) -> None:
        laxity = (deadline - taken) / deadline
        count, missed, least, total, most = self._by_priority.get(
            priority, (0, 0, laxity, 0.0, laxity)
        )
        # Replaced as a whole: a reader in another thread sees the old tuple or the new one.
        self._by_priority[priority] = (
            count + 1,
            missed + (laxity < 0),
            min(least, laxity),
            total + laxity,
            max(most, laxity),
        )

    def add(self, other: LaxityMeter) -> None:
        """Merge the laxities of another meter."""
        for priority, theirs in other._by_priority.copy().items():
            own = self._by_priority.get(priority)
            if own is None:
                self._by_priority[priority] = theirs
            else:
                self._by_priority[priority] = (
                    own[0] + theirs[0],
                    own[1] + theirs[1],
                    min(own[2], theirs[2]),
                    own[3] + theirs[3],
                    max(own[4], theirs[4]),
                )

    def read(self) -> dict[int, Laxity]:
        return {
            priority: Laxity(count, missed, least, total / count, most)
            for priority, (count, missed, least, total, most) in sorted(
                self._by_priority.items(), reverse=True
            )
        }


class AtomicCounter:
    """A counter for many threads without a lock: `next(counter.steps)` is atomic."""

    def __init__(self) -> None:
        self.steps = itertools.count()
        self._reads = 0
        self._reading = threading.Lock()

    def read(self) -> int:
        with self._reading:
            # Reading takes a step as well, which must not be counted.
            steps = next(self.steps) - self._reads
            self._reads += 1
            return steps

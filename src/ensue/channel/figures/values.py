"""What a channel measures of itself, and hands out as plain values.

Laxity is what is left of a deadline when its consumer is done: the time to the deadline at
publication, less waiting and execution, as a share of the deadline. Below zero the deadline was
missed. It is kept per priority, for consumers that have a deadline; others cost nothing here. Each
receiver notes its own, in its turns, and they are put together when somebody asks: no lock is taken
on the way of an event.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from ensue.channel.policies import Reason


@dataclass(frozen=True, slots=True)
class Laxity:
    """The laxity of one priority: shares of the deadline, 1 is all of it."""

    count: int = 0
    missed: int = 0
    least: float = 0.0
    average: float = 0.0
    most: float = 0.0


@dataclass(frozen=True, slots=True)
class ConsumerFigures:
    """`dropped` holds each reason that occurred; `wanted` is all that was meant for it."""

    name: str
    state: str
    wanted: int
    delivered: int
    waiting: int
    failures: int
    dropped: Mapping[Reason, int]


@dataclass(frozen=True, slots=True)
class Figures:
    """All of a channel at one moment."""

    published: int
    unwanted: int
    delivered: int
    waiting: int
    dropped: Mapping[Reason, int]
    consumers: Mapping[str, ConsumerFigures]
    laxity: Mapping[int, Laxity]


class LaxityMeter:
    """Collects laxities by priority. Only one thread notes at a time: a consumer in its turn."""

    def __init__(self) -> None:
        self._by_priority: dict[int, tuple[int, int, float, float, float]] = {}

    def note(self, priority: int, deadline: int, taken: int) -> None:
        laxity = (deadline - taken) / deadline
        count, missed, least, total, most = self._by_priority.get(
            priority, (0, 0, laxity, 0.0, laxity)
        )
        # Replaced as a whole, so that whoever reads meanwhile sees it before or after.
        self._by_priority[priority] = (
            count + 1,
            missed + (laxity < 0),
            min(least, laxity),
            total + laxity,
            max(most, laxity),
        )

    def add(self, other: LaxityMeter) -> None:
        """Count what another has collected as well."""
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


class Tally:
    """Counts from any thread without a lock: `next(tally.steps)`, which nothing can cut in two."""

    def __init__(self) -> None:
        self.steps = itertools.count()
        self._looks = 0
        self._looking = threading.Lock()

    def read(self) -> int:
        with self._looking:
            # Looking takes a step as well, which is not to be counted.
            steps = next(self.steps) - self._looks
            self._looks += 1
            return steps

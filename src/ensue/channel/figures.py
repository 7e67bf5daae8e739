"""What a channel measures of itself, and hands out as plain values.

Laxity is what is left of a deadline when its consumer is done: the time to the deadline at
publication, less waiting and execution, as a share of the deadline. Below zero the deadline was
missed. It is kept per priority, for consumers that have a deadline; others cost nothing here.
"""

from __future__ import annotations

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
    """Collects laxities by priority, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_priority: dict[int, list[float]] = {}

    def note(self, priority: int, deadline: int, taken: int) -> None:
        laxity = (deadline - taken) / deadline
        with self._lock:
            kept = self._by_priority.get(priority)
            if kept is None:
                kept = self._by_priority[priority] = [0, 0, laxity, 0.0, laxity]
            kept[0] += 1
            kept[1] += laxity < 0
            kept[2] = min(kept[2], laxity)
            kept[3] += laxity
            kept[4] = max(kept[4], laxity)

    def read(self) -> dict[int, Laxity]:
        with self._lock:
            return {
                priority: Laxity(int(count), int(missed), least, total / count, most)
                for priority, (count, missed, least, total, most) in sorted(
                    self._by_priority.items(), reverse=True
                )
            }

    def reset(self) -> None:
        with self._lock:
            self._by_priority.clear()

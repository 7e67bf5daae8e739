"""What the server counts about itself, second by second, for plots, metrics and `ensue top`.

In come numbers from the line as it goes; out go samples of the last minutes, one a second, each
with rates and latencies. All of it is in memory, and bounded.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from threading import Lock
from typing import Final

import msgspec

KEPT_SECONDS: Final = 900
BUCKETS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""Upper bounds, in seconds, of the classes that latencies are counted in."""
FINE: Final = tuple(0.0001 * 1.25**step for step in range(60))
"""Closer bounds, for the quantiles of a second."""


class Sample(msgspec.Struct, frozen=True):
    """One second: how much came and went, and how long publishers waited, in milliseconds."""

    at: float
    events: int
    outputs: int
    delivered: int
    waiting: int
    subscribers: int
    history_lag: int
    median_ms: float | None
    p99_ms: float | None


class StationFigures:
    def __init__(self) -> None:
        self._lock = Lock()
        self.started = time.time()
        self.events = self.outputs = self.late = self.refused = self.duplicates = 0
        self.rejected = self.turned_away = self.delivered = self.commits = self.requests = 0
        self.expired = 0
        self.latency_counts = [0] * (len(BUCKETS) + 1)
        self.latency_sum = 0.0
        self.samples: deque[Sample] = deque(maxlen=KEPT_SECONDS)
        self.rule_counts: deque[dict[tuple[str, str], int]] = deque(maxlen=61)
        self._fine = [0] * (len(FINE) + 1)
        self._before = (0, 0, 0)

    def committed(self, events: int, outputs: int, waits: list[float]) -> None:
        """One commit of the line: how much of each, and how long each publisher has waited."""
        with self._lock:
            self.events += events
            self.outputs += outputs
            self.commits += 1
            for seconds in waits:
                self.latency_counts[bisect_left(BUCKETS, seconds)] += 1
                self.latency_sum += seconds
                self._fine[bisect_left(FINE, seconds)] += 1

    def sample(
        self, waiting: int, subscribers: int, lag: int, rules: dict[tuple[str, str], int]
    ) -> Sample:
        """Close the present second, and start counting the next."""
        with self._lock:
            now = (self.events, self.outputs, self.delivered)
            events, outputs, delivered = (a - b for a, b in zip(now, self._before, strict=True))
            second = Sample(
                time.time(),
                events,
                outputs,
                delivered,
                waiting,
                subscribers,
                lag,
                _quantile(self._fine, 0.5),
                _quantile(self._fine, 0.99),
            )
            self._before = now
            self._fine = [0] * (len(FINE) + 1)
        self.samples.append(second)
        self.rule_counts.append(rules)
        return second

    def rate(self, rule: tuple[str, str]) -> float:
        """Outputs a second of a rule, over the last minute."""
        counts = [each[rule] for each in self.rule_counts if rule in each]
        return (counts[-1] - counts[0]) / (len(counts) - 1) if len(counts) > 1 else 0.0


def _quantile(counts: list[int], share: float) -> float | None:
    """In milliseconds: the bound of the class in which the quantile lies."""
    total = sum(counts)
    if not total:
        return None
    wanted, seen = share * total, 0
    for number, count in enumerate(counts):
        seen += count
        if seen >= wanted:
            return round(1000 * FINE[min(number, len(FINE) - 1)], 3)
    return None

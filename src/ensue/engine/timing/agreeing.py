"""Where the clock of a stream stands if its events disagree: where most of them are.

One event with a wrong date must not take a stream along (`jumps`), and neither must the first one
hold it back: a device that begins in 1970 would make every later event too far ahead, for good.

A bounded input is known as a whole. Its times fall into *spans*, between which the clock may
not jump; the span with the most events is read, and the others are refused.

A stream is not known as a whole. Events that are refused as too far ahead are counted as long as
they agree with each other; each that is read takes one off. Once there are enough of them, the
clock begins anew at the next, and all that was before is forgotten, as if the stream began there.
No clock begins anew further ahead than tomorrow: there most events may agree and still be wrong.
"""

from __future__ import annotations

import time as wall_clock
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ensue.engine.timing.jumps import UNBOUNDED

QUORUM = 100
"""The events that move a clock, beyond those read meanwhile; fewer, if the clock has read fewer."""

DAY = 86_400 * 1_000_000

MOST_RUNS = 1024
"""Runs of times are put together when there are more."""


def end_of_tomorrow() -> int:
    """The latest time that a clock may show, in whole days, so that all workers agree on it."""
    return (wall_clock.time_ns() // 1000 // DAY + 2) * DAY


class Dissent(msgspec.Struct, array_like=True):
    """Events that are too far ahead of a stream and agree with each other.

    `latest` is their latest time, `votes` their number less the events that were read since.
    `read` is the number of events that the stream had read at the last vote, and `clock_start` the
    number at which its clock began.
    """

    latest: int = 0
    votes: int = 0
    read: int = 0
    clock_start: int = 0

    def vote(self, run: TimeRun, allowed: float, read: int) -> bool:
        """Count events that are too far ahead; whether the clock is to begin anew with them.

        `read` is the number of events that the stream has read.
        """
        self.votes = max(0, self.votes - (read - self.read))
        self.read = read
        if self.votes and run.low - self.latest <= allowed >= self.latest - run.high:
            self.votes += run.events
            self.latest = max(self.latest, run.high)
        elif run.events <= self.votes:
            self.votes -= run.events
        else:
            self.votes = run.events - self.votes
            self.latest = run.high
        enough = max(2, min(QUORUM, read - self.clock_start + 1))
        if self.votes < enough or run.high > end_of_tomorrow():
            return False
        self.clock_start = read - self.votes
        self.votes = 0
        return True


class TimeRun(NamedTuple):
    """Times between two, in steps of no more than a jump, and how many they are."""

    low: int
    high: int
    events: int = 1


class TimeRuns:
    """Times that came in no order, as runs in which none is further from the next than a jump."""

    def __init__(self, allowed: float) -> None:
        self._allowed = allowed
        self._most = MOST_RUNS
        self.merged: list[TimeRun] = []

    def add(self, low: int, high: int, count: int) -> None:
        """Add times from `low` to `high` that are a run already."""
        if self.merged:
            first, last, known = self.merged[-1]
            if first - self._allowed <= high and low <= last + self._allowed:
                self.merged[-1] = TimeRun(min(first, low), max(last, high), known + count)
                return
        self.merged.append(TimeRun(low, high, count))
        if len(self.merged) > self._most:
            self.merge()
            self._most = max(MOST_RUNS, 2 * len(self.merged))

    def merge(self) -> list[TimeRun]:
        """The runs in the order of their times, with a jump that is too far between each two."""
        merged: list[TimeRun] = []
        for run in sorted(self.merged):
            if merged and run.low - merged[-1].high <= self._allowed:
                low, high, count = merged[-1]
                merged[-1] = TimeRun(low, max(high, run.high), count + run.events)
            else:
                merged.append(run)
        self.merged = merged
        return merged

    def largest(self) -> TimeRun | None:
        """The run of times that is read of a bounded input: the one with the most events."""
        return max(self.merge(), key=lambda run: run.events, default=None)


def largest_span(times: Sequence[int], allowed: float) -> tuple[int, int]:
    """The places, of times in order, between which the span lies that is read."""
    if allowed == UNBOUNDED or not len(times) or times[-1] - times[0] <= allowed:
        return 0, len(times)
    best = 0, 0
    first = 0
    for place in range(1, len(times) + 1):
        if place == len(times) or times[place] - times[place - 1] > allowed:
            if place - first > best[1] - best[0]:
                best = first, place
            first = place
    return best


class ClockSpan(NamedTuple):
    """Times that are read of a micro-batch; `is_anew` if the clock begins there."""

    low: float
    high: int
    is_anew: bool


def clock_spans(
    runs: TimeRuns, latest: int | None, allowed: float, read: int, dissent: Dissent
) -> tuple[list[ClockSpan], int]:
    """The spans that are read of times that came together, and how many events that are.

    `latest` is where the clock stands before them. Times beyond a span are too far ahead.
    """
    found: list[ClockSpan] = []
    if latest is not None:
        found.append(ClockSpan(-UNBOUNDED, latest, False))
    taken = 0
    for run in runs.merge():
        if not found:
            found.append(ClockSpan(-UNBOUNDED, run.high, False))
        elif run.low - found[-1].high <= allowed:
            found[-1] = found[-1]._replace(high=max(found[-1].high, run.high))
        elif dissent.vote(run, allowed, read + taken):
            found.append(ClockSpan(run.low, run.high, True))
        else:
            continue
        taken += run.events
    return found, taken

"""What the threads do when all sources are released together: one hyperperiod, turn by turn.

In come jobs, as for `response_times`; out go `Turn`s. The dispatcher that is played is that of the
channel: whenever a thread is free it takes the most urgent job that is ready, and a turn is not
interrupted. Execution times are the worst. A long hyperperiod is played in part.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import Final

from ensue.channel.scheduling.response_times import Job

MOST_TURNS: Final = 2_000


@dataclass(frozen=True)
class Turn:
    """A turn of an operation on a thread; `released` is when its source was."""

    name: str
    thread: int
    begin: int
    end: int
    released: int
    is_late: bool


@dataclass(frozen=True)
class Timeline:
    """The turns up to `end`; `is_whole` says whether that is the hyperperiod."""

    turns: tuple[Turn, ...]
    end: int
    is_whole: bool


def hyperperiod(jobs: Sequence[Job]) -> int:
    return lcm(*(each.period for each in jobs))


def played(jobs: Sequence[Job], threads: int, most_turns: int = MOST_TURNS) -> Timeline:
    """One hyperperiod from the moment at which all sources are released."""
    whole = hyperperiod(jobs)
    sources = [each for each in jobs if len(each.path) == 1]
    following: dict[tuple[str, ...], list[Job]] = {}
    for each in jobs:
        following.setdefault(each.path[:-1], []).append(each)
    releases = [(0, number) for number in range(len(sources))]
    # Urgency, then the order in which they became ready.
    ready: list[tuple[tuple[int, int], int, Job, int]] = []
    free, busy = list(range(threads)), list[tuple[int, int, Job, int]]()
    running: set[str] = set()
    turns: list[Turn] = []
    now = came = 0
    while now < whole and len(turns) < most_turns:
        while releases and releases[0][0] <= now:
            at, number = heapq.heappop(releases)
            source = sources[number]
            came += 1
            heapq.heappush(ready, (_first(source), came, source, at))
            heapq.heappush(releases, (at + source.period, number))
        put_off = []
        while free and ready:
            entry = heapq.heappop(ready)
            _, _, job, released = entry
            if job.path[-1] in running:
                # A consumer has one turn at a time.
                put_off.append(entry)
                continue
            thread, end = heapq.heappop(free), now + job.worst[-1]
            running.add(job.path[-1])
            heapq.heappush(busy, (end, thread, job, released))
            is_late = end - released > job.deadline
            turns.append(Turn(job.path[-1], thread, now, end, released, is_late))
        for entry in put_off:
            heapq.heappush(ready, entry)
        now = min([releases[0][0], *(busy[0][:1] if busy else ())])
        while busy and busy[0][0] <= now:
            _, thread, job, released = heapq.heappop(busy)
            heapq.heappush(free, thread)
            running.discard(job.path[-1])
            for each in following.get(job.path, ()):
                came += 1
                heapq.heappush(ready, (_first(each), came, each, released))
    return Timeline(tuple(turns), min(now, whole), now >= whole)


def _first(job: Job) -> tuple[int, int]:
    priority, sub_priority = job.urgency[-1]
    return -priority, -sub_priority

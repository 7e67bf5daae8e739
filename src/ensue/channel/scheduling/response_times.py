"""Worst response times: how long an operation can take from the release of its source to its end.

In come jobs: for each stream the execution times and ranks along its path. For one thread the
answer is exact for turns that are not interrupted: a turn of less urgent work that has just begun
is waited for once, then all that is more urgent goes first (Davis, Burns, Bril and Lukkien,
"Controller Area Network schedulability analysis: refuted, revisited and revised", 2007). For
several threads it is a bound that is never too small, and may be too large.

A source may be released at any moment relative to other sources. What runs because of one source
is released with it: a consumer waits for its supplier, so its response time begins there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Final

MOST_STEPS: Final = 200_000
"""Steps of one search; past that a response time counts as not bounded."""

_NEVER: Final = 2**62

Urgency = tuple[int, int]
"""A rank, the larger the more urgent."""


@dataclass(frozen=True)
class Job:
    """What one stream asks of the threads.

    `path` names the operations from the source on, each with its execution time and its urgency;
    the last is the operation whose response time is asked. Times are in microseconds.
    """

    path: tuple[str, ...]
    period: int
    worst: tuple[int, ...]
    urgency: tuple[Urgency, ...]
    deadline: int

    @property
    def least_urgent(self) -> Urgency:
        return min(self.urgency)

    def is_along(self, other: Job) -> bool:
        """Whether this job is done on the way to another one."""
        return other.path[: len(self.path)] == self.path


Responses = dict[tuple[str, ...], int | None]
"""The worst response time of each job, by path; None where there is no bound."""


def exact_on_one_thread(jobs: Sequence[Job]) -> Responses:
    found: Responses = {}
    # Whether a job can still run at the next release of its own source is known before it is asked.
    for job in sorted(jobs, key=lambda each: each.least_urgent):
        found[job.path] = _exact(job, jobs, found)
    return found


def _exact(job: Job, jobs: Sequence[Job], known: Responses) -> int | None:
    others = [each for each in jobs if not each.is_along(job)]
    # It has begun a microsecond before at the latest, which is the finest step of time.
    blocking = max(
        (each.worst[-1] - 1 for each in others if _can_block(each, job, known)),
        default=0,
    )
    last = job.urgency[-1]
    peers = [each for each in others if each.urgency[-1] == last]
    counted = [each for each in others if each.urgency[-1] >= job.least_urgent]
    end = _busy_period(job, counted, blocking)
    if end is None:
        return None
    longest = 0
    for step, released in enumerate(_releases([job, *peers], end)):
        start = _start(job, released, others, blocking)
        if start is None or step > MOST_STEPS:
            return None
        longest = max(longest, start + job.worst[-1] - released)
    return longest


def _can_block(other: Job, job: Job, known: Responses) -> bool:
    """Whether a turn of less urgent work can have begun just before the job is released.

    Work of the job's own source can only if it is late: else it is done before the next release.
    """
    if other.urgency[-1] >= job.least_urgent:
        return False
    if other.path[0] != job.path[0]:
        return True
    response = known.get(other.path)
    return response is None or response > other.period


def _busy_period(job: Job, counted: Sequence[Job], blocking: int) -> int | None:
    """How long the thread can be busy without a break with this and more urgent work.

    Where that is for ever, since the thread has no time to spare, everything comes again after the
    least common multiple of the periods.
    """
    share = Fraction(sum(job.worst), job.period)
    share += sum((Fraction(each.worst[-1], each.period) for each in counted), Fraction(0))
    if share > 1:
        return None
    if share == 1 and blocking:
        whole = lcm(job.period, *(each.period for each in counted))
        return whole if whole // job.period <= MOST_STEPS else None

    def work(length: int) -> int:
        own = -(-length // job.period) * sum(job.worst)
        more = sum(-(-length // each.period) * each.worst[-1] for each in counted)
        return max(1, blocking + own + more)

    return _fixed_point(work, 1)


def _releases(jobs: Sequence[Job], end: int) -> Iterator[int]:
    """The moments of a busy period at which the job may be released last, beside its peers."""
    periods = sorted({each.period for each in jobs})
    counters = dict.fromkeys(periods, 0)
    released = 0
    while released < end:
        yield released
        for period in periods:
            if counters[period] <= released:
                counters[period] += period
        released = min(counters.values())


def _start(job: Job, released: int, others: Sequence[Job], blocking: int) -> int | None:
    """When the last turn of the path begins, of the job that is released at a moment.

    The turns of the path follow each other: what is more urgent than a turn delays it up to its
    start, and what is less urgent than all later turns was counted up to the turn before.
    """
    before = released // job.period
    earlier = before * sum(job.worst)
    delays = [
        # What follows the job itself can only be in its way after an earlier release.
        _Delay(each.urgency[-1], each.worst[-1], _NEVER, before, 0)
        if job.is_along(each)
        else _Delay(each.urgency[-1], each.worst[-1], each.period, 1, 0)
        for each in others
    ]
    # Suppliers on the path may be released again before the job is done.
    delays += [
        _Delay(urgency, worst, job.period, 0, released)
        for urgency, worst in zip(job.urgency[:-1], job.worst[:-1], strict=True)
    ]
    starts: list[int] = []
    for place, urgency in enumerate(job.urgency):
        is_last = place == len(job.path) - 1
        sure = blocking + earlier + sum(job.worst[:place])
        open_ended = []
        for each in delays:
            if is_last and each.urgency == urgency:
                # Equals go in the order in which they come.
                sure += each.up_to(released)
            elif each.urgency >= urgency:
                open_ended.append(each)
            else:
                passed = [
                    start
                    for start, before in zip(starts, job.urgency, strict=False)
                    if each.urgency >= before
                ]
                sure += each.up_to(passed[-1]) if passed else 0

        def begin(at: int, sure: int = sure, delays: Sequence[_Delay] = open_ended) -> int:
            return sure + sum(each.up_to(at) for each in delays)

        earliest = starts[-1] + job.worst[place - 1] if starts else released
        start = _fixed_point(begin, max(sure, earliest))
        if start is None:
            return None
        starts.append(start)
    return starts[-1]


@dataclass(frozen=True)
class _Delay:
    """Turns that go before a job: `at_once` of them at the moment `since`, then one a period."""

    urgency: Urgency
    worst: int
    period: int
    at_once: int
    since: int

    def up_to(self, moment: int) -> int:
        """How long all of them take that have been released by a moment."""
        return (max(0, moment - self.since) // self.period + self.at_once) * self.worst


def bound_on_threads(jobs: Sequence[Job], threads: int) -> Responses:
    """A safe bound for several threads.

    Every job is taken to be done by its deadline, which holds up to the first that is missed; so
    the answer is a proof only if all of them are met. A job waits for less urgent turns on every
    thread, then for all more urgent work shared out between the threads, and for turns of its own
    operation, which has one turn at a time.
    """
    found: Responses = {}
    for job in sorted(jobs, key=lambda each: len(each.path)):
        found[job.path] = _bound(job, jobs, threads, found)
    return found


def _bound(job: Job, jobs: Sequence[Job], threads: int, known: Responses) -> int | None:
    supplier = known[job.path[:-1]] if len(job.path) > 1 else 0
    if supplier is None:
        return None
    name, urgency, worst = job.path[-1], job.urgency[-1], job.worst[-1]
    own = [each for each in jobs if each.path[-1] == name and each is not job]
    more = [each for each in jobs if each.path[-1] != name and each.urgency[-1] >= urgency]
    less: dict[str, int] = {}
    for each in jobs:
        if each.path[-1] != name and each.urgency[-1] < urgency:
            less[each.path[-1]] = each.worst[-1]
    begun = sum(sorted(less.values())[-threads:])
    late = (job.deadline // job.period) * worst

    def waited(at: int) -> int:
        shared = begun + sum(_within(each, at) * each.worst[-1] for each in more)
        return -(-shared // threads) + late + sum(_within(each, at) * worst for each in own)

    start = _fixed_point(waited, waited(0))
    return None if start is None else supplier + start + worst


def _within(job: Job, length: int) -> int:
    """How many turns of a job, each done by its deadline, can be in a stretch of time."""
    return (length + job.deadline) // job.period + 1


def _fixed_point(grown: Callable[[int], int], first: int) -> int | None:
    value = first
    for _ in range(MOST_STEPS):
        following = max(value, grown(value))
        if following == value:
            return value
        value = following
        if value > _NEVER:
            return None
    return None

"""A schedule: the priorities of operations, and whether all of them meet their deadlines.

In come tables (`operations`); out goes a `Schedule` with a row for each operation, in the order of
their dependencies, and a verdict. A channel takes the priorities from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import Any, Self

from ensue.channel.scheduling.operations import Operation, ScheduleTables, Strategy, read_tables
from ensue.channel.scheduling.rates import Stream, in_dependency_order, rate_of, streams_of
from ensue.channel.scheduling.response_times import (
    Job,
    Responses,
    bound_on_threads,
    exact_on_one_thread,
)
from ensue.channel.scheduling.strategies import Rank, deadline_of, ranks_of
from ensue.channel.scheduling.timeline import Timeline, played
from ensue.errors import UsageError


@dataclass(frozen=True)
class Scheduled:
    """One operation of a schedule. Times are in microseconds.

    `rate` is in turns a second, `utilisation` a share of one thread; `response` is the worst
    response time, from the release of the source to the end of the turn, None where it has no
    bound; `laxity` is what is left of the deadline.
    """

    name: str
    rate: float
    utilisation: float
    priority: int
    sub_priority: int
    worst: int
    response: int | None
    deadline: int
    critical: bool = False

    @property
    def laxity(self) -> int | None:
        return None if self.response is None else self.deadline - self.response

    @property
    def meets_deadline(self) -> bool:
        return self.response is not None and self.response <= self.deadline


@dataclass(frozen=True)
class Schedule:
    """Operations with their priorities, suppliers before consumers.

    `is_exact` says whether response times are exact (one thread) or a safe bound (several).
    """

    strategy: Strategy
    threads: int
    operations: tuple[Scheduled, ...]
    jobs: tuple[Job, ...]
    timed: frozenset[str]
    """The operations whose worst execution time is known."""

    def declared_worst(self, name: str) -> int | None:
        return self[name].worst if name in self.timed else None

    @classmethod
    def of(
        cls,
        given: str | PathLike[str] | Mapping[str, Any] | ScheduleTables,
        measured: Mapping[str, int] | None = None,
        needs_worst: bool = True,
    ) -> Self:
        """The schedule of a TOML file or of tables; `measured` fills in execution times.

        Without `needs_worst` an unknown one counts as nothing: for priorities before it is known.
        """
        tables = given if isinstance(given, ScheduleTables) else read_tables(given)
        tables = tables.with_worst(measured or {})
        if needs_worst:
            _require_worst(tables.operations)
        ordered = in_dependency_order(tables.operations)
        streams = streams_of(ordered)
        ranks = ranks_of(tables.strategy, ordered, streams)
        jobs = _jobs(ordered, streams, ranks)
        responses = (
            exact_on_one_thread(jobs)
            if tables.threads == 1
            else bound_on_threads(jobs, tables.threads)
        )
        rows = tuple(
            _scheduled(each, streams[each.name], ranks[each.name], responses) for each in ordered
        )
        known = {each.name for each in ordered if each.worst is not None}
        return cls(tables.strategy, tables.threads, rows, tuple(jobs), frozenset(known))

    @property
    def is_exact(self) -> bool:
        return self.threads == 1

    @property
    def is_schedulable(self) -> bool:
        return all(each.meets_deadline for each in self.operations)

    @property
    def utilisation(self) -> float:
        """Of all threads together, as a share of one."""
        return sum(each.utilisation for each in self.operations)

    @property
    def first_missed(self) -> Scheduled | None:
        """The most urgent operation that misses its deadline, or has no bound."""
        missed = [each for each in self.operations if not each.meets_deadline]
        return max(missed, key=lambda each: (each.priority, each.sub_priority), default=None)

    @cached_property
    def timeline(self) -> Timeline:
        """One hyperperiod, all sources released together."""
        return played(self.jobs, self.threads)

    def __getitem__(self, name: str) -> Scheduled:
        for each in self.operations:
            if each.name == name:
                return each
        known = ", ".join(f"`{each.name}`" for each in self.operations[:20])
        raise UsageError(f"the schedule has no operation `{name}`; it has {known}")


def _require_worst(operations: Sequence[Operation]) -> None:
    lacking = ", ".join(f"`{each.name}`" for each in operations if each.worst is None)
    if lacking:
        raise UsageError(
            f"no worst-case execution time is known of {lacking}: give `worst`, or a record of"
            " measured times"
        )


def _jobs(
    ordered: Sequence[Operation],
    streams: Mapping[str, Sequence[Stream]],
    ranks: Mapping[str, Rank],
) -> list[Job]:
    worst = {each.name: each.worst or 0 for each in ordered}
    return [
        Job(
            stream.path,
            stream.period,
            tuple(worst[name] for name in stream.path),
            tuple(ranks[name] for name in stream.path),
            deadline_of(each, streams[each.name]),
        )
        for each in ordered
        for stream in streams[each.name]
    ]


def _scheduled(
    operation: Operation, streams: Sequence[Stream], rank: Rank, responses: Responses
) -> Scheduled:
    rate = rate_of(streams)
    found = [responses[each.path] for each in streams]
    known = [each for each in found if each is not None]
    worst = operation.worst or 0
    return Scheduled(
        operation.name,
        float(rate * 1_000_000),
        float(rate * Fraction(worst)),
        rank.priority,
        rank.sub_priority,
        worst,
        max(known) if len(known) == len(found) else None,
        deadline_of(operation, streams),
        operation.critical,
    )

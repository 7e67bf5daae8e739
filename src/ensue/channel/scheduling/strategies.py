"""Scheduling strategies: from rates, deadlines and declarations to priorities.

In come operations with their streams; out goes a `Rank` for each, the larger the more urgent, as
consumers of a channel have them. Rate-monotonic gives the higher priority to the shorter period;
maximum-urgency puts critical operations first, and then those with the least laxity (deadline
minus execution time); fixed takes what is declared. Among operations of one priority the
sub-priority follows the order of dependencies, so that a supplier goes before its consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ensue.channel.scheduling.operations import Operation, Strategy
from ensue.channel.scheduling.rates import Stream, rate_of


class Rank(NamedTuple):
    """A priority and a sub-priority; the larger goes first."""

    priority: int
    sub_priority: int


def deadline_of(operation: Operation, streams: Sequence[Stream]) -> int:
    """The deadline that is declared, or the period at which the operation runs."""
    if operation.deadline is not None:
        return operation.deadline
    return int(1 / rate_of(streams))


def ranks_of(
    strategy: Strategy, ordered: Sequence[Operation], streams: Mapping[str, Sequence[Stream]]
) -> dict[str, Rank]:
    """The ranks of operations that are in the order of their dependencies."""
    if strategy == "fixed":
        return {each.name: Rank(each.priority or 0, each.sub_priority) for each in ordered}

    def by_rate(operation: Operation) -> Fraction:
        return rate_of(streams[operation.name])

    def by_urgency(operation: Operation) -> tuple[bool, int]:
        deadline = deadline_of(operation, streams[operation.name])
        return operation.critical, (operation.worst or 0) - deadline

    urgency: Callable[[Operation], Any] = by_rate if strategy == "rate-monotonic" else by_urgency
    levels: dict[Any, list[Operation]] = {}
    for operation in ordered:
        levels.setdefault(urgency(operation), []).append(operation)
    return {
        operation.name: Rank(priority, len(levels[level]) - place)
        for priority, level in enumerate(sorted(levels), 1)
        for place, operation in enumerate(levels[level], 1)
    }

"""Witnesses: a path through a search as real events at real times.

In comes an edge; out comes the shortest path to it, each moment with its event (or the clock) and
whether each correlation puts out there. The constraints on the times of the path are solved such
that events lie whole seconds apart if possible, and else as close together as they must.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from ensue.events.event import Event
from ensue.events.times import microseconds_of
from ensue.machine.analyses.search.exploration import Edge
from ensue.machine.analyses.search.zones import Constraint, at_most, earliest_times

BEGINNING = microseconds_of(datetime(2024, 1, 1, tzinfo=UTC))
GAPS = (1_000_000, 100_000, 1_000, 1, 0)
"""Distances between events in microseconds, the preferred ones first."""


@dataclass(frozen=True, slots=True)
class WitnessMoment:
    """A moment of a witness, `after` microseconds from the first one.

    `event` is None where the clock reaches a time at which a timer is due. `ports` and `puts_out`
    have the ports that the event matches in each correlation, and whether the correlation puts out.
    `author` is the correlation that puts the event out, where it does not come from outside.
    """

    after: int
    event: Event | None
    ports: tuple[frozenset[str], ...]
    puts_out: tuple[bool, ...]
    author: str | None = None

    @property
    def port_names(self) -> tuple[str, ...]:
        """The ports that the event matches in any of the correlations."""
        return tuple(sorted(frozenset().union(*self.ports)))


@dataclass(frozen=True, slots=True)
class Witness:
    """A sequence of moments; the last one shows the property."""

    moments: tuple[WitnessMoment, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(each.event for each in self.moments if each.event is not None)

    @property
    def until(self) -> int:
        """The time of the last moment, in microseconds since 1970."""
        return BEGINNING + self.moments[-1].after if self.moments else BEGINNING

    def __len__(self) -> int:
        return len(self.moments)


def path_to(edge: Edge) -> list[Edge]:
    """The edges from the start to the edge itself."""
    path = [edge]
    while path[-1].source.came is not None:
        path.append(path[-1].source.came)
    return path[::-1]


def witness_of(edge: Edge) -> Witness | None:
    """The path to an edge and over it; None if there are no times in whole microseconds.

    Every symbol on the path must have an event.
    """
    path = path_to(edge)
    times = _times(path)
    return None if times is None else Witness(tuple(_moments(path, times)))


def has_times(edge: Edge) -> bool:
    """Whether there are times for the path to an edge and over it."""
    return _times(path_to(edge)) is not None


def _moments(path: list[Edge], times: list[int]) -> Iterator[WitnessMoment]:
    number = 0
    for step, after in zip(path, times, strict=True):
        event, ports = None, tuple(frozenset[str]() for _ in step.outcomes)
        author = None
        if step.symbol is not None:
            number += 1
            ports, author = step.symbol.ports, step.symbol.author
            assert step.symbol.event is not None, "witnesses are made of events that exist"
            event = msgspec.structs.replace(
                step.symbol.event, id=f"e{number}", time=BEGINNING + after
            )
        yield WitnessMoment(after, event, ports, step.puts_out, author)


def _times(path: list[Edge]) -> list[int] | None:
    bounds: list[Constraint] = [each for step in path for each in step.constraints]
    for gap in GAPS:
        # Only events lie apart: the moment of a timer follows from its constraints.
        apart = [
            (n, n + 1, at_most(-gap if path[n].symbol and path[n + 1].symbol else 0))
            for n in range(len(path) - 1)
        ]
        times = earliest_times(len(path), [*bounds, *apart], max(gap, 1))
        if times is not None:
            return [time - times[0] for time in times]
    return None

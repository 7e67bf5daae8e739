"""Witnesses: a way through an exploration as real events at real times.

In comes an edge; out comes the shortest way to it, each moment with its event (or the clock) and
what each correlation does there. The bounds that the way puts on its times are solved, preferring
times that people like: whole seconds apart if that can be, else as close as they must be.
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
"""How far events should lie apart, in microseconds, the best first."""


@dataclass(frozen=True, slots=True)
class WitnessMoment:
    """One moment: how long after the first one it is, in microseconds, its event (None: the clock
    reaches a time at which something is due), the ports that it matches in each correlation, and
    which of them put something out."""

    after: int
    event: Event | None
    ports: tuple[frozenset[str], ...]
    puts_out: tuple[bool, ...]

    @property
    def port_names(self) -> tuple[str, ...]:
        """The ports that the event matches in any of the correlations."""
        return tuple(sorted(frozenset().union(*self.ports)))


@dataclass(frozen=True, slots=True)
class Witness:
    """A sequence of moments, at the last of which the property shows itself."""

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


def way_to(edge: Edge) -> list[Edge]:
    """The edges of the way, from the start to the edge itself."""
    way = [edge]
    while way[-1].source.came is not None:
        way.append(way[-1].source.came)
    return way[::-1]


def witness_of(edge: Edge) -> Witness | None:
    """The way to an edge and over it; None if it needs times between two microseconds.

    Every symbol on it must have an event.
    """
    way = way_to(edge)
    times = _times(way)
    return None if times is None else Witness(tuple(_moments(way, times)))


def has_times(edge: Edge) -> bool:
    """Whether there are times for the way to an edge and over it."""
    return _times(way_to(edge)) is not None


def _moments(way: list[Edge], times: list[int]) -> Iterator[WitnessMoment]:
    number = 0
    for step, after in zip(way, times, strict=True):
        event, ports = None, tuple(frozenset[str]() for _ in step.outcomes)
        if step.symbol is not None:
            number += 1
            ports = step.symbol.ports
            assert step.symbol.event is not None, "witnesses are made of events that exist"
            event = msgspec.structs.replace(
                step.symbol.event, id=f"e{number}", time=BEGINNING + after
            )
        yield WitnessMoment(after, event, ports, step.puts_out)


def _times(way: list[Edge]) -> list[int] | None:
    bounds: list[Constraint] = [each for step in way for each in step.constraints]
    for gap in GAPS:
        # The clock need not wait: it reaches a time when something is due.
        apart = [
            (n, n + 1, at_most(-gap if way[n].symbol and way[n + 1].symbol else 0))
            for n in range(len(way) - 1)
        ]
        times = earliest_times(len(way), [*bounds, *apart], max(gap, 1))
        if times is not None:
            return [time - times[0] for time in times]
    return None

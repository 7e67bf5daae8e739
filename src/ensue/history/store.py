"""What every store of publications can do; the rest of the room relies on nothing else.

A store numbers publications in the order of their arrival (`seq`) and finds them by a `Window` of
time or by the keys of their attributes, a page at a time. It may give more than was asked for: who
asks looks at the times and the filter again. Joining the halves of intervals, retention and the
meaning of filters are not a store's business (`history`, `asking`).

A publication falls into a *span*: the number of bits of its length. Intervals of one span that hold
an instant begin within twice their shortest length before it, so an index by span and start finds
them without visiting the others. Open intervals and uncertain ones have spans of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import msgspec

from ensue.events.event import Event
from ensue.history.bodies import event_in, halves_in
from ensue.history.narrowing import Clause
from ensue.history.postings import keys_of
from ensue.history.publication import InstantColumns, Interval, Publication

FOREVER: Final = 2**63 - 1
"""Stands in the place of the end of an open interval, so that it sorts behind all others."""
LONG_AGO: Final = -(2**63)
OPEN_SPAN: Final = 64
UNCERTAIN_SPAN: Final = 65


def span_of(times: Interval) -> int:
    if not times.is_certain:
        return UNCERTAIN_SPAN
    return OPEN_SPAN if times.end is None else (times.end - times.start).bit_length()


def width_of(span: int) -> int | None:
    """The greatest length of the intervals of a span; None if there is no greatest."""
    return None if span >= OPEN_SPAN else (1 << span) - 1


class Stored(msgspec.Struct):
    """One publication as a store hands it out; its event is read when it is first asked for."""

    seq: int
    key: bytes
    times: Interval
    body: bytes
    _event: Event | None = None

    @property
    def event(self) -> Event:
        if self._event is None:
            self._event = event_in(self.body)
        return self._event

    @property
    def publication(self) -> Publication:
        return Publication(self.event, self.times, self.key, *halves_in(self.body))

    @property
    def keys(self) -> list[bytes]:
        return keys_of(self.event)


@dataclass(frozen=True, slots=True)
class Window:
    """Publications by their time: between `low` and `high`, both included.

    `ended`: those whose end lies there, the latest end first. `started`: those whose start does,
    the earliest first. `overlapping`: publications that have an instant in common with it, open
    ones included, in an order of the store's own. `uncertain`: those whose times are ranges,
    whatever the ranges, which the three others leave out; `arrived`: all; both the latest arrival
    first.
    """

    kind: Literal["ended", "started", "overlapping", "arrived", "uncertain"]
    low: int = LONG_AGO
    high: int = FOREVER - 1

    def admits(self, times: Interval) -> bool:
        """Whether a certain publication lies in it."""
        match self.kind:
            case "ended":
                return times.end is not None and self.low <= times.end <= self.high
            case "started":
                return self.low <= times.start <= self.high
            case "overlapping":
                return times.start <= self.high and (times.end is None or times.end >= self.low)
            case _:
                return True


@dataclass(frozen=True, slots=True)
class State:
    """Where a store stands. Each write raises `version`.

    `last` is the highest number given so far, and nothing numbered up to `floor` is left. `revised`
    is the version that last changed what had been stored before, `removed` the one that last took
    something away from above the floor. `uncertain`: there was a publication of uncertain times.
    """

    version: int
    last: int
    count: int
    revised: int
    removed: int
    floor: int
    uncertain: bool


class Store(Protocol):
    """One place of publications. `reading` and `writing` enclose what must be of one moment."""

    def reading(self) -> AbstractContextManager[None]:
        """Questions inside see one state of the store."""

    def writing(self) -> AbstractContextManager[None]:
        """What is written inside is kept as a whole when it ends, or not at all."""

    def state(self) -> State: ...

    def by_keys(self, keys: Sequence[bytes]) -> Mapping[bytes, Stored]:
        """What is stored under the keys of sources and ids."""

    def note(self, event: Event) -> None:
        """An event as it came, before what it makes is inserted or put in another's place.

        Raises `EventError` if the store cannot hold it.
        """

    def insert(self, publications: Sequence[Publication]) -> None:
        """Store new ones, in the order of their arrival."""

    def insert_instants(self, instants: InstantColumns) -> bool:
        """As `insert`, of columns; False if this store needs each event apart (`note`)."""

    def replace(self, changed: Sequence[tuple[Stored, Publication]]) -> None:
        """Replace stored publications; the new ones keep the numbers of the old."""

    def remove(self, gone: Sequence[Stored], floor: int | None = None) -> None:
        """Take some away. With `floor`, they are all that was left of those up to this number."""

    def page(
        self, window: Window, after: Stored | None, limit: int, clauses: Sequence[Clause] = ()
    ) -> Sequence[Stored]:
        """The next publications of a window, in its order; behind `after`, if one is given.

        Clauses of single keys may be used to leave out what does not meet them.
        """

    def posted(self, clause: Clause, window: Window, before: int, limit: int) -> Sequence[Stored]:
        """Publications that meet a clause, the latest arrival first, numbered below `before`.

        Some that lie outside of the window may be left out.
        """

    def count_posted(self, clause: Clause, most: int) -> int:
        """How many meet a clause, counted no further than `most`."""

    def count_window(self, window: Window, most: int) -> int:
        """How many lie in a window, counted no further than `most`."""

    def revisions(self, since: int) -> Sequence[Stored]:
        """Publications that were stored before and changed by a version above `since`."""

    def oldest(self, count: int) -> Sequence[Stored]:
        """The publications that arrived first."""

    def close(self) -> None: ...

"""Matches that wait for the clock, where a `timeout` stands behind a chain.

In come the matches that events complete; out go firings, in the order of the stream. A match waits
together with its events, which snapshots and `having` need. A match waits for one moment: when that
has come the match is gone, whether or not it has triggered anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.column import Rows
from ensue.engine.batch.kernels import moments
from ensue.engine.core.numbering import Numbers, taller


class Waiting(NamedTuple):
    """Matches in the order of their moments: key, first event and its time, all events."""

    due: Rows
    keys: Rows
    starts: Rows
    begun: Rows
    slots: npt.NDArray[np.int64]

    def at(self, chosen: Any) -> Waiting:
        return Waiting(*(each[chosen] for each in self))

    def then(self, later: Waiting) -> Waiting:
        return Waiting(*(np.concatenate(pair) for pair in zip(self, later, strict=True)))


class FiringsOfClock(NamedTuple):
    """Firings in the order of the stream: the match of each, and what is bound.

    `before` is the number of the reading before which it comes, `last_read` the last reading of its
    key.
    """

    matches: Waiting
    before: Rows
    last_read: Rows
    slots: npt.NDArray[np.int64]


class Clock:
    """The matches of one rule that wait, and the last events of each key.

    `ports` are the bits of ports whose last event is bound; without them a firing binds its match.
    """

    def __init__(self, after: int, places: int, ports: npt.NDArray[np.uint64]) -> None:
        self._after = after
        self.ports = ports
        self.lasts = np.zeros((0, ports.size), np.int64)
        self.last_read = np.zeros(0, np.int64)
        self.read = 1
        nothing = np.empty(0, np.int64)
        self._nothing = Waiting(nothing, nothing, nothing, nothing, np.empty((0, places), np.int64))
        self.waiting = self._nothing

    def grow(self, keys: int) -> None:
        if keys > len(self.lasts):
            self.lasts, self.last_read = taller(self.lasts, keys), taller(self.last_read, keys)

    def clear(self) -> None:
        """Let nothing wait; what is known of keys stays."""
        self.lasts[:] = 0
        self.waiting = self._nothing

    def matches(self, times: Rows, keys: Numbers, starts: Rows, begun: Rows, slots: Any) -> Waiting:
        """The matches that events of these times and keys complete."""
        return Waiting(times + self._after, keys.astype(np.int64), starts, begun, slots)

    def fire(
        self, found: Waiting, at: Rows, letters: Any, times: Rows, keys: Numbers, number: int,
        clock: int,
    ) -> FiringsOfClock:  # fmt: skip
        """Read a batch, of whose rows `at` complete matches; what fires up to the clock."""
        every = self.waiting.then(found)
        old = np.full(len(self.waiting.due), -1, np.int64)
        queue = moments.Moments(
            every.due, every.keys, np.concatenate([old, at]), _last_of_moments(every)
        )
        rows = moments.ReadRows(letters, times, keys, number, self.read, self.ports)
        size = len(every.due)
        room = moments.FiredMoments(
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty((size, self.ports.size), np.int64),
        )
        passed, fired = moments.fire(queue, rows, clock, self.lasts, self.last_read, room)
        self.read += len(times)
        self.waiting = every.at(slice(passed, None))
        which, last_read = room.moments[:fired], room.last_read[:fired]
        order = np.lexsort((last_read, every.due[which]))
        which = which[order]
        slots = room.slots[order] if self.ports.size else every.slots[which]
        return FiringsOfClock(every.at(which), number + room.rows[order], last_read[order], slots)

    def take_up(self, found: Waiting, clock: int | None) -> None:
        """Let matches wait that were read before, as far as their moments have not come."""
        self.waiting = found if clock is None else found.at(found.due > clock)

    def forget_before(self, floors: Rows, window: int) -> None:
        """Drop matches that their keys have forgotten, or that are out of the window."""
        waiting = self.waiting
        counts = (waiting.starts >= floors[waiting.keys]) & (waiting.begun >= waiting.due - window)
        if not counts.all():
            self.waiting = waiting.at(counts)


def _last_of_moments(every: Waiting) -> npt.NDArray[np.bool_]:
    """Which matches are the last of their key and moment."""
    size = len(every.due)
    order = np.lexsort((np.arange(size), every.due, every.keys))
    keys, due = every.keys[order], every.due[order]
    is_last = np.ones(size, np.bool_)
    is_last[order[:-1]] = (keys[1:] != keys[:-1]) | (due[1:] != due[:-1])
    return is_last

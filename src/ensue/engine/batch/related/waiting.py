"""Matches that wait for the clock, where a `timeout` stands behind a chain.

In come the matches that events complete; out go firings, in the order of the stream. A match waits
together with its events, which snapshots and `having` need. A match waits for one moment, a fixed
time after the event that completed it: when that has come the match is gone, whether or not it has
triggered anything.

Since that time is equal for all matches, moments come in the order of the events, whatever the
keys: a queue. Moments at or before the time of an event fire before the event is read. Whether a
firing triggers is decided afterwards (`latest_matches.choose_triggers`): its key may have forgotten
the match by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.related.latest_matches import Candidates, ReadEvents
from ensue.engine.core.jit import uncounted
from ensue.engine.core.numbering import Rows, taller


class Moments(NamedTuple):
    """Moments in their order: when, of which key, and after which row of the batch (-1: before it).

    A moment that is not `needed` is also that of a later match of its key.
    """

    due: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    needed: npt.NDArray[np.bool_]


class LastEvents(NamedTuple):
    """The last events of each key.

    `ports` are the bits of ports whose last event is bound, `of_ports` has that event by key and
    port; `of_key` has the last event of any port, in a numbering that goes on after a snapshot.
    """

    ports: npt.NDArray[np.uint64]
    of_ports: npt.NDArray[np.int64]
    of_key: npt.NDArray[np.int64]


class FiredMoments(NamedTuple):
    """Firings: which moment, before which row, the key's last event, and the last of each port."""

    moments: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    last_read: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]


@uncounted
def fire_moments(
    moments: Any, events: Any, clock: int, last: Any, last_number: int, out: Any
) -> Any:
    """Fire what is due before each event, and up to the clock behind the last one.

    `last_number` is that of the first event in `last.of_key`. Returns how many moments have passed,
    and how many of these have fired.
    """
    due, keys, after, needed = moments
    letters, times, read_under, number = events
    ports, of_ports, of_key = last
    passed, fired = 0, 0
    size = times.size
    for row in range(size + 1):
        now = times[row] if row < size else clock
        while passed < due.size and after[passed] < row and due[passed] <= now:
            if needed[passed]:
                key = keys[passed]
                out.moments[fired], out.rows[fired] = passed, row
                out.last_read[fired] = of_key[key]
                for port in range(ports.size):
                    out.slots[fired, port] = of_ports[key, port]
                fired += 1
            passed += 1
        if row < size:
            key = np.int64(read_under[row])
            of_key[key] = last_number + row
            for port in range(ports.size):
                if letters[row] >> ports[port] & np.uint64(1):
                    of_ports[key, port] = number + row
    return passed, fired


class WaitingMatches(NamedTuple):
    """Matches in the order of their moments: key, first event and its time, all events."""

    due: Rows
    keys: Rows
    starts: Rows
    start_times: Rows
    slots: npt.NDArray[np.int64]

    def taken(self, chosen: Any) -> WaitingMatches:
        return WaitingMatches(*(each[chosen] for each in self))

    def then(self, later: WaitingMatches) -> WaitingMatches:
        return WaitingMatches(*(np.concatenate(pair) for pair in zip(self, later, strict=True)))


class ClockFirings(NamedTuple):
    """Firings in the order of the stream: the match of each, and what is bound.

    `before` is the number of the reading before which it comes, `last_read` the last event of its
    key.
    """

    matches: WaitingMatches
    before: Rows
    last_read: Rows
    slots: npt.NDArray[np.int64]


class MatchClock:
    """The matches of one rule that wait, and the last events of each key.

    Without ports whose last event is bound, a firing binds the events of its match.
    """

    def __init__(self, after: int, places: int, ports: npt.NDArray[np.uint64]) -> None:
        self._after = after
        self._next = 1
        none = np.empty(0, np.int64)
        self.last = LastEvents(ports, np.zeros((0, ports.size), np.int64), none)
        self._nothing = WaitingMatches(none, none, none, none, np.empty((0, places), np.int64))
        self.waiting = self._nothing

    def grow(self, keys: int) -> None:
        ports, of_ports, of_key = self.last
        if keys > len(of_key):
            self.last = LastEvents(ports, taller(of_ports, keys), taller(of_key, keys))

    def clear(self) -> None:
        """Let nothing wait; the last event of each key stays known."""
        self.last.of_ports[:] = 0
        self.waiting = self._nothing

    def restore_last(self, last_read: Mapping[int, int]) -> None:
        """Take in the last events of keys from a snapshot."""
        for key, number in last_read.items():
            self.last.of_key[key] = number
        self._next = 1 + max(last_read.values(), default=0)

    def matches(self, found: Candidates, events: ReadEvents, start_times: Rows) -> WaitingMatches:
        """The candidates of events as matches that wait."""
        due, keys = events.times[found.at] + self._after, events.keys[found.at].astype(np.int64)
        return WaitingMatches(due, keys, found.starts, start_times, found.slots)

    def fire(self, found: WaitingMatches, at: Rows, events: ReadEvents, clock: int) -> ClockFirings:
        """Read events, of which those at rows `at` complete matches; returns what fires."""
        every = self.waiting.then(found)
        old = np.full(len(self.waiting.due), -1, np.int64)
        queue = Moments(every.due, every.keys, np.concatenate([old, at]), _last_of_moments(every))
        size, ports = len(every.due), self.last.ports.size
        room = FiredMoments(
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty((size, ports), np.int64),
        )
        passed, fired = fire_moments(queue, events, clock, self.last, self._next, room)
        self._next += len(events.times)
        self.waiting = every.taken(slice(passed, None))
        which, last_read = room.moments[:fired], room.last_read[:fired]
        order = np.lexsort((last_read, every.due[which]))
        which = which[order]
        slots = room.slots[order] if ports else every.slots[which]
        before = events.number + room.rows[order]
        return ClockFirings(every.taken(which), before, last_read[order], slots)

    def replay(self, found: WaitingMatches, events: ReadEvents, clock: int | None) -> None:
        """Let matches of events that were read before wait, unless their moments have come."""
        # Events are read again key by key, and moments come in their order.
        found = found.taken(np.argsort(found.due, kind="stable"))
        self.waiting = found if clock is None else found.taken(found.due > clock)
        for column, port in enumerate(self.last.ports):
            here = np.flatnonzero(events.letters >> port & np.uint64(1))
            self.last.of_ports[events.keys[here], column] = events.number + here

    def forget_before(self, floors: Rows, window: int) -> None:
        """Drop matches that their keys have forgotten, or that are out of the window."""
        waiting = self.waiting
        counts = (waiting.starts >= floors[waiting.keys]) & (
            waiting.start_times >= waiting.due - window
        )
        if not counts.all():
            self.waiting = waiting.taken(counts)


def _last_of_moments(every: WaitingMatches) -> npt.NDArray[np.bool_]:
    """Which matches are the last of their key and moment."""
    size = len(every.due)
    order = np.lexsort((np.arange(size), every.due, every.keys))
    keys, due = every.keys[order], every.due[order]
    is_last = np.ones(size, np.bool_)
    is_last[order[:-1]] = (keys[1:] != keys[:-1]) | (due[1:] != due[:-1])
    return is_last

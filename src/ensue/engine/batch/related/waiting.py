"""Matches that wait for the clock, where a `timeout` stands behind a chain.

In come the matches that events complete; out go firings, in the order of the stream. A match waits
together with its events, which snapshots and `having` need. A match waits for one moment, a fixed
time after the event that completed it: when that has come the match is gone, whether or not it has
triggered anything.

Since that time is equal for all matches, moments come in the order of the events, whatever the
keys: a queue. Moments at or before the time of an event fire before the event is read (`fire`).
Whether one triggers is decided afterwards (`settle_firings`): its key may have forgotten the match
by then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.core.jit import uncounted
from ensue.engine.core.numbering import Numbers, Rows, taller


class Moments(NamedTuple):
    """Moments in their order: when, of which key, and after which row of the batch (-1: before it).

    A moment that is not `needed` is that of another match of its key as well, which is later.
    """

    due: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    needed: npt.NDArray[np.bool_]


class ReadRows(NamedTuple):
    """Rows of a batch: letters, times and keys, and the numbers of the first as reading and read.

    `ports` has the bits of the ports whose last event is bound.
    """

    letters: npt.NDArray[np.uint64]
    times: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int32]
    number: int
    read: int
    ports: npt.NDArray[np.uint64]


class FiredMoments(NamedTuple):
    """Firings: which moment, before which row, the key's last event, and the last of each port."""

    moments: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    last_read: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]


@uncounted
def fire(moments: Any, rows: Any, clock: int, lasts: Any, last_read: Any, out: Any) -> Any:
    """Fire what is due before each row, and up to the clock behind the last one.

    Returns how many moments have passed, and how many of these have fired.
    """
    due, keys, after, needed = moments
    letters, times, read_under, number, read, ports = rows
    passed, fired = 0, 0
    size = times.size
    for row in range(size + 1):
        now = times[row] if row < size else clock
        while passed < due.size and after[passed] < row and due[passed] <= now:
            if needed[passed]:
                key = keys[passed]
                out.moments[fired], out.rows[fired] = passed, row
                out.last_read[fired] = last_read[key]
                for port in range(ports.size):
                    out.slots[fired, port] = lasts[key, port]
                fired += 1
            passed += 1
        if row < size:
            key = np.int64(read_under[row])
            last_read[key] = read + row
            for port in range(ports.size):
                if letters[row] >> ports[port] & np.uint64(1):
                    lasts[key, port] = number + row
    return passed, fired


class JudgedFirings(NamedTuple):
    """Firings: the number of the reading before which each comes, whether its conditions hold.

    `starts` and `keys` are those of the matches that fire.
    """

    before: npt.NDArray[np.int64]
    holds: npt.NDArray[np.bool_]
    starts: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]


class Resets(NamedTuple):
    """Events that match a port of `unless`: their numbers and keys."""

    numbers: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int32]


@uncounted
def settle_firings(firings: Any, resets: Any, floors: Any, keep_all: bool, out: Any) -> int:
    """Write the firings that trigger, given what triggers and `unless` make their keys forget.

    Returns how many there are. `floors` has for each key the number before which all is forgotten.
    """
    before, holds, starts, keys = firings
    numbers, reset_keys = resets
    count, reset = 0, 0
    for each in range(before.size):
        while reset < numbers.size and numbers[reset] < before[each]:
            floors[reset_keys[reset]] = max(floors[reset_keys[reset]], numbers[reset])
            reset += 1
        key = keys[each]
        if holds[each] and starts[each] >= floors[key]:
            out[count] = each
            count += 1
            if not keep_all:
                floors[key] = before[each]
    while reset < numbers.size:
        floors[reset_keys[reset]] = max(floors[reset_keys[reset]], numbers[reset])
        reset += 1
    return count


class Waiting(NamedTuple):
    """Matches in the order of their moments: key, first event and its time, all events."""

    due: Rows
    keys: Rows
    starts: Rows
    start_times: Rows
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


class MatchClock:
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

    def matches(
        self, times: Rows, keys: Numbers, starts: Rows, start_times: Rows, slots: Any
    ) -> Waiting:
        """The matches that events of these times and keys complete."""
        return Waiting(times + self._after, keys.astype(np.int64), starts, start_times, slots)

    def fire(
        self, found: Waiting, at: Rows, letters: Any, times: Rows, keys: Numbers, number: int,
        clock: int,
    ) -> FiringsOfClock:  # fmt: skip
        """Read a batch, of whose rows `at` complete matches; what fires up to the clock."""
        every = self.waiting.then(found)
        old = np.full(len(self.waiting.due), -1, np.int64)
        queue = Moments(every.due, every.keys, np.concatenate([old, at]), _last_of_moments(every))
        rows = ReadRows(letters, times, keys, number, self.read, self.ports)
        size = len(every.due)
        room = FiredMoments(
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty((size, self.ports.size), np.int64),
        )
        passed, fired = fire(queue, rows, clock, self.lasts, self.last_read, room)
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
        counts = (waiting.starts >= floors[waiting.keys]) & (
            waiting.start_times >= waiting.due - window
        )
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

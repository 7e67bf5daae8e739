"""Compiled loops: the moments at which a `timeout` behind a chain is up.

A match that an event completes has its moment a fixed time after the event. Since that time is
equal for all matches, moments come in the order of the events, whatever the keys: a queue. Moments
at or before the time of an event fire before the event is read. Whether one triggers is decided
afterwards (`settle_firings`): its key may have forgotten the match by then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.core.jit import uncounted


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

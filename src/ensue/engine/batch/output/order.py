"""The order of everything in a stream, as rows of numbers that sort.

What happens has a *root*: an event of the input, or an alarm. What a root makes correlations put
out is read by others, and what those put out by others again, first in, first out. A row is

    time, kind of root, three numbers of the root, level, (correlation, count) for each level

and rows compared from the left are in the order of `ensue.engine.stream`: alarms due at a time
before its events; of one root, whole levels one after the other; within a level first by what was
read, then by the correlation that read it, then as it put out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]

ALARM = 0
EVENT = 1
_HEAD = 6
_LEVEL = 5


def depth_of(feeds: Mapping[str, Sequence[str]]) -> int:
    """How many correlations a way from an event to an output may go through."""
    known: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in known:
            known[name] = 1 + max((depth(fed) for fed in feeds.get(name, ())), default=0)
        return known[name]

    return max((depth(name) for name in feeds), default=1)


def reading_order(names: Sequence[str], feeds: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of correlations, each after the correlations that feed it."""
    feeders: dict[str, set[str]] = {name: set() for name in names}
    for feeder in names:
        for fed in feeds.get(feeder, ()):
            feeders[fed].add(feeder)
    ordered: dict[str, None] = {}
    while len(ordered) < len(names):
        ready = [n for n in names if n not in ordered and feeders[n] <= ordered.keys()]
        ordered |= dict.fromkeys(ready)
    return list(ordered)


def depth_in(positions: Positions) -> int:
    """The depth that positions were made for."""
    return int(positions.shape[1] - _HEAD) // 2


def event_positions(times: npt.NDArray[np.int64], first: int, depth: int) -> Positions:
    out = np.zeros((len(times), _HEAD + 2 * depth), np.int64)
    out[:, 0] = times
    out[:, 1] = EVENT
    out[:, 2] = np.arange(first, first + len(times))
    return out


def past_positions(
    times: npt.NDArray[np.int64], roots: Sequence[tuple[int, int]], depth: int
) -> Positions:
    """The positions of earlier readings, from the kind and the number of each one's root."""
    out = event_positions(times, 0, depth)
    out[:, 1:3] = roots
    return out


def alarm_positions(
    due: npt.NDArray[np.int64],
    correlation: int | npt.NDArray[np.int64],
    instances: npt.NDArray[np.int64],
    fired: npt.NDArray[np.int64],
    depth: int,
) -> Positions:
    out = np.zeros((len(due), _HEAD + 2 * depth), np.int64)
    out[:, 0] = due
    out[:, 1] = ALARM
    out[:, 2] = correlation
    out[:, 3] = instances
    out[:, 4] = fired
    return out


def alarm_position(due: int, correlation: int, instance: int, fired: int, depth: int) -> Positions:
    out = np.zeros(_HEAD + 2 * depth, np.int64)
    out[:_LEVEL] = (due, ALARM, correlation, instance, fired)
    return out


def output_positions(read: Positions, correlation: int | Positions) -> Positions:
    """The positions of outputs, from the positions of the readings that made them."""
    out = read.copy()
    level = read[:, _LEVEL]
    rows = np.arange(len(read))
    out[rows, _HEAD + 2 * level] = correlation
    out[rows, _HEAD + 2 * level + 1] = rows
    out[:, _LEVEL] = level + 1
    return out

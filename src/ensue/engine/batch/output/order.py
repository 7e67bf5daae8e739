"""The order of all readings and outputs of a stream, as positions: rows of numbers that sort.

Every output has a *root*: an event of the input, or an alarm. Correlations read the root, other
correlations read their outputs, and so on, level by level. A position is

    time, kind of root, three numbers of the root, level, (correlation, count) for each level

and positions compared from the left are in the order of `ensue.engine.stream`: alarms due at a time
before its events; of one root, whole levels one after the other; within a level first by what was
read, then by the correlation that read it, then as it put out.

Where no correlation feeds another, two numbers are enough within one batch (`OutputPlaces`): the
*turn*, which is a row or, for alarms, the gap before a row; and the number of the correlation.
Alarms in one turn are ordered by time, then by correlation, then by the last event that the key has
read. In come the outputs of several sources, each source in its own order; out goes the order of
all outputs (`order_of`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.core.numbering import Instants, Rows

Positions = npt.NDArray[np.int64]

ALARM = 0
EVENT = 1
_HEAD = 6
"""How many numbers of a position come before those of its levels."""
_LEVEL = 5
"""The column of the level."""


def depth_of(feeds: Mapping[str, Sequence[str]]) -> int:
    """How many correlations a way from an event to an output may go through."""
    names = dict.fromkeys([*feeds, *(fed for each in feeds.values() for fed in each)])
    return max(_levels(list(names), feeds).values(), default=1)


def reading_order(names: Sequence[str], feeds: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of correlations, each after the correlations that feed it."""
    levels = _levels(names, feeds)
    return sorted(names, key=levels.__getitem__)


def _levels(names: Sequence[str], feeds: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """By correlation, how many there are on the longest way to its outputs.

    Chains of rules may be thousands long, so nothing here calls itself.
    """
    awaited = Counter(fed for name in names for fed in feeds.get(name, ()))
    levels = dict.fromkeys(names, 1)
    ready = [name for name in names if not awaited[name]]
    for name in ready:
        for fed in feeds.get(name, ()):
            levels[fed] = max(levels[fed], levels[name] + 1)
            awaited[fed] -= 1
            if not awaited[fed]:
                ready.append(fed)
    return levels


def position_width(depth: int) -> int:
    """How many numbers a position has."""
    return _HEAD + 2 * depth


def event_positions(times: npt.NDArray[np.int64], first: int, depth: int) -> Positions:
    out = np.zeros((len(times), position_width(depth)), np.int64)
    out[:, 0] = times
    out[:, 1] = EVENT
    out[:, 2] = np.arange(first, first + len(times))
    return out


def alarm_positions(
    due: npt.NDArray[np.int64],
    correlation: int | npt.NDArray[np.int64],
    last_read: npt.NDArray[np.int64],
    fired: npt.NDArray[np.int64],
    depth: int,
) -> Positions:
    out = np.zeros((len(due), position_width(depth)), np.int64)
    out[:, 0] = due
    out[:, 1] = ALARM
    out[:, 2] = correlation
    out[:, 3] = last_read
    out[:, 4] = fired
    return out


def alarm_position(due: int, correlation: int, last_read: int, fired: int, depth: int) -> Positions:
    out = np.zeros(position_width(depth), np.int64)
    out[:_LEVEL] = (due, ALARM, correlation, last_read, fired)
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


class Roots(NamedTuple):
    """The roots of outputs: rows of the batch, or -1 for alarms.

    `numbers` has their correlations; for alarms, `last_read` has the last event of the key, which
    orders alarms of one time and correlation.
    """

    rows: Rows
    numbers: Rows
    times: Instants
    last_read: Rows

    @classmethod
    def joined(cls, parts: Sequence[Roots]) -> Roots:
        """Roots of several parts of a batch, one part after the other."""
        if not parts:
            none = np.empty(0, np.int64)
            return cls(none, none, none, none)
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def later(self, rows: int) -> Roots:
        """These roots after so many more rows."""
        if not rows:
            return self
        moved = np.where(self.rows < 0, -1, self.rows + rows)
        return Roots(moved, self.numbers, self.times, self.last_read)

    def positions(self, of_rows: Positions) -> Positions:
        """Positions in any stream, from the positions of the rows."""
        out = np.zeros((len(self.rows), of_rows.shape[1]), np.int64)
        alarms = np.flatnonzero(self.rows < 0)
        events = np.flatnonzero(self.rows >= 0)
        out[events] = of_rows[self.rows[events]]
        out[alarms] = alarm_positions(
            self.times[alarms],
            self.numbers[alarms],
            self.last_read[alarms],
            alarms,
            int(of_rows.shape[1] - _HEAD) // 2,
        )
        return out


@dataclass(frozen=True, slots=True)
class OutputPlaces:
    """Places of the outputs of one source within a batch; `numbers` has their correlations.

    `alarms` has the time and the key's last event, where alarms may have caused some outputs.
    """

    turns: Rows
    numbers: Rows
    alarms: npt.NDArray[np.int64] | None = None

    @classmethod
    def of_rows(cls, rows: Rows, numbers: Rows | int) -> OutputPlaces:
        """Outputs that come from rows of the batch."""
        return cls(2 * rows + 1, np.broadcast_to(numbers, len(rows)))

    @classmethod
    def of_roots(cls, roots: Roots, of_batch: Instants) -> OutputPlaces:
        """Outputs that come from rows of the batch or from alarms."""
        turns = 2 * roots.rows + 1
        alarms = np.flatnonzero(roots.rows < 0)
        if not alarms.size:
            return cls(turns, roots.numbers)
        turns[alarms] = 2 * np.searchsorted(of_batch, roots.times[alarms])
        return cls(turns, roots.numbers, np.column_stack([roots.times, roots.last_read]))

    @classmethod
    def of_positions(
        cls, positions: Positions, number: int, first: int, of_batch: Instants
    ) -> OutputPlaces:
        """Places within a batch from `order.Positions`; `first` is the number of its first row."""
        is_alarm = positions[:, 1] == ALARM
        rows = np.where(is_alarm, -1, positions[:, 2] - first)
        numbers = np.full(len(positions), number, np.int64)
        return cls.of_roots(Roots(rows, numbers, positions[:, 0], positions[:, 3]), of_batch)


def order_of(sources: Sequence[OutputPlaces]) -> Rows:
    """The order of all outputs, which are numbered from one source to the next."""
    turns = np.concatenate([each.turns for each in sources])
    seconds = np.concatenate([each.numbers for each in sources])
    alarms = np.flatnonzero(turns % 2 == 0)
    if alarms.size:
        seconds[alarms] = 0
        if sum(each.alarms is not None for each in sources) > 1:
            seconds[alarms] = _ranks(sources, alarms)
    last = 1 + int(seconds.max(initial=0))
    # Each source is in order already, so most of this is merging.
    return np.argsort(turns * last + seconds, kind="stable")


def _ranks(sources: Sequence[OutputPlaces], alarms: Rows) -> Rows:
    """For each output of an alarm, how many outputs of alarms come before it."""
    numbers = np.concatenate([each.numbers for each in sources])[alarms]
    when = np.concatenate(
        [np.zeros((len(e.turns), 2), np.int64) if e.alarms is None else e.alarms for e in sources]
    )[alarms]
    order = np.lexsort((when[:, 1], numbers, when[:, 0]))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks

"""A stream in columns, put in order within its lateness.

In come the times of events as they arrive, many at once; out goes, for each, whether it is taken,
comes too late, or lies too far ahead, by the rules of `ordering`, and where the stream begins anew.
Which of the events that were taken wait, and when they are read, is a matter of their times alone:
all up to `settled` are final.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.instance import ENDLESS
from ensue.engine.timing.jumps import UNBOUNDED, jump_problem
from ensue.engine.timing.ordering import Ordering
from ensue.events.event import Event

Times = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]


class Arrivals(NamedTuple):
    """Events of one stretch of arrivals, by their places: taken, too late, and too far ahead.

    `problems` are those of the events that are too far ahead. If the stream `is_new`, what came
    before is read first, and the stream then begins as if it were the first.
    """

    taken: Rows
    late: Rows
    ahead: Rows
    problems: list[str]
    is_new: bool = False


class ColumnOrdering:
    """The order of a stream whose events arrive in columns.

    It goes on with an order of single events, of a run that has `read` so many.
    """

    def __init__(self, ordering: Ordering, read: int = 0) -> None:
        self._ordering = ordering
        self._read = read

    @property
    def lateness(self) -> int:
        return self._ordering.lateness

    @property
    def max_jump(self) -> float:
        return self._ordering.max_jump

    @property
    def latest(self) -> int | None:
        """The latest time so far."""
        found = self._ordering.latest
        return None if isinstance(found, float) else found

    @property
    def settled(self) -> int | None:
        """The time up to which the order is final."""
        return self._ordering.settled

    def release(self) -> list[Event]:
        """The single events that wait, which are taken out of the order."""
        return list(self._ordering.rest())

    def hold(self, events: Iterable[Event]) -> None:
        """Let single events wait in the order."""
        for each in events:
            self._ordering.add(each)

    def arrive(self, times: Times) -> list[Arrivals]:
        """What becomes of events that arrive in this order."""
        if not len(times):
            return []
        before = self._latest_before(times)
        if self.max_jump != UNBOUNDED and self._may_jump(times, before):
            return self._one_by_one(times)
        is_late = times < before - self.lateness
        self._ordering.observe(int(times.max()))
        self._read += len(times)
        none = np.empty(0, np.int64)
        return [Arrivals(np.flatnonzero(~is_late), np.flatnonzero(is_late), none, [])]

    def _latest_before(self, times: Times) -> Times:
        """The latest time before each event; that of the first is its own if there is none."""
        first = times[0] if self.latest is None else self.latest
        return np.maximum.accumulate(np.append(first, times[:-1]))

    def _may_jump(self, times: Times, before: Times) -> bool:
        # A difference of two times never passes 64 bits.
        return bool((times - before > min(self.max_jump, ENDLESS)).any())

    def _one_by_one(self, times: Times) -> list[Arrivals]:
        """The rules of `Admission`, for times instead of events."""
        found: list[Arrivals] = []
        taken, late, ahead, problems = list[int](), list[int](), list[int](), list[str]()
        is_new = False

        def finished() -> Arrivals:
            rows = [np.array(each, np.int64) for each in (taken, late, ahead)]
            return Arrivals(rows[0], rows[1], rows[2], list(problems), is_new)

        for place, time in enumerate(times.tolist()):
            if self._ordering.is_ahead(time):
                latest = self.latest
                assert latest is not None
                if not self._ordering.is_believed(time, self._read):
                    ahead.append(place)
                    problems.append(jump_problem(time, latest, self.max_jump))
                    continue
                found.append(finished())
                taken, late, ahead, problems, is_new = [], [], [], [], True
                self._ordering.begin_anew()
            self._read += 1
            if self._ordering.is_late(time):
                late.append(place)
            else:
                taken.append(place)
                self._ordering.observe(time)
        return [*found, finished()]

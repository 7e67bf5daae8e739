"""The years of times that have none, as in `Dec 10 06:55:46`, row after row of one file.

In come the local times of a file in its order, each as a function of the year; out go years. The
first time is in the year that the user names. The year moves on where times would otherwise go back
by more than half a year, and a time of up to a day before that is still of the year before, since
logs are not quite in order. Each file begins anew, so that its times do not depend on which files
are read with it. A row that is read again has the year that is nearest to the time it had.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ensue.events.times import datetime_of, microseconds_of

if TYPE_CHECKING:
    # Only whole columns need it, and it takes a while to import.
    import numpy as np
    import numpy.typing as npt

    Micros = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]
    LocalTimes = Callable[["int | Micros"], "tuple[Micros, Mask]"]
    """Local times in a year, or each in its own, and whether the year has the day."""

_DAY = 86_400_000_000
_HALF_A_YEAR = 183 * _DAY


class Years:
    """The year of each time of a file.

    While `near` is set it is the time of a row that is read again: the year is then the one that
    brings its time nearest to that, and the order of rows does not matter.
    """

    def __init__(self, first: int) -> None:
        self._first = self._year = first
        self._latest: int | None = None
        self.near: int | None = None

    @classmethod
    def of(cls, first: int | None) -> Years | None:
        """None if times have years."""
        return None if first is None else cls(first)

    @property
    def now(self) -> tuple[int, int | None]:
        """The year of the next time, and the latest time, to go on with elsewhere."""
        return self._year, self._latest

    def go_on(self, year: int, latest: int | None) -> None:
        """Go on where `now` was."""
        self._year, self._latest = year, latest

    def __call__(self, local: Callable[[int], datetime]) -> int:
        """The year of the next time."""
        near = self.near
        if near is None:
            return self._next(lambda year: _micros(local, year))
        about = datetime_of(near).year
        found = {year: _micros(local, year) for year in (about, about - 1, about + 1)}
        known = {year: abs(time - near) for year, time in found.items() if time is not None}
        return min(known, key=known.__getitem__, default=about)

    def _next(self, local: Callable[[int], int | None]) -> int:
        """The year of the next time; `local` gives None for a day that the year does not have."""
        year = self._year
        found = local(year)
        if self._latest is not None:
            if found is None or found < self._latest - _HALF_A_YEAR:
                later = local(year + 1)
                if later is not None and later <= self._latest + _HALF_A_YEAR:
                    year, found = year + 1, later
                    self._year = year
            elif year > self._first and found > self._latest + _HALF_A_YEAR:
                before = local(year - 1)
                if before is not None and before >= self._latest - _DAY:
                    return year - 1
        if found is not None:
            self._latest = found if self._latest is None else max(found, self._latest)
        return year

    def of_rows(self, local: LocalTimes, usable: Mask, near: Micros | None = None) -> Micros:
        """The years of many times; rows that are not `usable` have no time.

        `near` are the times that the rows had when they were first read.
        """
        import numpy as np

        if near is not None:
            return _nearest(local, near)
        found, exists = local(self._year)
        years = np.full(len(found), self._year, np.int64)
        rows = np.flatnonzero(usable)
        if not len(rows):
            return years
        times = found[rows]
        latest = int(times[0]) if self._latest is None else self._latest
        ahead = times - np.maximum.accumulate(np.concatenate([[latest], times]))[:-1]
        goes_on = bool((ahead >= -_HALF_A_YEAR).all())
        if self._year > self._first:
            goes_on = goes_on and bool((ahead <= _HALF_A_YEAR).all())
        if goes_on and exists[rows].all():
            self._latest = max(latest, int(times.max()))
            return years
        known = {self._year: (found, exists)}
        for row in rows.tolist():

            def local_time(year: int, row: int = row) -> int | None:
                if year not in known:
                    known[year] = local(year)
                values, have = known[year]
                return int(values[row]) if have[row] else None

            years[row] = self._next(local_time)
        return years


def _nearest(local: LocalTimes, near: Micros) -> Micros:
    """The years that bring times nearest to those that the rows had."""
    import numpy as np

    about = near.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970
    best, least = about, np.full(len(near), np.iinfo(np.int64).max)
    for year in (about, about - 1, about + 1):
        found, exists = local(year)
        apart = np.where(exists, np.abs(found - near), np.iinfo(np.int64).max)
        best, least = np.where(apart < least, year, best), np.minimum(apart, least)
    return best


def _micros(local: Callable[[int], datetime], year: int) -> int | None:
    try:
        return microseconds_of(local(year).replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None

"""When states of runs are saved, and how: what a start after a kill has to read again.

In come the runs and the number of the last entry, between two transactions of the line; states are
written one at a time, since events wait meanwhile. A state is saved `seconds` after the last time,
if there is anything new in it, also when nothing comes any more; under much load sooner. Saving
takes a small part of the line's time, or, for states that are due, at most `DUE_SHARE` of it. A
state that cannot be saved is told and tried again later: the run itself is not harmed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

from ensue.errors import EnsueError
from ensue.server.station.record.journal import ServerJournal
from ensue.server.station.record.registry import Registry, Saved
from ensue.server.station.rules.hosted import Hosted
from ensue.server.station.troubles import Troubles

SOON_ENTRIES: Final = 200_000
"""A state that is so far behind is saved before its time."""
SOON_SHARE: Final = 20
DUE_SHARE: Final = 4
"""Saving takes one part in so many of the time, before it is due and afterwards."""
RETRY_SECONDS: Final = 5.0


class StateSaver:
    """`seconds`: how much time may pass until what a run has read is saved."""

    def __init__(
        self, journal: ServerJournal, registry: Registry, seconds: float, troubles: Troubles
    ) -> None:
        self._journal = journal
        self._registry = registry
        self._seconds = seconds
        self._troubles = troubles
        self._last = time.monotonic()
        self._took = 0.0

    def seconds_left(self, runs: Iterable[Hosted], seq: int) -> float | None:
        """How long until a state is to be saved; None while nothing is new."""
        behind = [each.saved_at for each in runs if seq > each.saved_seq]
        if not behind:
            return None
        at = max(min(behind) + self._seconds, self._last + DUE_SHARE * self._took)
        return at - time.monotonic()

    def save_next(self, runs: Iterable[Hosted], seq: int) -> None:
        """Save the state that is the furthest behind, if it is time for it."""
        now = time.monotonic()
        free = now - self._last
        if free < DUE_SHARE * self._took:
            return
        chosen = [
            each
            for each in runs
            if (seq > each.saved_seq and now - each.saved_at >= self._seconds)
            or (seq - each.saved_seq >= SOON_ENTRIES and free >= SOON_SHARE * self._took)
        ]
        if not chosen:
            return
        each = min(chosen, key=lambda each: each.saved_seq)
        what = f"saving the state of library `{each.name}`"
        try:
            self.save([each], seq)
        except EnsueError as error:
            self._troubles.note(what, str(error))
            # Not before others: it counts as saved until it is tried again.
            each.saved_at = now + RETRY_SECONDS - self._seconds
        else:
            self._troubles.note(what, None)

    def save(self, runs: Sequence[Hosted], seq: int) -> None:
        """Write states, so that a start goes on from here. Raises what the journal says."""
        started = time.monotonic()
        try:
            with self._journal.write():
                for each in runs:
                    state, counts = each.state()
                    self._registry.save_state(Saved(each.name, each.version, seq, state, counts))
        finally:
            self._last = time.monotonic()
            self._took = self._last - started
        for each in runs:
            each.saved_seq, each.saved_at = seq, self._last

"""From the journal to the history: a thread that keeps the history up with what was acknowledged.

Acknowledged is what the journal holds. The history, with its indexes, takes longer to write, so it
is filled behind the line, in batches; the number of the last event in it is written down after it
is. A crash in between fills some events in again, which changes nothing. A query of the history
waits until it has come up with the journal; as long as no query comes, it is filled many thousand
events or some seconds at a time, since small transactions cost the most, and the disk is wanted for
the journal. While filters ask the history of every event, the line itself fills it, event by event,
and this thread rests.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from ensue.errors import EnsueError, EventError, HistoryError
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.history import History
from ensue.server.station.entries import EVENT, JournalEntry
from ensue.server.station.record.journal import ServerJournal
from ensue.server.station.troubles import Troubles

BATCH: Final = 16_000
"""Events of one transaction: a little fewer than `History.add_read` puts into one."""
GATHER_SECONDS: Final = 4.0
"""How long events wait for others, to be put into the history in one transaction: each flush of it
holds up those of the journal on the same disk."""
RETRY_SECONDS: Final = 1.0
MOST_HELD: Final = 60_000
"""Events that wait in memory; more are read from the journal."""
MOST_HELD_BYTES: Final = 64 * 1024 * 1024
"""As many bytes of JSON, at most."""


class WrittenEntries(NamedTuple):
    """Entries of the journal from `first` to `last`: the events among them, of `size` bytes."""

    first: int
    last: int
    events: list[Event]
    size: int = 0


class Indexer:
    """`wake` is called by the line after each commit; `catch_up` waits for a number."""

    def __init__(
        self,
        journal: ServerJournal,
        history: History,
        indexed: int,
        troubles: Troubles | None = None,
    ) -> None:
        self._troubles = Troubles("") if troubles is None else troubles
        self._journal = journal
        self._history = history
        self._changed = threading.Condition()
        self._goal = self.indexed = indexed
        self._ends = False
        self._rests = False
        self._asked = 0
        self._held: deque[WrittenEntries] = deque()
        self._held_events = self._held_bytes = 0
        self.problem: str | None = None
        self.refused = 0
        self.processor_seconds = 0.0
        self._thread = threading.Thread(target=self._work, name="ensue-indexer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def fill(self, seq: int) -> None:
        """Fill the history up to a number, in the thread that asks: before `start`."""
        self._fill(self.indexed, seq)

    def wake(self, seq: int, written: WrittenEntries | None = None) -> None:
        """The journal holds entries up to a number; `written` are the latest of them.

        Events that are at hand need not be read from the journal again. Only so many are held: what
        is too much is left to the journal.
        """
        with self._changed:
            if written is not None:
                self._held.append(written)
                self._held_events += len(written.events)
                self._held_bytes += written.size
                while self._held_events > MOST_HELD or self._held_bytes > MOST_HELD_BYTES:
                    self._take_held()
            is_first = self._goal <= self.indexed
            self._goal = max(self._goal, seq)
            if is_first or self._is_due:
                self._changed.notify_all()

    @property
    def _is_due(self) -> bool:
        """Whether enough events wait for a transaction, or a query waits for it."""
        return self._ends or self._goal - self.indexed >= BATCH or self._asked > self.indexed

    @property
    def lag(self) -> int:
        """How many entries of the journal are not in the history yet."""
        return max(0, self._goal - self.indexed)

    def catch_up(self, seq: int, seconds: float) -> None:
        """Wait until the history holds everything up to a number. Raises `HistoryError`."""
        limit = time.monotonic() + seconds
        with self._changed:
            self._asked = max(self._asked, seq)
            self._changed.notify_all()
            while self.indexed < seq:
                left = limit - time.monotonic()
                if left <= 0 or self._ends:
                    reason = f": {self.problem}" if self.problem else ""
                    raise HistoryError(
                        f"the history is {self.lag:,} entries behind the journal{reason};"
                        " nothing is lost, so ask again in a moment"
                    )
                self._changed.wait(left)

    # --- filling it -----------------------------------------------------------------------------

    def take_over(self, seq: int, seconds: float) -> None:
        """The line fills the history itself from now on, once it is up with the journal."""
        self.catch_up(seq, seconds)
        with self._changed:
            self._rests = True

    def hand_back(self, seq: int) -> None:
        """The line has filled the history up to a number, and leaves the rest to this thread."""
        with self._changed:
            self.indexed = seq
            self._goal = max(self._goal, seq)
            self._rests = False
            self._changed.notify_all()

    def filled(self, seq: int) -> None:
        """The line, which fills the history itself, has come to a number."""
        with self._changed:
            self.indexed = self._goal = seq
            self._changed.notify_all()

    def keep(self, events: Sequence[Event]) -> None:
        """Put events into the history; what cannot be kept there is counted."""
        self._history.add_read(events, self._refuse)

    def _refuse(self, _: object, __: EventError) -> None:
        self.refused += 1

    # --- the thread -----------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._ends and (self._rests or self.indexed >= self._goal):
                    self._changed.wait()
                gathered = time.monotonic() + GATHER_SECONDS
                while not self._is_due and (left := gathered - time.monotonic()) > 0:
                    self._changed.wait(left)
                if self._ends:
                    return
                if self._rests:
                    continue
                begin, goal = self.indexed, self._goal
            try:
                self._fill(begin, goal)
                self._note(None)
            except EnsueError as error:
                self._note(str(error))
                time.sleep(RETRY_SECONDS)

    def _note(self, problem: str | None) -> None:
        self.problem = problem
        self._troubles.note("filling the history", problem)

    def _fill(self, begin: int, goal: int) -> None:
        while begin < goal and not self._ends:
            held = self._next_held(begin)
            if held is not None:
                self.keep(held.events)
                begin = held.last
            else:
                rows = self._journal.page(begin, goal, BATCH)
                self.keep(events_in(rows))
                begin = rows[-1].seq if rows else goal
            with self._changed:
                self.indexed = begin
                if threading.current_thread() is self._thread:
                    self.processor_seconds = time.thread_time()
                self._changed.notify_all()

    def _next_held(self, begin: int) -> WrittenEntries | None:
        """The events behind a number, if they are at hand, with all that follow them."""
        with self._changed:
            while self._held and self._held[0].first <= begin:
                self._take_held()
            if not self._held or self._held[0].first != begin + 1:
                return None
            last, events = begin, list[Event]()
            while self._held and self._held[0].first == last + 1:
                if events and len(events) + len(self._held[0].events) > BATCH:
                    break
                found = self._take_held()
                events += found.events
                last = found.last
            return WrittenEntries(begin + 1, last, events)

    def _take_held(self) -> WrittenEntries:
        found = self._held.popleft()
        self._held_events -= len(found.events)
        self._held_bytes -= found.size
        return found


def events_in(rows: Sequence[JournalEntry]) -> list[Event]:
    return [decode(row.body) for row in rows if row.kind == EVENT]

"""The line: the one thread that reads events, runs the rules and writes the journal.

In come jobs through a bounded queue: publications, and calls that must see the runs at rest (a
library is put, a state is looked at). The line takes all publications that wait, lets every library
read them, writes events and outputs to the journal in one transaction, and only then acknowledges
them and hands them to the feed. So whatever was acknowledged or delivered is in the journal, and a
process that is killed in between has acknowledged nothing. If writing fails, nothing is
acknowledged, and the runs, which are ahead of the journal then, are put back to where it stands.

A queue that is full refuses: `BusyError` says when to come again. Nothing waits without bound.

The module is long because it is that whole thread, with the queue in front of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import nullcontext, suppress
from operator import and_
from typing import Any, Final, Protocol

from ensue.errors import EnsueError, EventError, HistoryError
from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.events.expiry import EXPIRY, has_expired
from ensue.server.station.entries import (
    EVENT,
    LATE,
    OUTPUT,
    TIME,
    UNREAD,
    JournalEntry,
    Live,
    weight_of,
)
from ensue.server.station.figures import StationFigures
from ensue.server.station.indexing import Indexer
from ensue.server.station.record.journal import ServerJournal
from ensue.server.station.record.registry import Registry, Saved
from ensue.server.station.rules.hosted import Hosted
from ensue.server.station.troubles import Troubles

GROUP_BYTES: Final = 16 * 1024 * 1024
GROUP_TICKS: Final = 500
"""Entries of one transaction when only the clock moves."""
PROBE_SECONDS: Final = 1.0
"""How often it is tried whether a journal that could not be written to works again."""
BACKLOG_EVENTS: Final = 50_000
"""The most entries, by weight, that wait for the feed before the line waits for it."""

log = logging.getLogger("ensue.server")


class BusyError(EnsueError):
    """The server has more to do than its limits allow; `seconds` says when to try again."""

    def __init__(self, what: str, seconds: int = 1) -> None:
        self.what = what
        self.seconds = seconds
        super().__init__(what, seconds)

    def __str__(self) -> str:
        return f"{self.what}; try again in {self.seconds} s"


class PublishedBatch:
    """Events that were published together, each with its JSON, and the future of their caller.

    `duplicates` had come before, and `expired` were of no use any more: no rule reads them.

    `stamped` has the places of those that came without a time, and have that of their arrival.
    """

    __slots__ = (
        "duplicates",
        "events",
        "expired",
        "future",
        "last",
        "since",
        "size",
        "stamped",
        "unread",
    )

    def __init__(
        self, events: Sequence[tuple[Event, bytes]], size: int, stamped: Collection[int] = ()
    ) -> None:
        self.events = events
        self.size = size
        self.stamped = stamped
        self.future: Future[PublishedBatch] = Future()
        self.since = time.perf_counter()
        self.last = 0
        self.duplicates = self.expired = 0
        self.unread: list[tuple[int, str, tuple[str, ...]]] = []


class LineCall:
    """A function that the line calls between two transactions."""

    __slots__ = ("function", "future")

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.future: Future[Any] = Future()


class LineOwner(Protocol):
    """What the line works on; a `Station`."""

    journal: ServerJournal
    registry: Registry
    indexer: Indexer
    figures: StationFigures
    troubles: Troubles
    hosted: dict[str, Hosted]
    seq: int
    most_keys: int
    is_crowded: bool
    """Whether all rules together hold too many keys."""

    @property
    def asks(self) -> bool:
        """Whether libraries or subscriptions ask the history of every event."""

    def matched(self, event: Event) -> tuple[int, ...]:
        """The temporal subscriptions that an event matches."""

    def are_new(self, events: Sequence[Event], stamped: Collection[int]) -> Sequence[bool]:
        """Which events have not come before; remembers them. Those stamped have a time of ours."""

    def next_due(self) -> int | None: ...

    def kept_together(self) -> Any: ...

    def keep(self, event: Event) -> None: ...

    def written(self, live: list[Live], weight: int, *, is_whole: bool) -> None:
        """Entries are in the journal; `is_whole`: so is what the history holds of them."""

    def recover(self) -> None:
        """Put the runs back to where the journal stands."""

    def seconds_to_rest(self) -> float | None:
        """How long until `rest` has something to do, though nothing comes; None if nothing."""

    def rest(self) -> None:
        """Between two transactions: save states, give up old entries."""


class Line:
    """`transaction_events`: those of one transaction, beyond the publication that fills it."""

    def __init__(
        self, owner: LineOwner, waiting_events: int, waiting_bytes: int, transaction_events: int
    ) -> None:
        self._owner = owner
        self._transaction_events = transaction_events
        self._most_events = waiting_events
        self._most_bytes = waiting_bytes
        self._jobs: deque[PublishedBatch | LineCall] = deque()
        self._changed = threading.Condition()
        self.waiting_events = self.waiting_bytes = 0
        self.backlog = 0
        self._ends = False
        self.failure: str | None = None
        self._failed_at = 0.0
        self._thread = threading.Thread(target=self._work, name="ensue-line", daemon=True)

    # --- from other threads ---------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Work off what waits, then end."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def publish(self, publication: PublishedBatch) -> None:
        """Take a publication, or raise `BusyError`."""
        count = len(publication.events)
        with self._changed:
            self._refuse_after_end()
            if self.waiting_events and (
                self.waiting_events + count > self._most_events
                or self.waiting_bytes + publication.size > self._most_bytes
            ):
                raise BusyError(
                    f"{self.waiting_events:,} events ({self.waiting_bytes:,} bytes) wait to be"
                    f" read, and limits `waiting_events` ({self._most_events:,}) and"
                    f" `waiting_bytes` ({self._most_bytes:,}) allow no more"
                )
            self.waiting_events += count
            self.waiting_bytes += publication.size
            self._jobs.append(publication)
            self._changed.notify_all()

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """Have a function called by the line, and give its result."""
        call = LineCall(function)
        with self._changed:
            self._refuse_after_end()
            self._jobs.append(call)
            self._changed.notify_all()
        return call.future

    def delivered(self, count: int) -> None:
        """Note that the feed has taken entries of weight `count` (`weight_of`)."""
        with self._changed:
            has_waited = self.backlog >= BACKLOG_EVENTS
            self.backlog -= count
            if has_waited:
                self._changed.notify_all()

    def wake(self) -> None:
        """The due times of timers may have changed."""
        with self._changed:
            self._changed.notify_all()

    def _refuse_after_end(self) -> None:
        if self._ends:
            raise BusyError("the server is stopping", 5)

    # --- the thread -----------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            jobs: list[PublishedBatch | LineCall] | None = []
            try:
                jobs = self._next_jobs()
                if jobs is None:
                    return
                if not jobs:
                    if self._is_writable():
                        self._tick()
                elif isinstance(jobs[0], LineCall):
                    self._answer(jobs[0])
                else:
                    self._read([each for each in jobs if isinstance(each, PublishedBatch)])
                self._owner.rest()
            except Exception as error:
                self._fail(jobs or [], error)
                time.sleep(0.05)

    def _next_jobs(self) -> list[PublishedBatch | LineCall] | None:
        """What is done next: one call, or publications; nothing when it is time for more."""
        with self._changed:
            while True:
                if self._jobs and self.backlog < BACKLOG_EVENTS:
                    return self._take()
                if self._ends and not self._jobs:
                    return None
                if self._jobs:
                    self._changed.wait(1.0)
                    continue
                seconds = self._seconds_left()
                if seconds <= 0:
                    return []
                self._changed.wait(seconds)

    def _seconds_left(self) -> float:
        """How long there is nothing to do if nothing comes."""
        if self.failure:
            return PROBE_SECONDS - (time.monotonic() - self._failed_at)
        owner = self._owner
        seconds = [3600.0]
        if (due := owner.next_due()) is not None:
            left = due / 1e6 - time.time()
            # With a feed that is behind, timers wait, too.
            seconds.append(left if self.backlog < BACKLOG_EVENTS else max(left, 0.01))
        if (rest := owner.seconds_to_rest()) is not None:
            seconds.append(rest)
        return min(seconds)

    def _take(self) -> list[PublishedBatch | LineCall]:
        first = self._jobs.popleft()
        if isinstance(first, LineCall):
            return [first]
        taken: list[PublishedBatch | LineCall] = [first]
        count, size = len(first.events), first.size
        while self._jobs and count < self._transaction_events and size < GROUP_BYTES:
            following = self._jobs[0]
            if isinstance(following, LineCall):
                break
            self._jobs.popleft()
            taken.append(following)
            count += len(following.events)
            size += following.size
        self.waiting_events -= count
        self.waiting_bytes -= size
        return taken

    def _answer(self, call: LineCall) -> None:
        try:
            result = call.function()
        except Exception as error:
            _tell(call.future, error=error)
        else:
            _tell(call.future, result)

    # --- reading events -------------------------------------------------------------------------

    def _read(self, publications: Sequence[PublishedBatch]) -> None:
        owner = self._owner
        live: list[Live] = []
        events = 0
        # What asks the history sees each event there from the next one on; the journal is written
        # first, so that the history never holds what was not acknowledged.
        with owner.kept_together() if owner.asks else nullcontext():
            for publication in publications:
                events += self._read_publication(publication, live)
                publication.last = owner.seq
            self._write([each.entry for each in live])
        self._acknowledge(publications, live, events)

    def _read_publication(self, publication: PublishedBatch, live: list[Live]) -> int:
        """Let every library read the events that are new; how many are."""
        owner = self._owner
        are_new = owner.are_new([event for event, _ in publication.events], publication.stamped)
        libraries = list(owner.hosted.values())
        publication.duplicates = len(are_new) - sum(are_new)
        if any(EXPIRY in event.extensions for event, _ in publication.events):
            now = time.time_ns() // 1000
            of_use = [not has_expired(event, now) for event, _ in publication.events]
            publication.expired = sum(are_new) - sum(map(and_, are_new, of_use))
            are_new = list(map(and_, are_new, of_use))
        count = sum(are_new)
        is_plain = count == len(are_new) and not owner.asks and not owner.is_crowded
        if is_plain and all(each.has_room_for(count, owner.most_keys) for each in libraries):
            self._read_plainly(publication, libraries, live)
            return count
        for number, is_new in enumerate(are_new):
            if is_new:
                self._read_event(publication, number, libraries, live)
        return count

    def _read_plainly(
        self, publication: PublishedBatch, libraries: list[Hosted], live: list[Live]
    ) -> None:
        """As `_read_event` of each, where rules have room for all of them and no timer repeats."""
        owner = self._owner
        seq = owner.seq
        for number, (event, body) in enumerate(publication.events):
            seq += 1
            live.append(Live(_entry(publication, number, seq, body), event))
            for hosted in libraries:
                try:
                    outputs = hosted.run.push(event)
                except EventError as error:
                    hosted.refuse(event, error.problems)
                    publication.unread.append((number, hosted.name, error.problems))
                    continue
                if outputs or hosted.run.late:
                    owner.seq = seq
                    self._put_out(hosted, outputs, live)
                    seq = owner.seq
        owner.seq = seq

    def _read_event(
        self, publication: PublishedBatch, number: int, libraries: list[Hosted], live: list[Live]
    ) -> None:
        owner = self._owner
        event, body = publication.events[number]
        reading = libraries
        for hosted in libraries:
            if not hosted.lets_in(event, owner.most_keys, owner.is_crowded):
                reading = [each for each in reading if each is not hosted]
                owner.seq += 1
                live.append(Live(JournalEntry(owner.seq, UNREAD, b"", hosted.name), None))
                problems = hosted.refusals[-1].problems
                publication.unread.append((number, hosted.name, problems))
        for hosted in reading:
            if hosted.is_behind(event):
                self._pass_gap(hosted, event, live)
        owner.seq = seq = owner.seq + 1
        matched = owner.matched(event) if owner.asks else ()
        live.append(Live(_entry(publication, number, seq, body), event, matched))
        for hosted in reading:
            self._let_read(hosted, publication, number, event, live)
        if owner.asks:
            owner.keep(event)

    def _let_read(
        self,
        hosted: Hosted,
        publication: PublishedBatch,
        number: int,
        event: Event,
        live: list[Live],
    ) -> None:
        refused = hosted.counted.refused
        outputs = hosted.push(event)
        if outputs or hosted.run.late:
            self._put_out(hosted, outputs, live)
        if hosted.counted.refused != refused:
            problems = hosted.refusals[-1].problems
            publication.unread.append((number, hosted.name, problems))

    def _pass_gap(self, hosted: Hosted, event: Event, live: list[Live]) -> None:
        """Move the clock of a library towards an event, over very many timers, in transactions.

        Each step is an entry of the journal, for this library alone: others may refuse the event.
        """
        owner = self._owner
        for due, outputs in hosted.steps_to(event):
            owner.seq += 1
            live.append(Live(JournalEntry(owner.seq, TIME, str(due).encode(), hosted.name), None))
            self._put_out(hosted, outputs, live)
            if len(live) >= self._transaction_events:
                self._write([each.entry for each in live])
                self._acknowledge((), live.copy(), 0, is_whole=False)
                live.clear()
                self._wait_for_feed()
                # The event is not acknowledged; sent again, it is read from here on.
                self._refuse_after_end()

    def _wait_for_feed(self) -> None:
        with self._changed:
            while self.backlog >= BACKLOG_EVENTS and not self._ends:
                self._changed.wait(1.0)

    def _put_out(self, hosted: Hosted, outputs: list[Event], live: list[Live]) -> None:
        owner = self._owner
        for output in outputs:
            owner.seq += 1
            extensions = output.extensions
            entry = JournalEntry(
                owner.seq,
                OUTPUT,
                encode(output),
                hosted.name,
                extensions["correlation"],
                extensions.get("partitionkey"),
                output.id,
            )
            hosted.count(output, owner.seq)
            live.append(Live(entry, output))
        for late in hosted.take_late():
            owner.seq += 1
            live.append(
                Live(
                    JournalEntry(owner.seq, LATE, encode(late), hosted.name, None, None, late.id),
                    late,
                )
            )

    def _tick(self) -> None:
        """Move the clock of every library from one timer that is due to the next.

        Timers that are long due, since events of the past have begun them, are many: so many share
        a transaction, and events that come have their turn in between.
        """
        owner = self._owner
        live: list[Live] = []
        while len(live) < GROUP_TICKS and self.backlog < BACKLOG_EVENTS:
            due = owner.next_due()
            if due is None or due > time.time() * 1e6:
                break
            owner.seq += 1
            live.append(Live(JournalEntry(owner.seq, TIME, str(due).encode()), None))
            for hosted in owner.hosted.values():
                self._put_out(hosted, hosted.run.advance(due), live)
        if live:
            self._write([each.entry for each in live])
            self._acknowledge((), live, 0)

    def _is_writable(self) -> bool:
        """Whether the journal can be written to again, which else only an event would show."""
        if self.failure is None:
            return True
        try:
            with self._owner.journal.write():
                self._owner.journal.set_mark("indexed", self._owner.indexer.indexed)
        except HistoryError as error:
            self._note_failure(str(error))
            return False
        self._note_failure(None)
        return True

    def _write(self, entries: list[JournalEntry]) -> None:
        owner = self._owner
        if not entries:
            return
        with owner.journal.write():
            owner.journal.append(entries)
            owner.journal.set_mark("indexed", owner.indexer.indexed)
            for hosted in owner.hosted.values():
                if hosted.asks:
                    # What a history has answered cannot be asked again, so that the state is saved
                    # with every transaction, and such a library is never replayed.
                    self._save(hosted)
        self._note_failure(None)

    def _save(self, hosted: Hosted) -> None:
        state, counts = hosted.state()
        self._owner.registry.save_state(
            Saved(hosted.name, hosted.version, self._owner.seq, state, counts)
        )
        hosted.saved_seq = self._owner.seq

    def _acknowledge(
        self,
        publications: Sequence[PublishedBatch],
        live: list[Live],
        events: int,
        *,
        is_whole: bool = True,
    ) -> None:
        owner = self._owner
        now = time.perf_counter()
        # Most entries are events: the others are few.
        kinds = [each.entry.kind for each in live if each.entry.kind != EVENT]
        outputs = kinds.count(OUTPUT)
        owner.figures.late += kinds.count(LATE)
        owner.figures.duplicates += sum(each.duplicates for each in publications)
        owner.figures.expired += sum(each.expired for each in publications)
        owner.figures.committed(events, outputs, [now - each.since for each in publications])
        weight = weight_of(live)
        with self._changed:
            self.backlog += weight
        owner.written(live, weight, is_whole=is_whole)
        for publication in publications:
            _tell(publication.future, publication)

    def _fail(self, jobs: Sequence[PublishedBatch | LineCall], error: Exception) -> None:
        """Tell waiting callers; then put the runs back, since they may be ahead of the journal."""
        if not isinstance(error, EnsueError):
            log.exception("the line failed on a transaction, and goes on without it")
        self._note_failure(str(error))
        for job in jobs:
            _tell(job.future, error=error)
        while not self._ends:
            try:
                self._owner.recover()
                return
            except Exception as again:
                self._note_failure(str(again))
                time.sleep(1.0)

    def _note_failure(self, reason: str | None) -> None:
        self.failure = reason
        self._failed_at = time.monotonic()
        self._owner.troubles.note("the journal", reason)


def _entry(publication: PublishedBatch, number: int, seq: int, body: bytes) -> JournalEntry:
    if publication.stamped and number in publication.stamped:
        return JournalEntry(seq, EVENT, body, is_stamped=True)
    return JournalEntry(seq, EVENT, body)


def _tell(future: Future[Any], result: Any = None, error: Exception | None = None) -> None:
    """Tell the waiting caller; one that has left meanwhile has cancelled the future."""
    with suppress(InvalidStateError):
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

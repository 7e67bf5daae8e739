"""The station: journal, history, libraries, line and feed of one server, put together.

It is what the API talks to. `publish` takes events and answers when they are acknowledged; the
methods on libraries check a text, run it and write it down in one step; `subscribe` makes a
subscriber. Everything that touches runs is done by the line, so that it sees them at rest.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

from ensue.engine.changing import checked_source
from ensue.errors import HistoryError
from ensue.events.event import Event
from ensue.history import History
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.expanding.rewriting import bundled
from ensue.lang.parsing.files import gathered_source
from ensue.lang.parsing.importing import Gathering, NotImportedError, SourceFile
from ensue.library import Library, parse
from ensue.server.settings import Settings
from ensue.server.station.entries import EVENT, Live
from ensue.server.station.feed import Feed, Subscriber, SubscriberWish
from ensue.server.station.figures import Sample, StationFigures
from ensue.server.station.holding import locked, ontology_of
from ensue.server.station.indexing import Indexer, WrittenEntries
from ensue.server.station.line import BusyError, Line, PublishedBatch
from ensue.server.station.record.decoding import named
from ensue.server.station.record.journal import ServerJournal
from ensue.server.station.record.known import KnownIdentities
from ensue.server.station.record.recovery import OnProgress, recovered
from ensue.server.station.record.registry import Registry
from ensue.server.station.record.saving import StateSaver
from ensue.server.station.rules.counting import CountsSinceStart, rule_counts
from ensue.server.station.rules.fullness import held_in_all
from ensue.server.station.rules.hosted import Hosted
from ensue.server.station.troubles import Troubles
from ensue.subscriptions import Index

COUNT_SECONDS: Final = 0.25
"""How often it is looked how many keys all rules hold."""
REMEMBERED: Final = 200_000
"""Events that are known by source and id, so that one that is sent again is not read again."""
TAKE_OVER_SECONDS: Final = 120.0

log = logging.getLogger("ensue.server")

T = TypeVar("T")


def _untold(done: int, total: int) -> None:
    pass


class Station:
    """Of an event loop; `open` before use, `close` at the end."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = settings
        self.limits = settings.limits
        self._temporary = None if settings.server.data else TemporaryDirectory(prefix="ensue-")
        place = settings.server.data or (self._temporary.name if self._temporary else "")
        self.folder = settings.folder / place
        self.folder.mkdir(parents=True, exist_ok=True)
        os.chmod(self.folder, 0o700)
        self._lock = locked(self.folder)
        self.ontology = ontology_of(settings)
        self.history = self._opened_history()
        self.journal = ServerJournal(self.folder / "journal.db")
        self.registry = Registry(self.journal)
        self.troubles = Troubles(settings.channel)
        self.saver = StateSaver(
            self.journal, self.registry, self.limits.save_seconds, self.troubles
        )
        self.figures = StationFigures()
        self.seq = self.committed = self.journal.last
        self.hosted: dict[str, Hosted] = {}
        indexed = 0 if self._history_url.startswith("memory:") else self.journal.mark("indexed")
        self.indexer = Indexer(self.journal, self.history, indexed or 0, self.troubles)
        self.line = Line(
            self,
            self.limits.waiting_events,
            self.limits.waiting_bytes,
            self.limits.transaction_events,
        )
        self.feed = Feed(
            self.journal,
            self.history,
            self.limits.subscriber_waiting,
            self.limits.keys,
            self.line.delivered,
            self.figures,
        )
        self._loop = loop
        self._tasks: list[asyncio.Task[None]] = []
        self._known = KnownIdentities(REMEMBERED)
        self.are_new = self._known.are_new
        self._temporal = Index(history=self.history, ontology=self.ontology)
        self._fills_history = False
        self._trimmed_at = 0.0
        self.most_keys = self.limits.keys
        self.is_crowded = False
        self._counted_at = 0.0
        self.replayed = 0
        self.recovery_seconds = 0.0
        self.since_start = CountsSinceStart()

    # --- beginning and end ----------------------------------------------------------------------

    @property
    def _history_url(self) -> str:
        return self.settings.history.url or f"sqlite:{self.folder / 'history.db'}"

    def _opened_history(self) -> History:
        given = self.settings.history
        return History.open(
            self._history_url,
            max_age=given.max_age,
            max_count=given.max_count,
            ontology=self.ontology,
        )

    async def open(self, told: OnProgress = _untold) -> None:
        """Put the runs to where the journal stands, and begin to work.

        `told` hears of how many entries of the journal were read again, and how many will be.
        """
        await asyncio.to_thread(self._begin, told)
        self.indexer.wake(self.seq)
        self.indexer.start()
        self.line.start()
        self._tasks = [
            asyncio.create_task(self.feed.run(), name="feed"),
            asyncio.create_task(self._sample(), name="figures"),
        ]

    async def close(self) -> None:
        """Read what was taken, save all states, and close the files."""
        for each in list(self.feed.subscribers.values()):
            each.close()
        await asyncio.to_thread(self.line.stop)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._close_files)

    def _close_files(self) -> None:
        self.save_states()
        try:
            self.indexer.catch_up(self.seq, 20.0)
        finally:
            self.indexer.stop()
            with self.journal.write():
                self.journal.set_mark("indexed", self.indexer.indexed)
            self.history.close()
            self.journal.close()
            os.close(self._lock)
            if self._temporary is not None:
                self._temporary.cleanup()

    def _begin(self, told: OnProgress) -> None:
        begun = time.monotonic()

        def noted(done: int, total: int) -> None:
            self.replayed = total
            told(done, total)

        self.recover(noted)
        self.since_start.begin(self.hosted)
        self.recovery_seconds = round(time.monotonic() - begun, 3)
        about = {
            "channel": self.settings.channel,
            "entries": self.replayed,
            "seconds": self.recovery_seconds,
        }
        log.info("the journal was read again from the saved states on", extra=about)
        # What was read again is not read again by the next start, also if it comes soon.
        try:
            self.save_states()
        except HistoryError as error:
            self.troubles.note("saving states", str(error))

    def recover(self, told: OnProgress = _untold) -> None:
        """Put the runs back to where the journal stands."""
        self.seq = self.committed = self.journal.last
        if self._fills_history:
            self.indexer.hand_back(self.indexer.indexed)
            self._fills_history = False
        self.hosted = recovered(self.journal, self.registry, self.read_library, self.history, told)
        self._remember_latest()
        self._count_keys()
        self.settle()

    def _remember_latest(self) -> None:
        self._known.clear()
        after = self.journal.first_of_latest_events(REMEMBERED, self.seq) - 1
        while rows := self.journal.inputs(after):
            after = rows[-1].seq
            events = [row for row in rows if row.kind == EVENT]
            stamped = {place for place, row in enumerate(events) if row.is_stamped}
            self.are_new(named([row.body for row in events]), stamped)

    # --- publishing -----------------------------------------------------------------------------

    async def publish(
        self, events: Sequence[tuple[Event, bytes]], size: int, stamped: Collection[int] = ()
    ) -> PublishedBatch:
        """Take events; on return they are in the journal, and every rule has read them.

        `stamped` has the places of those that came without a time, and have that of their arrival.
        """
        if self.indexer.lag > self.limits.history_lag:
            raise BusyError(
                f"the history is {self.indexer.lag:,} entries behind, and limit `history_lag`"
                f" allows {self.limits.history_lag:,}",
                seconds=5,
            )
        publication = PublishedBatch(events, size, stamped)
        self.line.publish(publication)
        return await asyncio.wrap_future(publication.future)

    async def call(self, function: Callable[[], T]) -> T:
        """Have a function called by the line."""
        result: T = await asyncio.wrap_future(self.line.call(function))
        return result

    async def caught_up(self) -> None:
        """Wait until the history holds what was acknowledged before. Raises `HistoryError`."""
        seconds = self.limits.query_seconds
        await asyncio.to_thread(self.indexer.catch_up, self.committed, seconds)

    # --- subscribing ----------------------------------------------------------------------------

    async def subscribe(self, wanted: SubscriberWish, after: int | None) -> Subscriber:
        """A subscriber; close it at the end."""
        if len(self.feed.subscribers) >= self.limits.subscribers:
            raise BusyError(
                f"there are {self.limits.subscribers:,} subscribers, and limit `subscribers` allows"
                " no more",
                seconds=10,
            )
        subscriber = self.feed.add(wanted, after)
        filter_ = wanted.filter
        if wanted.temporal and filter_ is not None:

            def register() -> int:
                self._temporal.add(subscriber.number, filter_)
                self.settle()
                return self.seq

            try:
                subscriber.live_from = await self.call(register)
            except BaseException:
                subscriber.close()
                raise
        return subscriber

    async def unsubscribe(self, subscriber: Subscriber) -> None:
        subscriber.close()
        if subscriber.wanted.temporal:

            def forget() -> None:
                if subscriber.number in self._temporal:
                    self._temporal.remove(subscriber.number)
                self.settle()

            # At the end of the server there is nothing left to forget.
            with suppress(BusyError):
                await self.call(forget)

    # --- libraries ------------------------------------------------------------------------------

    def alone(self, text: str, name: str, known: Mapping[str, str]) -> str:
        """A text with the libraries that it imports by their names in place of the imports.

        `known` has the texts that are in force. Raises `LibraryError` for imports of others, and
        for mistakes, each with the name of its library.
        """

        def find(_: SourceFile, path: str) -> SourceFile:
            found = path.removesuffix(".cor")
            if found not in known or found == name:
                names = [each for each in known if each != name]
                raise NotImportedError(
                    f"there is no library `{path}` on this server to import",
                    did_you_mean(found, names) if names else "put it first",
                )
            return SourceFile(found, found, known[found])

        gathering = Gathering(find)
        gathering.add([SourceFile(name, name, text)])
        source, problems = gathered_source(gathering)
        if len(source.files) == 1 and not problems:
            return text
        checked_source(source, self.ontology, problems=problems)
        return bundled(source.files)

    def read_library(self, text: str, name: str) -> Library:
        """The library of a text. Raises `LibraryError` with every mistake."""
        return parse(text, name, ontology=self.ontology)

    async def audited(self, author: str, action: str, subject: str, detail: str = "") -> None:
        """Write an action of an author to the audit log."""

        def write() -> None:
            with self.journal.write():
                at = time.time_ns() // 1000
                self.registry.audit(at, author, action, subject, detail)

        await self.call(write)

    # --- what the line asks ---------------------------------------------------------------------

    @property
    def asks(self) -> bool:
        return self._fills_history

    def settle(self) -> None:
        """Whether the line has to fill the history itself, since it is asked of every event."""
        asks = bool(len(self._temporal)) or any(each.asks for each in self.hosted.values())
        if asks and not self._fills_history:
            self.indexer.wake(self.seq)
            if not self.indexer.is_running:
                self.indexer.fill(self.seq)
            self.indexer.take_over(self.seq, TAKE_OVER_SECONDS)
        elif self._fills_history and not asks:
            self.indexer.hand_back(self.seq)
        self._fills_history = asks

    def matched(self, event: Event) -> tuple[int, ...]:
        return tuple(self._temporal.match(event)) if len(self._temporal) else ()

    def next_due(self) -> int | None:
        if self.settings.server.clock != "wall":
            return None
        due = [each.run.next_due() for each in self.hosted.values()]
        return min((each for each in due if each is not None), default=None)

    def kept_together(self) -> AbstractContextManager[None]:
        # Files are written whole: an event is a file there, and nothing is gained by a bracket.
        is_file = self._history_url.startswith("parquet:")
        return nullcontext() if is_file else self.history.together()

    def keep(self, event: Event) -> None:
        self.indexer.keep([event])

    def written(self, live: list[Live], weight: int, *, is_whole: bool) -> None:
        self.committed = self.seq
        if self._fills_history:
            if is_whole:
                self.indexer.filled(self.seq)
        elif live:
            arrived = [each for each in live if each.entry.kind == EVENT]
            kept = [each.event for each in arrived if each.event is not None]
            size = sum([len(each.entry.body) for each in arrived])
            self.indexer.wake(self.seq, WrittenEntries(live[0].entry.seq, self.seq, kept, size))
        if live:
            self._loop.call_soon_threadsafe(self.feed.extend, live, weight)

    def seconds_to_rest(self) -> float | None:
        """How long until `rest` has something to do, though nothing comes."""
        return self.saver.seconds_left(self.hosted.values(), self.seq)

    def rest(self) -> None:
        """Save states and trim the journal, if it is time for it."""
        now = time.monotonic()
        if now - self._counted_at > COUNT_SECONDS:
            self._count_keys()
        self.saver.save_next(self.hosted.values(), self.seq)
        if now - self._trimmed_at > 1.0:
            try:
                self._trim()
            except HistoryError as error:
                self.troubles.note("trimming the journal", str(error))
            else:
                self.troubles.note("trimming the journal", None)

    def _count_keys(self) -> None:
        self._counted_at = time.monotonic()
        held = held_in_all(each.run for each in self.hosted.values())
        self.is_crowded = held >= self.limits.keys_in_all

    def save_states(self) -> None:
        """Write the states of all runs, so that a recovery begins here."""
        behind = [each for each in self.hosted.values() if self.seq > each.saved_seq]
        if behind:
            self.saver.save(behind, self.seq)

    def _trim(self) -> None:
        """Give up the oldest entries of the journal, but what a recovery or the history needs."""
        self._trimmed_at = time.monotonic()
        needed = [each.saved_seq for each in self.hosted.values()]
        floor = min(self.seq - self.limits.journal_events, self.indexer.indexed, *needed)
        if floor <= self.feed.floor:
            return
        with self.journal.write():
            gone = self.journal.trim(floor)
        if gone:
            self.feed.floor = max(self.feed.floor, self.journal.first - 1)

    # --- figures --------------------------------------------------------------------------------

    @property
    def unsaved(self) -> int:
        """Entries that a start after a kill would read again."""
        return max((self.seq - each.saved_seq for each in list(self.hosted.values())), default=0)

    def rule_counts(self) -> dict[tuple[str, str], int]:
        return rule_counts(self.hosted)

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self.sample()

    def sample(self) -> Sample:
        return self.figures.sample(
            self.line.waiting_events,
            len(self.feed.subscribers),
            self.indexer.lag,
            self.rule_counts(),
        )

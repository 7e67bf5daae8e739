"""A history as a user holds it: what was published, and filters asked over it.

In come events; each is kept as a `Publication` when `add` returns, joined with its other half if it
has one. Filters, as text or as trees, are asked of an event before it is stored (`matches`) or of
all that is stored (`find`). Where publications lie is the `Store`'s, what filters mean `asking`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from heapq import heappop, heappush, merge
from itertools import islice
from types import TracebackType
from typing import Final, Self

from ensue.engine.inputs import EventLike, Instant, as_event, time_microseconds
from ensue.errors import EventError, UsageError
from ensue.events.event import Event
from ensue.history.asking.asker import Asker
from ensue.history.asking.bounding import bound
from ensue.history.asking.newest import Looked, Place, Sought, SoughtText, newest
from ensue.history.bodies import kept_instants, kept_publication
from ensue.history.keeping import Retention, keep
from ensue.history.publication import Publication, joined, publication_of
from ensue.history.replaying import replay_filter, replay_library
from ensue.history.store import FOREVER, LONG_AGO, Store, Stored, Window
from ensue.history.stores.blocks import REACH
from ensue.history.stores.opening import open_store
from ensue.lang.building.values import Value
from ensue.lang.durations import parse_duration
from ensue.lang.expressions.asking import Ontology
from ensue.lang.expressions.tree import Expression, TemporalTerm
from ensue.library import Library
from ensue.subscriptions import Filter

BATCH: Final = REACH
"""Events of one transaction, at most: so many may share a block of postings under a key."""
PAGE: Final = 1_000


FilterLike = str | Filter | Value | Expression
"""A filter as text, as `Filter.parse` gives it, from the builder, or as a tree."""

OnRefused = Callable[[EventLike, EventError], None]


class History:
    """Publications in a store. Made by `History.open`; close it, or use it with `with`."""

    def __init__(
        self,
        store: Store,
        max_age: str | timedelta | None = None,
        max_count: int | None = None,
        ontology: Ontology | None = None,
    ) -> None:
        self._store = store
        self.ontology = ontology
        self._asker = Asker(store, ontology)
        age = None if max_age is None else _microseconds(max_age)
        self._retention = Retention(age, max_count)
        if max_count is not None and max_count < 1:
            raise UsageError(f"`max_count` is {max_count}, and at least 1 is needed")

    @classmethod
    def open(
        cls,
        url: str,
        *,
        max_age: str | timedelta | None = None,
        max_count: int | None = None,
        ontology: Ontology | None = None,
    ) -> Self:
        """Open the history at an address, or make it.

        `memory:`, `sqlite:FILE`, `postgresql://...`, `mysql://...` or `parquet:FOLDER`. With
        `max_age`, what has ended so long before the latest publication is given up at the next
        write; with `max_count`, the first to arrive are given up once there are more.
        """
        return cls(open_store(url), max_age, max_count, ontology)

    def over(self, store: Store) -> Self:
        """A history over another store, with the ontology of this one; it gives nothing up."""
        return type(self)(store, ontology=self.ontology)

    # --- keeping --------------------------------------------------------------------------------

    def add(self, event: EventLike) -> None:
        """Keep an event: when this returns, it is kept. Raises `EventError`."""
        self._keep([kept_publication(as_event(event))], None)

    def add_all(self, events: Iterable[EventLike], on_refused: OnRefused | None = None) -> int:
        """Keep many events, some thousand at once, and return how many are kept.

        Raises `EventError` at the first that cannot be kept; those before it are. With
        `on_refused`, such an event is handed to that, with its problems, and the others are kept.
        """
        kept = 0
        waiting = iter(events)
        while given := list(islice(waiting, BATCH)):
            batch: list[Publication] = []
            for event in given:
                try:
                    publication = kept_publication(as_event(event))
                except EventError as error:
                    if on_refused is None:
                        self._keep(batch, None)
                        raise
                    on_refused(event, error)
                    continue
                batch.append(publication)
            kept += self._keep(batch, on_refused)
        return kept

    def add_read(self, events: Sequence[Event], on_refused: OnRefused) -> int:
        """As `add_all`, of events that were read from JSON and so need no look at their values.

        Events that are all new and have no intervals go to the store in columns.
        """
        kept = 0
        # In equal parts: a transaction costs the disk as much for one event as for many.
        size = -(-len(events) // max(1, -(-len(events) // BATCH)))
        for begin in range(0, len(events), size or 1):
            batch = events[begin : begin + size]
            if self._keep_instants(batch):
                kept += len(batch)
            else:
                kept += self.add_all(batch, on_refused)
        return kept

    def _keep_instants(self, events: Sequence[Event]) -> bool:
        """Keep events in columns; False, and nothing is kept, if they do not all fit that."""
        instants = kept_instants(events)
        if instants is None or len(set(instants.keys)) < len(events):
            return False
        with self._store.writing():
            if self._store.by_keys(instants.keys) or not self._store.insert_instants(instants):
                return False
            self._retention.apply(self._store)
        return True

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is added inside is kept in one transaction, and asked about from the next event on.

        Only for stores whose writing may be nested: in memory, and in databases.
        """
        try:
            with self._store.writing():
                yield
        except BaseException:
            # It has seen what is not kept after all.
            self._asker = Asker(self._store, self.ontology)
            raise

    def check(self, event: EventLike) -> None:
        """Raises `EventError` if an event cannot be kept, and keeps nothing."""
        publication = kept_publication(as_event(event))
        with self._store.reading():
            self._joined(publication)

    def _keep(self, batch: Sequence[Publication], on_refused: OnRefused | None) -> int:
        if not batch:
            return 0
        with self._store.writing():
            refused = keep(self._store, batch, goes_on=on_refused is not None)
            self._retention.apply(self._store)
        for publication, error in refused:
            if on_refused is None:
                raise error
            on_refused(publication.event, error)
        return len(batch) - len(refused)

    # --- asking ---------------------------------------------------------------------------------

    def matches(self, filter: FilterLike, event: EventLike) -> bool:  # noqa: A002
        """Whether an event certainly matches a filter, by what is stored now without it."""
        return self._ask(filter, event, possibly=False)

    def possibly(self, filter: FilterLike, event: EventLike) -> bool:  # noqa: A002
        """As `matches`, where times are uncertain: whether it matches for some of them."""
        return self._ask(filter, event, possibly=True)

    def _ask(self, filter_: FilterLike, event: EventLike, possibly: bool) -> bool:
        expression = expression_of(filter_)
        publication = publication_of(as_event(event))
        with self._store.reading():
            return self._asker.matches(expression, self._joined(publication), possibly)

    def holds(self, term: TemporalTerm, publication: Event) -> bool | None:
        """Whether one temporal term holds for an event; None if it lacks what the term names."""
        with self._store.reading():
            return self._asker.holds(term, self._joined(publication_of(publication)))

    def joined(self, event: EventLike) -> Event:
        """The publication that an event makes with what is stored: an end, with its start."""
        publication = publication_of(as_event(event))
        with self._store.reading():
            return self._joined(publication).event

    def _joined(self, publication: Publication) -> Publication:
        if publication.closing is None:
            return publication
        known = self._store.by_keys([publication.key])
        if publication.key not in known:
            return publication
        return joined(known[publication.key].publication, publication)

    def find(
        self,
        filter: FilterLike | None = None,  # noqa: A002
        since: Instant | None = None,
        until: Instant | None = None,
        limit: int | None = None,
    ) -> list[Event]:
        """What is stored and matches, by start and then by arrival, the first `limit` of it.

        `since` is the first start that counts, `until` the first that no longer does.
        """
        return list(islice(self.scan(filter, since, until), limit))

    def scan(
        self,
        filter: FilterLike | None = None,  # noqa: A002
        since: Instant | None = None,
        until: Instant | None = None,
    ) -> Iterator[Event]:
        """As `find`, one by one: for more than memory holds."""
        for row in self._rows(filter, since, until):
            yield row.event

    def latest(
        self,
        filter: FilterLike | None = None,  # noqa: A002
        since: Instant | None = None,
        until: Instant | None = None,
        text: str | None = None,
        after: Place | None = None,
    ) -> Iterator[Looked]:
        """What is stored, from the latest back to the earliest, with a mark on what is wanted.

        `text` stands somewhere in what is wanted, whatever its case; `after` is the place of the
        last one that was looked at.
        """
        begin, stop = _span(since, until)
        expression = None if filter is None else expression_of(filter)
        sought = None if text is None else SoughtText(text)
        return newest(self._store, self._asker, Sought(expression, begin, stop, sought, after))

    def replay(self, since: Instant | None = None, until: Instant | None = None) -> Iterator[Event]:
        """The events as they came, in the order of their times; the halves of an interval apart.

        `since` is the first time that counts, `until` the first that no longer does.
        """
        begin, stop = _span(since, until)
        ends: list[tuple[int, int, Event]] = []
        for row in self._rows(None, None, until):
            publication = row.publication
            for event in publication.arrived:
                if event is publication.closing and event.time > row.times.start:
                    heappush(ends, (event.time, row.seq, event))
                    continue
                while ends and ends[0][0] <= event.time:
                    yield from _within(heappop(ends)[2], begin, stop)
                yield from _within(event, begin, stop)
        while ends:
            yield from _within(heappop(ends)[2], begin, stop)

    def backtest(
        self,
        what: FilterLike | Library,
        since: Instant | None = None,
        until: Instant | None = None,
        engine: str = "auto",
    ) -> Iterator[Event]:
        """What a live run over a span of this history would have given, in the order of time.

        Of a filter, the events that match it, each with what had come before; of a library, its
        outputs. `engine` is for a library.
        """
        if isinstance(what, Library):
            return replay_library(self, what, since, until, engine)
        return replay_filter(self, expression_of(what), since, until)

    def _rows(
        self, filter_: FilterLike | None, since: Instant | None, until: Instant | None
    ) -> Iterator[Stored]:
        begin, stop = _span(since, until)
        window = Window("started", begin, stop - 1)
        expression = None if filter_ is None else expression_of(filter_)
        with self._store.reading():
            self._asker.refresh()
            uncertain = self._uncertain_rows(expression, window)
            clause = None if expression is None else self._asker.best(expression, window)
            if expression is not None and clause is not None:
                found = self._asker.matching(expression, clause, window)
                inside = [row for row in found if begin <= row.times.start < stop]
                rows: Iterator[Stored] = iter(sorted(inside, key=_by_start))
            else:
                rows = merge(uncertain, self._pages(expression, window), key=_by_start)
        yield from rows

    def _pages(self, expression: Expression | None, window: Window) -> Iterator[Stored]:
        after: Stored | None = None
        while True:
            with self._store.reading():
                self._asker.refresh()
                rows = self._store.page(window, after, PAGE)
                found = [row for row in rows if self._is_wanted(expression, row)]
            # What is yielded may be waited for; the store is free meanwhile.
            yield from found
            if len(rows) < PAGE:
                return
            after = rows[-1]

    def _uncertain_rows(self, expression: Expression | None, window: Window) -> list[Stored]:
        found: list[Stored] = []
        after: Stored | None = None
        if not self._store.state().uncertain:
            return found
        while rows := self._store.page(Window("uncertain"), after, PAGE):
            after = rows[-1]
            found += [
                row
                for row in rows
                if window.low <= row.times.start <= window.high and self._is_wanted(expression, row)
            ]
        return sorted(found, key=_by_start)

    def _is_wanted(self, expression: Expression | None, row: Stored) -> bool:
        bound()()
        return expression is None or self._asker.is_match(expression, row)

    # --- the rest -------------------------------------------------------------------------------

    def __len__(self) -> int:
        with self._store.reading():
            return self._store.state().count

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def expression_of(filter_: FilterLike) -> Expression:
    """The tree of a filter, from whatever stands for one. Raises `LibraryError`."""
    if isinstance(filter_, str):
        return _parsed(filter_)
    if isinstance(filter_, Value):
        return Filter(filter_).expression
    return filter_.expression if isinstance(filter_, Filter) else filter_


@lru_cache(maxsize=10_000)
def _parsed(text: str) -> Expression:
    return Filter.parse(text).expression


def _by_start(row: Stored) -> tuple[int, int]:
    return row.times.start, row.seq


def _within(event: Event, begin: int, stop: int) -> list[Event]:
    return [event] if begin <= event.time < stop else []


def _span(since: Instant | None, until: Instant | None) -> tuple[int, int]:
    begin = LONG_AGO if since is None else time_microseconds(since)
    return begin, FOREVER if until is None else time_microseconds(until)


def _microseconds(duration: str | timedelta) -> int:
    if isinstance(duration, timedelta):
        return duration // timedelta(microseconds=1)
    try:
        return parse_duration(duration).microseconds
    except ValueError as error:
        raise UsageError(f"`max_age`: {error}") from None

"""Publications in a database: one implementation for SQLite, PostgreSQL and MariaDB.

In come windows and clauses; out go pages of rows, found by the indexes of `schema`. Every statement
is built of SQLAlchemy Core, once for each shape, and filled with values when it runs. Reading sees
one snapshot of the database (a transaction that repeats its reads); writing locks the row of state
first, so that writers of several processes take turns. A write is on disk when it returns: SQLite
runs with a write-ahead log and `synchronous=FULL`, the servers with what they do by default.

The module is long because it is one protocol (`store`), all of whose reads and writes share a
transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count, islice, repeat
from threading import RLock
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Engine,
    Table,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, NoResultFound

from ensue.errors import HistoryError, UsageError
from ensue.events.event import Event
from ensue.history.narrowing import Clause
from ensue.history.postings import OVERFLOW, entries_of, keys_of
from ensue.history.publication import InstantColumns, Publication
from ensue.history.store import (
    FOREVER,
    LONG_AGO,
    OPEN_SPAN,
    UNCERTAIN_SPAN,
    State,
    Stored,
    Window,
)
from ensue.history.stores import blocks, schema, statements
from ensue.history.stores.grouping import rows_of_alike
from ensue.history.stores.identities import Identities, Sizes, halves_of
from ensue.history.stores.rows import (
    AT_ONCE,
    SPAN,
    WindowPlace,
    half_of,
    insert_rows,
    place_of,
    portions,
    row_of,
    stored,
)
from ensue.history.stores.schema import OPEN_BIT, OVERFLOW_BIT, UNCERTAIN_BIT
from ensue.history.stores.sqlite import HISTORY, claim

_PROBED: Final = 128
"""Publications of a window whose keys are looked at first."""
_FIRST_BLOCKS: Final = 64
_MOST_BLOCKS: Final = 2_000
"""Blocks that are read at once."""
_PLACES: Final = statements.PLACES


class SqlStore:
    """A store in the tables of `schema`."""

    def __init__(self, engine: Engine, sizes: Sizes | None = None) -> None:
        self._engine = engine
        self._lock = RLock()
        self._reader: Connection | None = None
        self._connection: Connection | None = None
        self._state: Mapping[str, int] = {}
        self._is_writing = False
        self._identities = Identities(sizes)
        self._prepare()

    # --- transactions ---------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._lock:
            if self._connection is not None:
                yield
                return
            with _in_words("asked"), self._reading_connection() as connection:
                self._connection = connection
                try:
                    self._state = self._read_state(locking=False)
                    yield
                finally:
                    self._connection = None
                    connection.rollback()

    @contextmanager
    def _reading_connection(self) -> Iterator[Connection]:
        """SQLite: one connection, kept open. A server: one of the pool, which checks it."""
        if self._engine.dialect.name != "sqlite":
            with self._engine.connect() as connection:
                yield connection
            return
        if self._reader is None:
            self._reader = self._engine.connect()
        yield self._reader

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A nested call joins the outer transaction and counts as a version of its own."""
        with self._lock:
            if self._is_writing:
                self._state = {**self._state, "version": self._state["version"] + 1}
                yield
                return
            self._is_writing = True
            try:
                with self._transaction():
                    yield
            except BaseException:
                self._identities.forget()
                raise
            finally:
                self._is_writing = False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _in_words("written to"), self._engine.connect() as connection:
            connection = connection.execution_options(ensue_writes=True)
            if self._engine.dialect.name != "sqlite":
                connection = connection.execution_options(isolation_level="READ COMMITTED")
            with connection.begin():
                outer, self._connection = self._connection, connection
                try:
                    state = self._read_state(locking=True)
                    self._state = {**state, "version": state["version"] + 1}
                    yield
                    connection.execute(update(schema.state), [dict(self._state)])
                finally:
                    self._connection = outer

    @property
    def _open(self) -> Connection:
        assert self._connection is not None, "inside of `reading` or `writing`"
        return self._connection

    def _read_state(self, locking: bool) -> Mapping[str, int]:
        statement = statements.STATE.with_for_update() if locking else statements.STATE
        return _whole(dict(self._open.execute(statement).one()._mapping))

    def _prepare(self) -> None:
        with self._engine.begin() as connection:
            if self._engine.dialect.name == "sqlite":
                place = str(self._engine.url.database)
                claim(connection.exec_driver_sql, HISTORY, place, shared=True)
            if inspect(connection).has_table(schema.state.name):
                _check_format(connection)
            schema.metadata.create_all(connection)
        with self._engine.begin() as connection:
            if connection.execute(statements.STATE).first() is None:
                zeros = dict.fromkeys((each.name for each in schema.state.c), 0)
                connection.execute(
                    insert(schema.state), [{**zeros, "id": 1, "format": schema.FORMAT}]
                )

    def state(self) -> State:
        now = self._state
        return State(
            now["version"],
            now["last"],
            now["count"],
            now["revised"],
            now["removed"],
            now["floor"],
            bool(now["others"] & UNCERTAIN_BIT),
        )

    # --- writing --------------------------------------------------------------------------------

    def by_keys(self, keys: Sequence[bytes]) -> Mapping[bytes, Stored]:
        state = self._state
        halves = halves_of(keys)
        numbers = self._identities.numbers(self._open, halves, state["last"], state["count"])
        found = {row.key: row for row in self.numbered(numbers).values()} if numbers else {}
        wanted = set(keys)
        return {key: row for key, row in found.items() if key in wanted}

    def note(self, event: Event) -> None:
        """Does nothing: a publication holds its event."""

    def insert(self, publications: Sequence[Publication]) -> None:
        if not publications:
            return
        first = self._state["last"] + 1
        values: list[Any] = []
        spans: set[int] = set()
        for seq, each in enumerate(publications, first):
            row = row_of(seq, each)
            values += row
            spans.add(row[SPAN])
        self._insert_rows(values, [each.key for each in publications], spans)
        self._post(entries_of((each.event for each in publications), first))

    def insert_instants(self, instants: InstantColumns) -> bool:
        first = self._state["last"] + 1
        times = instants.times
        rows = zip(
            count(first), instants.keys, times, times, times, times, repeat(0), instants.texts,
            strict=False,
        )  # fmt: skip
        self._insert_rows(list(chain.from_iterable(rows)), instants.keys, {0})
        posted = rows_of_alike(instants.events, first)
        if posted is None:
            self._post(entries_of(instants.events, first))
        else:
            self._insert_postings(posted)
        return True

    def _insert_rows(self, values: list[Any], keys: Sequence[bytes], spans: set[int]) -> None:
        """Rows of new publications, with spans among these, and where their identities are."""
        state = dict(self._state)
        for span in spans:
            _note_span(span, state)
        first = state["last"] + 1
        state["last"] += len(keys)
        state["count"] += len(keys)
        self._state = state
        self._insert(schema.publications, values)
        self._identities.insert(self._open, halves_of(keys), first)

    def _post(self, entries: Mapping[bytes, list[int]]) -> None:
        if OVERFLOW in entries:
            self._state = {**self._state, "others": self._state["others"] | OVERFLOW_BIT}
        self._insert_postings(blocks.rows_of(entries))

    def _insert_postings(self, rows: Iterable[blocks.Row]) -> None:
        self._insert(schema.postings, list(chain.from_iterable(rows)))

    def _insert(self, table: Table, values: list[Any]) -> None:
        insert_rows(self._open, table, values)

    def replace(self, changed: Sequence[tuple[Stored, Publication]]) -> None:
        if not changed:
            return
        state = dict(self._state)
        rows: list[dict[str, Any]] = []
        gone: defaultdict[bytes, list[int]] = defaultdict(list)
        come: defaultdict[bytes, list[int]] = defaultdict(list)
        for old, new in sorted(changed, key=lambda each: each[0].seq):
            row = row_of(old.seq, new)
            rows.append(dict(zip(statements.REVISED, row, strict=True)))
            _note_span(row[SPAN], state)
            before, after = set(old.keys), set(keys_of(new.event))
            for key in before - after:
                gone[key].append(old.seq)
            for key in after - before:
                come[key].append(old.seq)
        version = state["version"]
        self._state = {**state, "revised": version}
        self._open.execute(statements.REVISE, rows)
        self._unpost(gone)
        self._post(come)
        seqs = [{"old_seq": old.seq} for old, _ in changed]
        self._open.execute(statements.FORGET_REVISION, seqs)
        self._insert(schema.revisions, [each for old, _ in changed for each in (old.seq, version)])

    def remove(self, gone: Sequence[Stored], floor: int | None = None) -> None:
        if not gone:
            return
        entries: defaultdict[bytes, list[int]] = defaultdict(list)
        for row in sorted(gone, key=lambda each: each.seq):
            for key in row.keys:
                entries[key].append(row.seq)
        state = dict(self._state)
        state["count"] -= len(gone)
        if floor is None:
            self._unpost(entries)
            state["removed"] = state["version"]
        else:
            # A block that begins below the floor and ends above it goes when its end does.
            self._open.execute(
                statements.UNPOST_UP_TO,
                [{"old_entry": each, "old_seq": floor} for each in entries],
            )
            state["floor"] = floor
        self._state = state
        seqs = [{"old_seq": each.seq} for each in gone]
        halves = [{"old_half": half_of(each.key), "old_seq": each.seq} for each in gone]
        self._open.execute(statements.DELETE, seqs)
        for each in statements.FORGET_IDENTITY:
            self._open.execute(each, halves)
        self._open.execute(statements.FORGET_REVISION, seqs)

    def _unpost(self, entries: Mapping[bytes, list[int]]) -> None:
        """Take numbers, which ascend, out of the blocks of their keys."""
        gone: list[dict[str, Any]] = []
        left: list[Any] = []
        for key, numbers in entries.items():
            wanted = set(numbers)
            for low, high in blocks.stretches(numbers):
                values = {"old_entry": key, "low": low, "high": high}
                for last, earlier in self._open.execute(statements.POSTED_BETWEEN, values):
                    if wanted.isdisjoint(blocks.numbers_in(last, bytes(earlier))):
                        continue
                    gone.append({"old_entry": key, "old_seq": last})
                    if rest := blocks.without(last, bytes(earlier), wanted):
                        left += (key, *rest)
        if gone:
            self._open.execute(statements.UNPOST, gone)
            self._insert(schema.postings, left)

    # --- finding --------------------------------------------------------------------------------

    def page(
        self, window: Window, after: Stored | None, limit: int, clauses: Sequence[Clause] = ()
    ) -> Sequence[Stored]:
        place = None if after is None else place_of(after)
        probes = [probe for each in clauses if (probe := self._points(each))]
        if not probes:
            rows = self._window(window, place, limit, statements.COLUMNS)
            return [stored(row) for row in rows]
        found: list[Stored] = []
        size = _PROBED
        while len(found) < limit and (places := self._window(window, place, size, _PLACES)):
            met = self._meeting([seq for seq, _, _ in places], probes)
            wanted = met[: limit - len(found)]
            rows_by_number = self.numbered(wanted)
            found += [rows_by_number[each] for each in wanted]
            if len(places) < size:
                break
            place, size = WindowPlace(*places[-1]), min(4 * size, AT_ONCE * 8)
        return found

    def _window(
        self, window: Window, after: WindowPlace | None, limit: int, columns: tuple[Any, ...]
    ) -> Sequence[Any]:
        """Columns of the publications of a window behind a place, in the window's order."""
        values = {"low": window.low, "high": window.high, "limit": limit}
        if window.kind == "arrived":
            values["last_seq"] = FOREVER
        if after is not None:
            values |= {
                "last_seq": after.seq,
                "last_start": after.start,
                "last_finish": after.finish,
            }
        if window.kind == "overlapping":
            spans = [each for each in self._spans() if after is None or each <= after.span]
            if not spans:
                return []
            statement = statements.overlapping(tuple(spans), after is not None, columns)
        else:
            parts = self._parts()
            if parts == (False, False) and window.kind in ("started", "ended"):
                return []
            statement = statements.page(window.kind, after is not None, parts, columns)
        return self._open.execute(statement, values).fetchall()

    def _meeting(self, numbers: list[int], probes: Sequence[list[bytes]]) -> list[int]:
        """The numbers that meet all probes, in their order. One that asks too much is left out."""
        first, last = min(numbers), max(numbers)
        for probe in probes:
            met: set[int] = set()
            for key in probe:
                values = {
                    "low": key,
                    "first_seq": first,
                    "last_seq": last + blocks.REACH,
                    "limit": _MOST_BLOCKS,
                }
                rows = self._open.execute(statements.blocks(True), values).fetchall()
                if len(rows) == _MOST_BLOCKS:
                    break
                met |= blocks.numbers_of(rows)
            else:
                numbers = [each for each in numbers if each in met]
        return numbers

    def posted(self, clause: Clause, window: Window, before: int, limit: int) -> Sequence[Stored]:
        found: list[Stored] = []
        numbers = self._posted_numbers(self._ranges(clause), before)
        size = min(limit, AT_ONCE)
        while len(found) < limit and (some := list(islice(numbers, size))):
            rows = self.numbered(some)
            # What was given up may stand in a block with what was not.
            left = (rows[number] for number in some if number in rows)
            found += [row for row in left if window.admits(row.times) or not row.times.is_certain]
        return found

    def _posted_numbers(self, ranges: Clause, before: int) -> Iterator[int]:
        """Numbers under some ranges of keys, below a number, the highest first."""
        highest = min(before + blocks.REACH, FOREVER)
        unread = dict.fromkeys(ranges, highest)
        waiting: set[int] = set()
        limit = _FIRST_BLOCKS
        while unread or waiting:
            if unread:
                low, high = arm = max(unread, key=lambda each: unread[each])
                values = {
                    "low": low, "high": high, "limit": limit,
                    "first_seq": LONG_AGO, "last_seq": unread[arm],
                }  # fmt: skip
                rows = self._open.execute(statements.blocks(low == high), values).fetchall()
                waiting |= {each for each in blocks.numbers_of(rows) if each < before}
                if len(rows) < limit:
                    del unread[arm]
                else:
                    # A publication has one value of a name, and so one key of a range.
                    unread[arm] = rows[-1][0] - 1
                    limit = min(2 * limit, _MOST_BLOCKS)
            # Blocks that are not read yet hold nothing above their last number.
            level = max(unread.values(), default=LONG_AGO)
            ready = sorted((each for each in waiting if each > level), reverse=True)
            waiting.difference_update(ready)
            yield from ready

    def numbered(self, numbers: Sequence[int]) -> dict[int, Stored]:
        """Publications by their numbers; publications that are gone are left out."""
        found: dict[int, Stored] = {}
        for some in portions(numbers):
            statement = statements.numbered(self._engine.dialect, len(some))
            rows = self._open.exec_driver_sql(statement, some)
            found |= {each.seq: each for each in map(stored, rows)}
        return found

    def count_posted(self, clause: Clause, most: int) -> int:
        found = 0
        for low, high in self._ranges(clause):
            values = {"low": low, "high": high, "limit": most}
            rows, earlier = self._open.execute(statements.COUNT_POSTED, values).one()
            found += int(rows) + int(earlier) // 4
            if found >= most:
                return most
        return found

    def count_window(self, window: Window, most: int) -> int:
        if window.kind == "arrived":
            return min(self._state["count"], most)
        values = {"low": window.low, "high": window.high, "limit": most}
        if window.kind == "overlapping":
            return len(self._window(window, None, most, _PLACES))
        counted = statements.counted(window.kind, self._parts())
        return min(most, int(self._open.execute(counted, values).scalar_one()))

    def revisions(self, since: int) -> Sequence[Stored]:
        return [stored(row) for row in self._open.execute(statements.REVISIONS, {"since": since})]

    def oldest(self, count: int) -> Sequence[Stored]:
        return [stored(row) for row in self._open.execute(statements.OLDEST, {"limit": count})]

    def close(self) -> None:
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
            self._engine.dispose()

    def _spans(self) -> list[int]:
        """The spans of certain publications, the widest first."""
        lengths = self._state["lengths"]
        spans = [each for each in range(62, -1, -1) if lengths >> each & 1]
        return [OPEN_SPAN, *spans] if self._state["others"] & OPEN_BIT else spans

    def _parts(self) -> statements.SpanParts:
        lengths, others = self._state["lengths"], self._state["others"]
        return statements.SpanParts(
            bool(lengths & 1), bool(lengths & ~1 or others & (OPEN_BIT | UNCERTAIN_BIT))
        )

    def _ranges(self, clause: Clause) -> Clause:
        if self._state["others"] & OVERFLOW_BIT:
            return clause
        return tuple(each for each in clause if each.low != OVERFLOW)

    def _points(self, clause: Clause) -> list[bytes]:
        """The keys of a clause, if it is of single keys only."""
        ranges = self._ranges(clause)
        return [low for low, _ in ranges] if all(low == high for low, high in ranges) else []


def _check_format(connection: Connection) -> None:
    """Raises `UsageError` for a history of another format; one that is new has none yet."""
    found = connection.execute(select(schema.state.c.format)).first()
    if found is not None and _whole({"format": found.format})["format"] != schema.FORMAT:
        raise UsageError(
            f"the history is of format {found.format}, and this version of ensue reads format"
            f" {schema.FORMAT} only: use the version that has written it, or begin a new history"
            " and add the events to it again"
        )


def _whole(state: dict[str, Any]) -> dict[str, int]:
    """Raises `HistoryError` unless the state of a history is all numbers, as it was written."""
    for name, value in state.items():
        if type(value) is not int:
            raise HistoryError(
                f"the history is damaged: its `{name}` is {value!r:.40} and no integer; put a copy"
                " from before in its place"
            )
    return state


@contextmanager
def _in_words(what: str) -> Iterator[None]:
    """Raises `HistoryError` with one sentence for an error of the database."""
    try:
        yield
    except (DBAPIError, NoResultFound, UnicodeDecodeError) as error:
        said = error.orig if isinstance(error, DBAPIError) else error
        reason = (str(said).strip() or type(said).__name__).splitlines()[0]
        raise HistoryError(
            f"the history cannot be {what} now: {reason}; what was acknowledged before is kept, so"
            " try again once that is put right"
        ) from None


def _note_span(span: int, state: dict[str, int]) -> None:
    if span == UNCERTAIN_SPAN:
        state["others"] |= UNCERTAIN_BIT
    elif span == OPEN_SPAN:
        state["others"] |= OPEN_BIT
    else:
        state["lengths"] |= 1 << span

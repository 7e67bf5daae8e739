"""Publications in a database: one implementation for SQLite, PostgreSQL and MariaDB.

In come windows and clauses; out go pages of rows, found by the indexes of `schema`. Every statement
is built of SQLAlchemy Core, once for each shape, and filled with values when it runs. Reading sees
one snapshot of the database (a transaction that repeats its reads); writing locks the row of state
first, so that writers of several processes take turns. A write is on disk when it returns: SQLite
runs with a write-ahead log and `synchronous=FULL`, the servers with what they do by default.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Engine,
    Table,
    insert,
    update,
)
from sqlalchemy.exc import DBAPIError

from ensue.errors import HistoryError, UsageError
from ensue.events.event import Event
from ensue.history.bodies import body_of
from ensue.history.narrowing import Clause
from ensue.history.postings import OVERFLOW, keys_of
from ensue.history.publication import Publication, Times
from ensue.history.store import (
    FOREVER,
    OPEN_SPAN,
    UNCERTAIN_SPAN,
    State,
    Stored,
    Window,
    span_of,
)
from ensue.history.stores import schema, statements
from ensue.history.stores.schema import OPEN_BIT, OVERFLOW_BIT, UNCERTAIN_BIT

_AT_ONCE: Final = 500
"""Values in one list of a statement; every database takes as many."""
_ROWS: Final = 50
"""Rows of one INSERT."""
_SPAN: Final = list(schema.publications.c.keys()).index("span")


class SqlStore:
    """A store in the tables of `schema`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = RLock()
        self._reader: Connection | None = None
        self._connection: Connection | None = None
        self._state: Mapping[str, int] = {}
        self._is_writing = False
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
        """For a file always the same; for a server one of the pool, which sees whether it lives."""
        if self._engine.dialect.name != "sqlite":
            with self._engine.connect() as connection:
                yield connection
            return
        if self._reader is None:
            self._reader = self._engine.connect()
        yield self._reader

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Inside of another `writing` it is a part of that, and a version of its own."""
        with self._lock:
            if self._is_writing:
                self._state = {**self._state, "version": self._state["version"] + 1}
                yield
                return
            self._is_writing = True
            try:
                with self._transaction():
                    yield
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
                    begun = self._read_state(locking=True)
                    self._state = {**begun, "version": begun["version"] + 1}
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
        return dict(self._open.execute(statement).one()._mapping)

    def _prepare(self) -> None:
        with self._engine.begin() as connection:
            schema.metadata.create_all(connection)
        with self._engine.begin() as connection:
            found = connection.execute(statements.STATE).first()
            if found is None:
                zeros = dict.fromkeys((each.name for each in schema.state.c), 0)
                connection.execute(
                    insert(schema.state), [{**zeros, "id": 1, "format": schema.FORMAT}]
                )
            elif found.format < schema.FORMAT:
                connection.execute(update(schema.state), [{"format": schema.FORMAT}])
            elif found.format > schema.FORMAT:
                raise UsageError(
                    f"the history is of format {found.format}, and this version of ensue reads"
                    f" formats up to {schema.FORMAT}: use the version that has written it"
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
        found: dict[bytes, Stored] = {}
        for begin in range(0, len(keys), _AT_ONCE):
            some = tuple(keys[begin : begin + _AT_ONCE])
            statement = statements.by_keys(self._engine.dialect, len(some))
            rows = self._open.exec_driver_sql(statement, some)
            found |= {each.key: each for each in map(_stored, rows)}
        return found

    def note(self, event: Event) -> None:
        """Events are kept with what they make."""

    def insert(self, publications: Sequence[Publication]) -> None:
        if not publications:
            return
        state = dict(self._state)
        values: list[Any] = []
        entries = _Entries()
        for seq, each in enumerate(publications, state["last"] + 1):
            row = _row(seq, each)
            values += row
            _note_span(row[_SPAN], state)
            entries.add(keys_of(each.event), seq)
        state["last"] += len(publications)
        state["count"] += len(publications)
        self._state = state
        self._insert(schema.publications, values)
        self._post(entries)

    def _post(self, entries: _Entries) -> None:
        if OVERFLOW in entries.by_key:
            self._state = {**self._state, "others": self._state["others"] | OVERFLOW_BIT}
        self._insert(schema.postings, entries.values())

    def _insert(self, table: Table, values: list[Any]) -> None:
        """Rows one after the other, in the order of the table's columns, as a driver takes them."""
        begin = 0
        for rows in (_ROWS, 1):
            width = rows * len(table.c)
            stop = len(values) - (len(values) - begin) % width
            if stop > begin:
                self._open.exec_driver_sql(
                    statements.insertion(table, self._engine.dialect, rows),
                    [tuple(values[at : at + width]) for at in range(begin, stop, width)],
                )
            begin = stop

    def replace(self, changed: Sequence[tuple[Stored, Publication]]) -> None:
        if not changed:
            return
        state = dict(self._state)
        self._unpost([old for old, _ in changed])
        rows: list[dict[str, Any]] = []
        entries = _Entries()
        for old, new in changed:
            row = _row(old.seq, new)
            rows.append(dict(zip(statements.REVISED, row, strict=True)))
            _note_span(row[_SPAN], state)
            entries.add(keys_of(new.event), old.seq)
        seqs = [{"old_seq": old.seq} for old, _ in changed]
        version = state["version"]
        self._state = {**state, "revised": version}
        self._open.execute(statements.REVISE, rows)
        self._post(entries)
        self._open.execute(statements.FORGET_REVISION, seqs)
        self._insert(schema.revisions, [each for old, _ in changed for each in (old.seq, version)])

    def remove(self, gone: Sequence[Stored], floor: int | None = None) -> None:
        if not gone:
            return
        self._unpost(gone)
        seqs = [{"old_seq": each.seq} for each in gone]
        self._open.execute(statements.DELETE, seqs)
        self._open.execute(statements.FORGET_REVISION, seqs)
        state = dict(self._state)
        state["count"] -= len(gone)
        if floor is None:
            state["removed"] = state["version"]
        else:
            state["floor"] = floor
        self._state = state

    def _unpost(self, rows: Sequence[Stored]) -> None:
        entries = [{"old_entry": key, "old_seq": row.seq} for row in rows for key in row.keys]
        self._open.execute(statements.UNPOST, entries)

    # --- finding --------------------------------------------------------------------------------

    def page(
        self, window: Window, after: Stored | None, limit: int, clauses: Sequence[Clause] = ()
    ) -> Sequence[Stored]:
        values = {"low": window.low, "high": window.high, "limit": limit}
        span = 0
        if window.kind == "arrived":
            values["last_seq"] = FOREVER
        if after is not None:
            span = span_of(after.times)
            values |= {
                "last_seq": after.seq,
                "last_start": after.times.start,
                "last_finish": FOREVER if after.times.end is None else after.times.end,
            }
        probes = [probe for each in clauses if (probe := self._points(each))]
        if window.kind == "overlapping":
            spans = [each for each in self._spans() if after is None or each <= span]
            if not spans:
                return []
            statement = statements.overlapping(
                tuple(spans), after is not None, tuple(map(len, probes))
            )
        else:
            statement = statements.page(window.kind, after is not None, tuple(map(len, probes)))
        for place, probe in enumerate(probes):
            values |= {f"entry_{place}_{i}": each for i, each in enumerate(probe)}  # type: ignore[misc]
        return [_stored(row) for row in self._open.execute(statement, values).fetchall()]

    def posted(self, clause: Clause, window: Window, before: int, limit: int) -> Sequence[Stored]:
        ranges = self._ranges(clause)
        values: dict[str, Any] = {
            "low": window.low,
            "high": window.high,
            "limit": limit,
            "last_seq": before,
        }
        for place, (low, high) in enumerate(ranges):
            values |= {f"low_{place}": low, f"high_{place}": high}
        statement = statements.posted(tuple(low == high for low, high in ranges), window.kind)
        rows = self._open.execute(statement, values)
        return list({row.seq: _stored(row) for row in rows}.values())

    def count_posted(self, clause: Clause, most: int) -> int:
        count = 0
        for low, high in self._ranges(clause):
            found = self._open.execute(
                statements.COUNT_POSTED, {"low": low, "high": high, "limit": most}
            )
            count += int(found.scalar_one())
            if count >= most:
                return most
        return count

    def count_window(self, window: Window, most: int) -> int:
        if window.kind == "arrived":
            return min(self._state["count"], most)
        values = {"low": window.low, "high": window.high, "limit": most}
        if window.kind == "overlapping":
            spans = tuple(self._spans())
            return (
                len(self._open.execute(statements.overlapping(spans, False, ()), values).all())
                if spans
                else 0
            )
        return int(self._open.execute(statements.counted(window.kind), values).scalar_one())

    def revisions(self, since: int) -> Sequence[Stored]:
        return [_stored(row) for row in self._open.execute(statements.REVISIONS, {"since": since})]

    def oldest(self, count: int) -> Sequence[Stored]:
        return [_stored(row) for row in self._open.execute(statements.OLDEST, {"limit": count})]

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

    def _ranges(self, clause: Clause) -> Clause:
        if self._state["others"] & OVERFLOW_BIT:
            return clause
        return tuple(each for each in clause if each.low != OVERFLOW)

    def _points(self, clause: Clause) -> list[bytes]:
        """The keys of a clause, if it is of single keys only."""
        ranges = self._ranges(clause)
        return [low for low, _ in ranges] if all(low == high for low, high in ranges) else []


@contextmanager
def _in_words(what: str) -> Iterator[None]:
    """Says what a database complains of in a sentence."""
    try:
        yield
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise HistoryError(
            f"the history cannot be {what} now: {reason}; what was acknowledged before is kept, so"
            " try again once that is put right"
        ) from None


class _Entries:
    """Keys of publications, and the numbers under each; written in the order of the keys.

    In that order each page of the index is visited once a batch, however large the index is.
    """

    def __init__(self) -> None:
        self.by_key: defaultdict[bytes, list[int]] = defaultdict(list)

    def add(self, keys: Sequence[bytes], seq: int) -> None:
        for key in keys:
            self.by_key[key].append(seq)

    def values(self) -> list[Any]:
        """Rows of postings, one after the other."""
        values: list[Any] = []
        for key in sorted(self.by_key):
            for seq in self.by_key[key]:
                values += (key, seq)
        return values


# --- rows ---------------------------------------------------------------------------------------


def _row(seq: int, publication: Publication) -> tuple[Any, ...]:
    """A row of publications, in the order of the columns."""
    start, start_until, end, end_until = publication.times
    return (
        seq,
        publication.key,
        start,
        start_until,
        FOREVER if end is None else end,
        FOREVER if end_until is None else end_until,
        span_of(publication.times),
        body_of(publication),
    )


def _stored(row: Any) -> Stored:
    seq, identity, start, start_until, finish, finish_until, body = row
    if finish == FOREVER:
        finish = finish_until = None
    return Stored(
        seq, bytes(identity), Times(start, start_until, finish, finish_until), bytes(body)
    )


def _note_span(span: int, state: dict[str, int]) -> None:
    if span == UNCERTAIN_SPAN:
        state["others"] |= UNCERTAIN_BIT
    elif span == OPEN_SPAN:
        state["others"] |= OPEN_BIT
    else:
        state["lengths"] |= 1 << span

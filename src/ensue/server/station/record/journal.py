"""The journal of a server: one file of SQLite that holds what was acknowledged, and the libraries.

In come entries, written in one transaction that is on the disk when `write` returns (a write-ahead
log with `synchronous=FULL`); out come entries again, by number. Beside them stand the libraries
with their versions, the state of their runs, and the audit log, so that a change of a library and
the state that goes with it are one transaction. One thread writes (the line); any thread reads.

Events that follow on each other share a row (a *run*), since a row costs more than an event: the
row has the number of the last of them, and their JSON line by line; its `key` says which of them
came without a time (`STAMPED`, or their places from 0). Outputs, which are looked for by rule and
id, have a row each.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import astuple

from ensue.errors import HistoryError, UsageError
from ensue.history.stores.sqlite import JOURNAL, claim
from ensue.server.station.entries import EVENT, OUTPUT, RUN, TIME, JournalEntry
from ensue.server.station.record.carrying import Carrier

T = TypeVar("T")

FORMAT: Final = 3
"""Raised with every change of what is written. A journal of any other format is refused."""
TROUBLES: Final = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite says of a file that is damaged; its words may hold bytes of the file."""
PAGE: Final = 2_000
PAGE_BYTES: Final = 4 * 1024 * 1024
"""A page ends with the row that goes beyond."""
STAMPED: Final = "*"
"""Of a run: all of its events came without a time."""
LONGEST_RUN: Final = 250
"""Events in one row: what is read to get at one of them."""
RUN_BYTES: Final = 1024 * 1024
"""A row ends with the event that goes beyond."""

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS journal (
    seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, body BLOB NOT NULL,
    library TEXT, correlation TEXT, key TEXT, id TEXT
);
CREATE INDEX IF NOT EXISTS journal_outputs ON journal (library, correlation, seq) WHERE kind = 1;
CREATE INDEX IF NOT EXISTS journal_output_ids ON journal (id) WHERE kind = 1;
CREATE TABLE IF NOT EXISTS libraries (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL, enabled INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS versions (
    name TEXT NOT NULL, version INTEGER NOT NULL, text TEXT NOT NULL, at INTEGER NOT NULL,
    author TEXT NOT NULL, note TEXT NOT NULL, PRIMARY KEY (name, version)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS snapshots (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL, seq INTEGER NOT NULL,
    state BLOB NOT NULL, counts BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS audit (
    number INTEGER PRIMARY KEY, at INTEGER NOT NULL, author TEXT NOT NULL, action TEXT NOT NULL,
    subject TEXT NOT NULL, detail TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS webhooks (
    name TEXT PRIMARY KEY, author TEXT NOT NULL, settings BLOB NOT NULL, seq INTEGER NOT NULL
) WITHOUT ROWID;
"""

_COLUMNS: Final = "seq, kind, body, library, correlation, key, id"
COLUMNS: Final = 7


class ServerJournal:
    """`writer` is for the thread of the line; reading has a connection of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.writer = _connected(path)
            claim(self.writer.execute, JOURNAL, str(path))
            self.writer.executescript(SCHEMA)
            self._reader = _connected(path)
        except TROUBLES as error:
            raise UsageError(f"the journal `{path}` cannot be opened: {error}") from None
        self._reading = Lock()
        self._carrier = Carrier(path)
        found = self.mark("format")
        if found not in (None, FORMAT):
            raise UsageError(
                f"the journal `{path}` is of format {found}, and this version of ensue reads format"
                f" {FORMAT} only: use the version that has written it, or move the file away to"
                " begin a new journal"
            )
        with self.write():
            self.set_mark("format", FORMAT)
            if self.mark("tag_key") is None:
                self.set_mark("tag_key", secrets.randbits(63))
        self._carrier.start()

    def close(self) -> None:
        self._carrier.stop()
        with self._reading:
            self._reader.close()
        self.writer.close()

    # --- writing --------------------------------------------------------------------------------

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction of the journal; when it ends, its entries are on the disk."""
        writer = self.writer
        try:
            writer.execute("BEGIN IMMEDIATE")
            try:
                yield writer
            except BaseException:
                writer.execute("ROLLBACK")
                raise
            writer.execute("COMMIT")
            if self._carrier.is_behind:
                writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._carrier.is_behind = False
        except TROUBLES as error:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            raise HistoryError(
                f"the journal `{self.path}` cannot be written to: {error}; nothing of this was"
                " acknowledged, so try again once that is put right"
            ) from None

    def append(self, entries: Sequence[JournalEntry]) -> None:
        """Inside of `write`. Numbers of events that follow on each other have no gap."""
        self.writer.executemany(
            f"INSERT INTO journal ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", _rows(entries)
        )

    def set_mark(self, name: str, value: int) -> None:
        """Set a named number of the journal. Call inside of `write`."""
        self.writer.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (name, value))

    def trim(self, floor: int) -> int:
        """Give up entries up to a number, some at a time; how many. Inside of `write`."""
        gone = self.writer.execute(
            "DELETE FROM journal WHERE seq IN (SELECT seq FROM journal WHERE seq <= ? LIMIT ?)",
            (floor, PAGE * 5),
        )
        return gone.rowcount

    # --- reading --------------------------------------------------------------------------------

    def ask(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement finds."""
        with self._asking():
            return self._reader.execute(statement, values).fetchall()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with self._reading:
            try:
                yield
            except TROUBLES as error:
                raise HistoryError(f"the journal cannot be read: {error}; try again") from None

    def mark(self, name: str) -> int | None:
        found = self.ask("SELECT value FROM marks WHERE name = ?", (name,))
        if found and not isinstance(found[0][0], int):
            raise self.damaged(f"the mark `{name}` is no number")
        return found[0][0] if found else None

    def tag_key(self) -> bytes:
        """A random key of this journal, for digests of what is secret."""
        return (self.mark("tag_key") or 0).to_bytes(8, "big")

    def damaged(self, what: str) -> HistoryError:
        return HistoryError(f"the journal `{self.path}` is damaged: {what}; restore it from a copy")

    def typed(self, kind: type[T], rows: Iterable[Sequence[Any]]) -> list[T]:
        """Rows as named tuples. SQLite keeps any value in any column, so types are looked at."""
        try:
            return [msgspec.convert(row, kind) for row in rows]
        except msgspec.ValidationError as error:
            raise self.damaged(f"{kind.__name__}: {error}") from None

    @property
    def last(self) -> int:
        """The number of the last entry; 0 if there is none."""
        return int(self.ask("SELECT coalesce(max(seq), 0) FROM journal")[0][0])

    @property
    def first(self) -> int:
        """The number of the first entry that is still here; 0 if there is none."""
        rows = self.ask(f"SELECT {_COLUMNS} FROM journal ORDER BY seq LIMIT 1")
        return next(self._entries(rows[0])).seq if rows else 0

    def page(self, after: int, until: int, limit: int = PAGE) -> list[JournalEntry]:
        """Entries behind a number, up to another, in their order."""
        return self._page("", (), after, until, limit)

    def inputs(self, after: int, until: int | None = None, limit: int = PAGE) -> list[JournalEntry]:
        """As `page`, of what rules have read."""
        wanted = " AND kind IN (?, ?)"
        return self._page(wanted, (TIME, RUN), after, 2**62 if until is None else until, limit)

    def _page(
        self, wanted: str, values: tuple[int, ...], after: int, until: int, limit: int
    ) -> list[JournalEntry]:
        statement = f"SELECT {_COLUMNS} FROM journal WHERE seq > ?{wanted} ORDER BY seq"
        found: list[JournalEntry] = []
        size = 0
        with self._asking():
            cursor = self._reader.execute(statement, (after, *values))
            try:
                for row in cursor:
                    found += [each for each in self._entries(row) if after < each.seq <= until]
                    size += len(row[2])
                    if len(found) >= limit or row[0] >= until or size >= PAGE_BYTES:
                        break
            finally:
                cursor.close()
        return found[:limit]

    def all_inputs(self, after: int, until: int | None = None) -> Iterator[JournalEntry]:
        while rows := self.inputs(after, until):
            yield from rows
            after = rows[-1].seq

    def outputs(
        self,
        library: str | None = None,
        correlation: str | None = None,
        before: int | None = None,
        limit: int = 100,
        key: str | None = None,
        most_bytes: int = 2**62,
    ) -> list[JournalEntry]:
        """Outputs, the latest first; no more behind the one that goes beyond `most_bytes`."""
        wanted, values = ["kind = 1"], list[Any]()
        given = (("library = ?", library), ("correlation = ?", correlation), ("key = ?", key))
        for column, value in given:
            if value is not None:
                wanted.append(column)
                values.append(value)
        if before is not None:
            wanted.append("seq < ?")
            values.append(before)
        # Without a library the order of the table serves, and not the index by library.
        index = "NOT INDEXED" if library is None else ""
        statement = (
            f"SELECT {_COLUMNS} FROM journal {index} WHERE {' AND '.join(wanted)}"
            " ORDER BY seq DESC LIMIT ?"
        )
        found: list[JournalEntry] = []
        size = 0
        with self._asking():
            cursor = self._reader.execute(statement, (*values, limit))
            try:
                while size < most_bytes and (row := cursor.fetchone()) is not None:
                    found += self._entries(row)
                    size += len(row[2])
            finally:
                cursor.close()
        return found

    def entry(self, seq: int) -> JournalEntry | None:
        rows = self.ask(
            f"SELECT {_COLUMNS} FROM journal WHERE seq >= ? ORDER BY seq LIMIT 1", (seq,)
        )
        return next((each for row in rows for each in self._entries(row) if each.seq == seq), None)

    def output_by_id(self, identity: str) -> JournalEntry | None:
        """The latest output of an id. What `push a` sends on has the id of its event."""
        rows = self.ask(
            f"SELECT {_COLUMNS} FROM journal WHERE kind = ? AND id = ? ORDER BY seq DESC LIMIT 1",
            (OUTPUT, identity),
        )
        return next(self._entries(rows[0])) if rows else None

    def events_containing(self, text: bytes, until: int, limit: int) -> list[JournalEntry]:
        """Events whose JSON holds a text, the latest first, up to a number."""
        # The run that holds `until` has the number of its last event.
        rows = self.ask(
            f"SELECT {_COLUMNS} FROM journal WHERE seq < ? AND kind = ?"
            " AND instr(body, ?) > 0 ORDER BY seq DESC LIMIT ?",
            (until + LONGEST_RUN, RUN, text, limit),
        )
        found = [
            each
            for row in rows
            for each in reversed(list(self._entries(row)))
            if each.seq <= until and text in each.body
        ]
        return found[:limit]

    def first_of_latest_events(self, count: int, until: int) -> int:
        """The number of the first of the latest events, so many or a few more; 0 if none."""
        statement = f"SELECT {_COLUMNS} FROM journal WHERE seq <= ? AND kind = ? ORDER BY seq DESC"
        found, first = 0, 0
        with self._asking():
            cursor = self._reader.execute(statement, (until, RUN))
            try:
                while found < count and (row := cursor.fetchone()) is not None:
                    size = row[2].count(b"\n") + 1
                    found += size
                    first = row[0] - size + 1
            finally:
                cursor.close()
        return first

    def _entries(self, row: tuple[Any, ...]) -> Iterator[JournalEntry]:
        """The entries of a row."""
        texts = (each for each in row[3:] if each is not None)
        are_right = isinstance(row[1], int) and isinstance(row[2], bytes)
        if not are_right or not all(isinstance(each, str) for each in texts):
            raise self.damaged(f"entry {row[0]} is of no known form")
        if row[1] != RUN:
            yield JournalEntry(*row)
            return
        # JSON has no line ends outside of its texts, where they are escaped.
        bodies = row[2].split(b"\n")
        first = row[0] - len(bodies) + 1
        stamped = self._stamped(row, len(bodies))
        for place, body in enumerate(bodies):
            is_stamped = place in stamped
            yield JournalEntry(first + place, EVENT, body, is_stamped=is_stamped)

    def _stamped(self, row: tuple[Any, ...], count: int) -> Collection[int]:
        """The places of those events of a run that came without a time."""
        given = row[5]
        if not given:
            return ()
        try:
            return range(count) if given == STAMPED else frozenset(map(int, given.split(",")))
        except ValueError:
            raise self.damaged(f"entry {row[0]} is of no known form") from None


def _rows(entries: Sequence[JournalEntry]) -> list[tuple[Any, ...]]:
    """Rows of entries, with events that follow on each other in runs."""
    rows: list[tuple[Any, ...]] = []
    waiting: list[JournalEntry] = []
    size = 0
    for entry in entries:
        if entry.kind == EVENT:
            waiting.append(entry)
            size += len(entry.body)
            if len(waiting) < LONGEST_RUN and size < RUN_BYTES:
                continue
        if waiting:
            rows.append(_run(waiting))
            waiting, size = [], 0
        if entry.kind != EVENT:
            rows.append(astuple(entry)[:COLUMNS])
    if waiting:
        rows.append(_run(waiting))
    return rows


def _run(events: Sequence[JournalEntry]) -> tuple[Any, ...]:
    stamped = [place for place, each in enumerate(events) if each.is_stamped]
    key = STAMPED if len(stamped) == len(events) else ",".join(map(str, stamped)) or None
    return events[-1].seq, RUN, b"\n".join([each.body for each in events]), None, None, key, None


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    for setting in (
        "journal_mode=WAL",
        # On the disk before a commit returns, also if the power fails.
        "synchronous=FULL",
        "cache_size=-32768",
        "temp_store=MEMORY",
        # The log is carried over into the file by a thread of its own, since that takes longer than
        # a commit may.
        "wal_autocheckpoint=0",
    ):
        connection.execute(f"PRAGMA {setting}")
    return connection

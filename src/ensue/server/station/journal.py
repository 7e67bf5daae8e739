"""The journal of a server: one file of SQLite that holds what was acknowledged, and the libraries.

In come entries, written in one transaction that is on the disk when `write` returns (a write-ahead
log with `synchronous=FULL`); out come entries again, by number. Beside them stand the libraries
with their versions, the state of their runs, and the audit log, so that a change of a library and
the state that goes with it are one transaction. One thread writes (the line); any thread reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final

from ensue.errors import HistoryError, UsageError
from ensue.server.station.entries import EVENT, OUTPUT, TIME, Entry

FORMAT: Final = 1
PAGE: Final = 2_000

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


class Journal:
    """`writer` is for the thread of the line; reading has a connection of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.writer = _connected(path)
            self.writer.executescript(SCHEMA)
            self._reader = _connected(path)
        except sqlite3.Error as error:
            raise UsageError(f"the journal `{path}` cannot be opened: {error}") from None
        self._reading = Lock()
        found = self.mark("format")
        if found not in (None, FORMAT):
            raise UsageError(
                f"the journal `{path}` is of format {found}, and this version of ensue reads"
                f" format {FORMAT}: use the version that has written it"
            )
        with self.write():
            self.set_mark("format", FORMAT)

    def close(self) -> None:
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
        except sqlite3.Error as error:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            raise HistoryError(
                f"the journal `{self.path}` cannot be written to: {error}; nothing of this was"
                " acknowledged, so try again once that is put right"
            ) from None

    def append(self, entries: Sequence[Entry]) -> None:
        """Inside of `write`."""
        self.writer.executemany(
            f"INSERT INTO journal ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", entries
        )

    def set_mark(self, name: str, value: int) -> None:
        """Inside of `write`."""
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
        with self._reading:
            try:
                return self._reader.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise HistoryError(f"the journal cannot be read: {error}; try again") from None

    def mark(self, name: str) -> int | None:
        found = self.ask("SELECT value FROM marks WHERE name = ?", (name,))
        return int(found[0][0]) if found else None

    @property
    def last(self) -> int:
        """The number of the last entry; 0 if there is none."""
        return int(self.ask("SELECT coalesce(max(seq), 0) FROM journal")[0][0])

    @property
    def first(self) -> int:
        """The number of the first entry that is still here; 0 if there is none."""
        return int(self.ask("SELECT coalesce(min(seq), 0) FROM journal")[0][0])

    def page(self, after: int, until: int, limit: int = PAGE) -> list[Entry]:
        """Entries behind a number, up to another, in their order."""
        rows = self.ask(
            f"SELECT {_COLUMNS} FROM journal WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
            (after, until, limit),
        )
        return [Entry(*row) for row in rows]

    def inputs(self, after: int, until: int | None = None, limit: int = PAGE) -> list[Entry]:
        """As `page`, of what rules have read."""
        rows = self.ask(
            f"SELECT {_COLUMNS} FROM journal WHERE seq > ? AND seq <= ? AND kind IN (?, ?)"
            " ORDER BY seq LIMIT ?",
            (after, 2**62 if until is None else until, EVENT, TIME, limit),
        )
        return [Entry(*row) for row in rows]

    def all_inputs(self, after: int, until: int | None = None) -> Iterator[Entry]:
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
    ) -> list[Entry]:
        """Outputs, the latest first."""
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
        rows = self.ask(
            f"SELECT {_COLUMNS} FROM journal {index} WHERE {' AND '.join(wanted)}"
            " ORDER BY seq DESC LIMIT ?",
            (*values, limit),
        )
        return [Entry(*row) for row in rows]

    def entry(self, seq: int) -> Entry | None:
        rows = self.ask(f"SELECT {_COLUMNS} FROM journal WHERE seq = ?", (seq,))
        return Entry(*rows[0]) if rows else None

    def output_by_id(self, identity: str) -> Entry | None:
        """The latest output of an id. What `push a` sends on has the id of its event."""
        rows = self.ask(
            f"SELECT {_COLUMNS} FROM journal WHERE kind = ? AND id = ? ORDER BY seq DESC LIMIT 1",
            (OUTPUT, identity),
        )
        return Entry(*rows[0]) if rows else None

    def events_containing(self, text: bytes, until: int, limit: int) -> list[Entry]:
        """Events whose JSON holds a text, the latest first, up to a number."""
        rows = self.ask(
            f"SELECT {_COLUMNS} FROM journal WHERE seq <= ? AND kind = 0 AND instr(body, ?) > 0"
            " ORDER BY seq DESC LIMIT ?",
            (until, text, limit),
        )
        return [Entry(*row) for row in rows]


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    for setting in (
        "journal_mode=WAL",
        # On the disk before a commit returns, also if the power fails.
        "synchronous=FULL",
        "cache_size=-32768",
        "temp_store=MEMORY",
        "wal_autocheckpoint=4000",
    ):
        connection.execute(f"PRAGMA {setting}")
    return connection

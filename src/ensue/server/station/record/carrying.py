"""Carries what was committed from the journal's log over into its file, beside the line.

SQLite would do it in the commit that makes the log too long, and that commit would take a hundred
times as long as others. Here a thread with a connection of its own does it in portions, without
holding up the writer. Where the writer is so fast that the log only grows, `is_behind` asks it for
one commit in which nothing else happens, so that the log begins anew.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

EVERY_SECONDS: Final = 0.25
"""Often, so that each time is short: a commit waits until the disk has taken what is carried."""
SHORT_BYTES: Final = 256 * 1024
"""A log up to this length is left alone."""
LONG_BYTES: Final = 256 * 2**20
"""A log of this length is behind."""


class Carrier:
    """One thread over the journal at a path, between `start` and `stop`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._ends = threading.Event()
        self.is_behind = False
        self._thread = threading.Thread(target=self._work, name="ensue-carrier", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        # A disk or a file that fails is told by the commits of the line.
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as connection,
        ):
            while not self._ends.wait(EVERY_SECONDS):
                with suppress(sqlite3.Error, UnicodeDecodeError, OSError):
                    self._carry(connection)

    def _carry(self, connection: sqlite3.Connection) -> None:
        length = self._log.stat().st_size
        if length > SHORT_BYTES:
            _, logged, carried = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            # The file of the log keeps its length; what of it is used is told by the pages.
            self.is_behind = length > LONG_BYTES and logged - carried > 0

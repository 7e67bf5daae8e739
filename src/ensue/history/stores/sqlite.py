"""SQLite as histories use it: a write-ahead log, and transactions that SQLAlchemy begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Engine, create_engine, event

from ensue.errors import UsageError

HISTORY: Final = 0x456E7301
"""The `application_id` in the header of a file that is a history: `Ens`, and a number."""
JOURNAL: Final = 0x456E7302
"""The `application_id` of the journal of a server."""


def claim(ask: Callable[[str], Any], application: int, place: str, *, shared: bool = False) -> None:
    """Mark a new file as one of an application. Raises `UsageError` for a file of another one.

    `ask` runs a statement and returns its rows. Where files may be `shared`, a file of no
    application is taken, too: our tables then stand beside the tables of others.
    """
    marked = int(next(iter(ask("PRAGMA application_id")))[0])
    found = {row[0] for row in ask("SELECT name FROM sqlite_master WHERE type = 'table'")}
    is_free = shared and not marked
    if marked != application and found and not is_free:
        shown = ", ".join(f"`{each}`" for each in sorted(map(str, found))[:3])
        raise UsageError(
            f"`{place}` is a database of something else (there is {shown}): give a file that is not"
            " there yet, or one that ensue has made for this"
        )
    if not found:
        ask(f"PRAGMA application_id = {application}")


def sqlite_engine(path: str, durable: bool = True) -> Engine:
    """An engine on a file of SQLite, which is made if there is none."""
    engine = create_engine(
        f"sqlite+pysqlite:///{path}",
        connect_args={"timeout": 30, "check_same_thread": False},
    )

    def prepare(connection: Any, _: Any) -> None:
        # SQLAlchemy begins transactions itself: the driver would begin them at the first write.
        connection.isolation_level = None
        for setting in (
            "journal_mode=WAL",
            # The log is on the disk before a commit returns, also if the power fails.
            f"synchronous={'FULL' if durable else 'NORMAL'}",
            "cache_size=-65536",
            "temp_store=MEMORY",
            "wal_autocheckpoint=4000",
        ):
            connection.execute(f"PRAGMA {setting}")

    def begin(connection: Any) -> None:
        writes = connection.get_execution_options().get("ensue_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", begin)
    return engine

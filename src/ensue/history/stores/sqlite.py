"""SQLite as histories use it: a write-ahead log, and transactions that SQLAlchemy begins."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine, event


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

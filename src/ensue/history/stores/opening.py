"""From the address of a history to its store: `memory:`, `sqlite:FILE`, a server, `parquet:FOLDER`.

Drivers are extras and are imported here only, when an address asks for one. What is wrong with an
address, or missing for it, is said as `UsageError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ensue.errors import UsageError
from ensue.history.store import Store

if TYPE_CHECKING:
    from sqlalchemy import Engine

SERVERS: Final = {
    "postgresql": ("postgresql+psycopg", "psycopg", "postgresql"),
    "mysql": ("mysql+pymysql", "pymysql", "mariadb"),
    "mariadb": ("mariadb+pymysql", "pymysql", "mariadb"),
}
"""For each scheme: the dialect and driver of SQLAlchemy, the module, and the extra that has it."""
EXAMPLES: Final = (
    "`memory:`, `sqlite:events.db`, `postgresql://user@host/database`,"
    " `mysql://user@host/database` or `parquet:folder`"
)


def open_store(url: str) -> Store:
    """The store at an address. Raises `UsageError`."""
    scheme, colon, rest = url.partition(":")
    if not colon:
        raise UsageError(f"`{url}` is no address of a history: write {EXAMPLES}")
    if scheme == "memory":
        from ensue.history.stores.memory import MemoryStore

        if rest.strip("/"):
            raise UsageError(f"`memory:` has no name, and `{url}` gives one: leave out `{rest}`")
        return MemoryStore()
    if scheme == "sqlite":
        return _database(lambda: sqlite_engine(_file(url, rest)), url)
    if scheme in SERVERS:
        return _database(lambda: _server_engine(url, scheme, rest), url)
    if scheme == "parquet":
        _require("sqlalchemy", "history", url)
        from ensue.history.stores.parquet import ParquetStore

        return ParquetStore(_file(url, rest))
    raise UsageError(f"`{scheme}` is no kind of history: write {EXAMPLES}")


def sqlite_engine(path: str, durable: bool = True) -> Engine:
    """An engine on a file of SQLite, which is made if there is none."""
    from sqlalchemy import create_engine, event

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


def _server_engine(url: str, scheme: str, rest: str) -> Engine:
    from sqlalchemy import create_engine

    dialect, module, extra = SERVERS[scheme]
    _require(module, extra, url)
    return create_engine(f"{dialect}:{rest}", isolation_level="REPEATABLE READ", pool_pre_ping=True)


def _database(make: Any, url: str) -> Store:
    _require("sqlalchemy", "history", url)
    from sqlalchemy.exc import ArgumentError, DatabaseError

    from ensue.history.stores.sql import SqlStore

    try:
        return SqlStore(make())
    except ArgumentError as error:
        raise UsageError(f"`{url}` is no address of a history: {error}") from None
    except DatabaseError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise UsageError(
            f"the history `{_without_password(url)}` cannot be opened: {reason}"
        ) from None


def _without_password(url: str) -> str:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url


def _file(url: str, rest: str) -> str:
    """The path of `sqlite:FILE`; `sqlite:///FILE` is read as elsewhere."""
    path = rest.removeprefix("//") if rest.startswith("///") else rest
    path = (
        path.removeprefix("/") if rest.startswith("///") and not rest.startswith("////") else path
    )
    if not path:
        raise UsageError(f"`{url}` names no file: write it behind the colon, as {EXAMPLES}")
    return path


def _require(module: str, extra: str, url: str) -> None:
    try:
        import_module(module)
    except ImportError:
        scheme = url.partition(":")[0]
        raise UsageError(
            f"a history at `{scheme}:` needs `{module}`: pip install 'ensue[{extra}]'"
        ) from None

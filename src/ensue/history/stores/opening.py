"""From the address of a history to its store: `memory:`, `sqlite:FILE`, a server, `parquet:FOLDER`.

Drivers are extras and are imported here only, when an address asks for one. What is wrong with an
address, or missing for it, is said as `UsageError`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ensue.errors import HistoryError, UsageError
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
        return _database(lambda: _sqlite_engine(_file(url, rest)), url)
    if scheme in SERVERS:
        return _database(lambda: _server_engine(url, scheme, rest), url)
    if scheme == "parquet":
        _require("sqlalchemy", "history", url)
        from ensue.history.stores.parquet import ParquetStore

        return _opened(lambda: ParquetStore(_file(url, rest)), url)
    raise UsageError(f"`{scheme}` is no kind of history: write {EXAMPLES}")


def _sqlite_engine(path: str) -> Engine:
    from ensue.history.stores.sqlite import sqlite_engine

    return sqlite_engine(path)


def _server_engine(url: str, scheme: str, rest: str) -> Engine:
    from sqlalchemy import create_engine

    dialect, module, extra = SERVERS[scheme]
    _require(module, extra, url)
    return create_engine(f"{dialect}:{rest}", isolation_level="REPEATABLE READ", pool_pre_ping=True)


def _database(make: Any, url: str) -> Store:
    _require("sqlalchemy", "history", url)
    from ensue.history.stores.sql import SqlStore

    return _opened(lambda: SqlStore(make()), url)


def _opened(make: Callable[[], Store], url: str) -> Store:
    """Raises `UsageError` for an address that is none, and for a store that is damaged."""
    from sqlalchemy.exc import ArgumentError, DatabaseError

    try:
        return make()
    except ArgumentError as error:
        raise UsageError(f"`{url}` is no address of a history: {error}") from None
    except (DatabaseError, HistoryError, UnicodeDecodeError) as error:
        said = error.orig if isinstance(error, DatabaseError) else error
        reason = (str(said).strip() or type(said).__name__).splitlines()[0]
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

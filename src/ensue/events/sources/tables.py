"""Tables that DuckDB or Delta Lake keep, as files in the stream format of Arrow.

In comes the path of a database of DuckDB and of a table in it (`events.duckdb/main.events`), or the
folder of a Delta table; out come the bytes of an Arrow stream, batch by batch. A database is opened
for reading alone. The files in the folder of a Delta table are not read by themselves, since some
of them may be no longer part of it. The packages are in the extras `duckdb` and `delta`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from ensue.errors import UsageError

_SIGN, _SIGN_AT = b"DUCK", 8
_LOG = "_delta_log"
_NAMES = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_catalog = current_database() ORDER BY ALL
"""


def is_database(path: Path) -> bool:
    """Whether a path is a database of DuckDB."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(_SIGN_AT + len(_SIGN))[_SIGN_AT:] == _SIGN


def is_delta_table(folder: Path) -> bool:
    return (folder / _LOG).is_dir()


def is_delta_folder(files: Any, folder: str) -> bool:
    """As `is_delta_table`, for a folder of a file system of `fsspec`."""
    return bool(files.isdir(f"{folder.rstrip('/')}/{_LOG}"))


def table_of_database(path: Path) -> str:
    """The path of the only table of a database. Raises `UsageError` if it has several, or none."""
    with _connected(path) as connection:
        names = [_shown(*row) for row in connection.sql(_NAMES).fetchall()]
    if len(names) != 1:
        listed = ", ".join(f"`{path}/{name}`" for name in names)
        raise UsageError(
            f"`{path}` has several tables: name one of them, {listed}"
            if names
            else f"`{path}` has no table: give a database with a table of events"
        )
    return f"{path}/{names[0]}"


def open_table_of_database(path: Path, table: str) -> BinaryIO:
    """The rows of a table. Raises `UsageError` if there is no such table."""
    import pyarrow as pa

    connection = _connected(path)
    names = {_shown(*row): row for row in connection.sql(_NAMES).fetchall()}
    found = names.get(table.removeprefix("main."))
    if found is None:
        listed = ", ".join(f"`{name}`" for name in names) or "none"
        connection.close()
        raise UsageError(f"`{path}` has no table `{table}`: its tables are {listed}")
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in found)
    rows = pa.RecordBatchReader.from_stream(connection.sql(f"SELECT * FROM {quoted}"))
    return _stream(rows.schema, rows, connection)


def open_delta_table(path: str) -> BinaryIO:
    """The rows of a Delta table, by its path or its URL."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise _missing(f"`{path}` is a Delta table", "delta") from None
    try:
        rows = DeltaTable(path).to_pyarrow_dataset()
    except (DeltaError, OSError) as error:
        raise UsageError(f"`{path}` cannot be read as a Delta table: {error}") from None
    return _stream(rows.schema, rows.to_batches(), None)


def _connected(path: Path) -> Any:
    try:
        import duckdb
    except ImportError:
        raise _missing(f"`{path}` is a database of DuckDB", "duckdb") from None
    try:
        return duckdb.connect(str(path), read_only=True)
    except duckdb.Error as error:
        raise UsageError(f"`{path}` cannot be read as a database of DuckDB: {error}") from None


def _shown(schema: str, table: str) -> str:
    """A table as paths name it."""
    return table if schema == "main" else f"{schema}.{table}"


def _missing(what: str, extra: str) -> UsageError:
    return UsageError(
        f"{what}, and the package that reads it is not installed: `pip install 'ensue[{extra}]'`"
        " brings it"
    )


def _stream(schema: Any, batches: Iterable[Any], owner: Any) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_ArrowStream(schema, iter(batches), owner), 1 << 16))


class _ArrowStream(io.RawIOBase):
    """Batches as an Arrow stream, written while it is read. `owner` is closed with it."""

    def __init__(self, schema: Any, batches: Iterator[Any], owner: Any) -> None:
        import pyarrow as pa

        self._sink = io.BytesIO()
        self._batches = batches
        self._owner = owner
        self._writer = pa.ipc.new_stream(self._sink, schema)
        self._ready = memoryview(b"")
        self._has_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._has_ended:
            batch = next(self._batches, None)
            if batch is None:
                self._writer.close()
                self._has_ended = True
            else:
                self._writer.write_batch(batch)
            self._ready = memoryview(self._sink.getvalue())
            self._sink.seek(0)
            self._sink.truncate()
        part = self._ready[: len(buffer)]
        buffer[: len(part)] = part
        self._ready = self._ready[len(part) :]
        return len(part)

    def close(self) -> None:
        if not self.closed and self._owner is not None:
            self._owner.close()
        super().close()

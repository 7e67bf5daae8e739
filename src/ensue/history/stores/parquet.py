"""Publications in a folder of Parquet files, which Spark reads as a table of events.

The files are the record: each write adds one, with the events as they came, in the columns that
every table of events has (`ensue.events.columns`), and is on disk before the write returns. What a
search needs stands beside them in an index of SQLite (`_index.db`, which Spark passes over): it is
made from the files, and made again from them where it is missing or behind. Small files are merged
when there are many. What retention gives up leaves the index at once, and the disk when a whole
file is given up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ensue.errors import EventError, HistoryError, UsageError
from ensue.events.cloudevents import read_json, write_json
from ensue.events.columns import EXTENSION_PREFIX
from ensue.events.event import Event
from ensue.events.times import microseconds_of
from ensue.history.keeping import keep
from ensue.history.publication import (
    END,
    END_UNTIL,
    PHASE,
    START_UNTIL,
    InstantColumns,
    key_of,
    publication_of,
)
from ensue.history.store import Stored
from ensue.history.stores.sql import SqlStore
from ensue.history.stores.sqlite import sqlite_engine

INDEX: Final = "_index.db"
FIRST_KEY: Final = b"ensue.first"
"""In a merged file: the number of the first of the files that it stands for."""
SMALL: Final = 1_000
MOST_SMALL: Final = 32
"""As many files of fewer rows than `SMALL` are merged into one."""

_OWN: Final = (
    ("id", pa.string()),
    ("source", pa.string()),
    ("type", pa.string()),
    ("time", pa.timestamp("us", tz="UTC")),
    ("data", pa.string()),
)
_KINDS: Final[Mapping[type, pa.DataType]] = {
    str: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
}
_TEXT_COLUMNS: Final = ("subject", "datacontenttype", "dataschema")


class ParquetStore(SqlStore):
    """A store whose record are Parquet files, and whose index is a file of SQLite."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"the history `parquet:{folder}` cannot be opened: {error.strerror}"
            ) from None
        self._noted: list[Event] | None = None
        # Readers that take the columns of one file for those of all find intervals in any of them.
        intervals = (PHASE, END, START_UNTIL, END_UNTIL)
        self._columns: dict[str, pa.DataType] = {_column(each): pa.string() for each in intervals}
        super().__init__(sqlite_engine(str(self._folder / INDEX), durable=False))
        self._catch_up()

    # --- writing --------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        with super().writing():
            self._noted = []
            yield
            if self._noted:
                self._write(self._noted, self._state["version"])
            self._noted = None
        self._tidy()

    def note(self, event: Event) -> None:
        if self._noted is not None:
            self._check(event)
            self._noted.append(event)

    def insert_instants(self, instants: InstantColumns) -> bool:  # noqa: ARG002 - a file has rows
        return False

    def remove(self, gone: Sequence[Stored], floor: int | None = None) -> None:
        super().remove(gone, floor)
        if gone:
            self._drop_files()

    def _write(self, events: Sequence[Event], number: int, first: int | None = None) -> None:
        """Write a file as a whole: under another name first, and to the disk."""
        table = self._table(events)
        if first is not None:
            table = table.replace_schema_metadata({FIRST_KEY: str(first).encode()})
        target = self._folder / f"part-{number:012d}.parquet"
        unfinished = self._folder / f"_{target.name}"
        with unfinished.open("wb") as file:
            pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(target)
        _sync_folder(self._folder)

    def _table(self, events: Sequence[Event]) -> pa.Table:
        rows = [_row(event) for event in events]
        fields = [*_OWN, *self._columns.items()]
        arrays = [pa.array([row.get(name) for row in rows], kind) for name, kind in fields]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _check(self, event: Event) -> None:
        """Raises `EventError` if an extension has another type than its column in this folder."""
        if isinstance(event.data, bytes):
            raise EventError(
                [
                    f"`{event.id}`: its data are bytes, and a history in Parquet holds JSON:"
                    " encode them as text, or keep them in a history of another kind"
                ]
            )
        kinds = {_column(name): _KINDS[type(each)] for name, each in event.extensions.items()}
        for column, kind in kinds.items():
            if (known := self._columns.get(column, kind)) != kind:
                raise EventError(
                    [
                        f"`{event.id}`: the column `{column}` of this folder holds `{known}`, and"
                        f" the extension is a `{kind}`: a column of Parquet has one type"
                    ]
                )
        self._columns |= kinds

    # --- files ----------------------------------------------------------------------------------

    def _files(self) -> dict[int, Path]:
        found = sorted(self._folder.glob("part-*.parquet"))
        numbers = ((each.stem.removeprefix("part-"), each) for each in found)
        return {int(number): each for number, each in numbers if number.isdecimal()}

    def _catch_up(self) -> None:
        """Bring the index up to the files: after a crash, or where it is missing."""
        files = self._files()
        for number, path in list(files.items()):
            with _readable(path):
                schema = pq.read_schema(path)
                first = (schema.metadata or {}).get(FIRST_KEY)
                first = None if first is None else int(first)
            # A merged file stands for those before it; a crash may have left them.
            for stale in [each for each in files if first and first <= each < number]:
                files.pop(stale).unlink(missing_ok=True)
            for field in schema:
                if field.name not in dict(_OWN):
                    self._columns[field.name] = field.type
        with self.reading():
            version = self._state["version"]
        for number, path in sorted(files.items()):
            if number > version:
                with super().writing():
                    if self._state["version"] > number:
                        # The writer of the file has brought it into the index meanwhile.
                        continue
                    self._state = {**self._state, "version": number}
                    with _readable(path):
                        found = [publication_of(event) for event in _read(path)]
                    keep(self, found)

    def _tidy(self) -> None:
        """Merge small files that follow each other, once there are many."""
        files = self._files()
        if len(files) <= MOST_SMALL:
            return
        rows = {number: _row_count(path) for number, path in files.items()}
        small = [number for number, count in rows.items() if count < SMALL]
        if len(small) <= MOST_SMALL:
            return
        with super().writing():
            run = _longest_run(list(self._files()), set(small))
            if len(run) < 2:
                return
            files = self._files()
            events = [event for number in run for event in _read(files[number])]
            self._write(events, run[-1], first=run[0])
            for number in run[:-1]:
                files[number].unlink(missing_ok=True)

    def _drop_files(self) -> None:
        """Delete the files of whose events nothing is left, the oldest first."""
        for path in list(self._files().values())[:-1]:
            keys = [key_of(event) for event in _read(path)]
            if self.by_keys(keys):
                return
            path.unlink(missing_ok=True)


def _longest_run(numbers: Sequence[int], small: set[int]) -> list[int]:
    """The longest run of small files that no other file interrupts."""
    best: list[int] = []
    run: list[int] = []
    for number in numbers:
        run = [*run, number] if number in small else []
        best = max(best, run, key=len)
    return best


def _row(event: Event) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "time": event.time,
        "data": None if event.data is None else write_json(event.data),
    }
    return row | {_column(name): value for name, value in event.extensions.items()}


def _column(extension: str) -> str:
    return extension if extension in _TEXT_COLUMNS else EXTENSION_PREFIX + extension


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Says in a sentence that a file is damaged."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, EventError) as error:
        reason = " ".join(str(error).split())
        raise HistoryError(
            f"the file `{path.name}` of the history is damaged ({reason}): put a copy from before"
            " in its place"
        ) from None


def _row_count(path: Path) -> int:
    with _readable(path):
        return int(pq.read_metadata(path).num_rows)


def _read(path: Path) -> list[Event]:
    with _readable(path):
        return list(_rows_of(path))


def _rows_of(path: Path) -> Iterator[Event]:
    for row in pq.read_table(path).to_pylist():
        data, time = row.pop("data"), row.pop("time")
        if not isinstance(time, datetime):
            raise TypeError("an event has no time")
        identity, source, type_ = (row.pop(name) for name in ("id", "source", "type"))
        extensions = {
            name.removeprefix(EXTENSION_PREFIX): value
            for name, value in row.items()
            if value is not None
        }
        read = None if data is None else read_json(data)
        yield Event(identity, source, type_, microseconds_of(time), read, extensions)


def _sync_folder(folder: Path) -> None:
    """The name of a new file is on the disk when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

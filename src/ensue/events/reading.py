"""Files of events: JSON lines, CSV and Parquet, read record by record.

In comes a path or an open binary file; out goes, for each record in its order, a conformed `Event`
or a `Rejected` that keeps the record and says what is wrong with it, so that a bad record never
stops a run. What makes the whole file unusable (it is not there, it is no Parquet, it has no
column `time`) is a `UsageError`. No file is held in memory whole. JSON lines are read by
`cloudevents`; which column of a table is what stands in `columns`.
"""

from __future__ import annotations

import csv
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import decode
from ensue.events.columns import Layout, RowReader, convert_text
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.types import TypeSystem

Progress = Callable[[int, int | None], None]
"""Is told how much has been read and, if that is known, how much there is: bytes, or for Parquet
rows. It is called now and then, and once more at the end."""

LINES = "jsonl"
"""JSON lines: what the standard input holds, and a file whose name says nothing else."""

FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
STDIN = "-"
CELL_LIMIT = 2**28
"""The longest CSV cell, in characters. It stops a quote that is never closed from taking the
whole rest of a large file into memory."""

_PROGRESS_STEP = 2**18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_events(
    source: Path | str | BinaryIO,
    types: TypeSystem,
    format: str | None = None,  # noqa: A002 - the name that users know from the command line
    *,
    name: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Event | Rejected]:
    """The events of a file, in its order, and in their places the records that are none.

    `source` may be `-` for the standard input. `format` is `jsonl`, `csv` or `parquet`; without
    it the ending of the file's name decides, and where there is no name it is `jsonl`. `name` is
    what stands in for the `source` of rows that have none. A directory is read as its Parquet
    files, in the order of their names.
    """
    path = Path(source) if isinstance(source, str | Path) else None
    if path is not None and str(path) == STDIN:
        source, path = sys.stdin.buffer, None
        name = name or "stdin"
    format = format or _format_of(path)  # noqa: A001
    if format not in FORMATS.values():
        allowed = ", ".join(f"`{each}`" for each in dict.fromkeys(FORMATS.values()))
        raise UsageError(f"there is no event format `{format}`: choose one of {allowed}")
    if path is not None:
        if not path.exists():
            raise UsageError(f"there is no file `{path}`: give the path of a file of events")
        if format == "parquet":
            files = [(each, name or each.name) for each in _parquet_files(path)]
            return _parquet(files, types, progress)
        source = _open(path)
        return _closing(source, _streamed(source, types, format, name or path.name, progress))
    assert not isinstance(source, str | Path)
    name = name or Path(str(getattr(source, "name", "stream"))).name
    return _streamed(source, types, format, name, progress)


def _format_of(path: Path | None) -> str:
    if path is None:
        return LINES
    if path.is_dir():
        return "parquet"
    return FORMATS.get(path.suffix.lower(), LINES)


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path | str, error: Exception) -> UsageError:
    reason = getattr(error, "strerror", None) or str(error)
    return UsageError(f"`{path}` cannot be read: {reason[:1].lower()}{reason[1:]}")


def _closing(file: BinaryIO, records: Iterator[Event | Rejected]) -> Iterator[Event | Rejected]:
    with file:
        yield from records


def _streamed(
    file: BinaryIO, types: TypeSystem, format_: str, name: str, progress: Progress | None
) -> Iterator[Event | Rejected]:
    if format_ == "parquet":
        return _parquet([(file, name)], types, progress)
    lines = _measured(file, name, progress)
    return _json_lines(lines, types) if format_ == "jsonl" else _csv_rows(lines, types, name)


def _measured(file: BinaryIO, name: str, progress: Progress | None) -> Iterator[bytes]:
    """The lines of a file without its byte order mark, while progress is told of them."""
    total = _size(file)
    done = told = 0
    try:
        for line in file:
            # Only the first line can follow nothing.
            yield line.removeprefix(_BYTE_ORDER_MARK) if done == 0 else line
            done += len(line)
            if progress and done - told >= _PROGRESS_STEP:
                told = done
                progress(done, total)
    except OSError as error:
        raise _unreadable(name, error) from None
    if progress:
        progress(done, total)


def _size(file: BinaryIO) -> int | None:
    try:
        status = os.fstat(file.fileno())
    except (OSError, AttributeError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _json_lines(lines: Iterable[bytes], types: TypeSystem) -> Iterator[Event | Rejected]:
    for number, line in enumerate(lines, 1):
        record = line.strip()
        if not record:
            continue
        try:
            event = conform(decode(record), types)
        except EventError as error:
            yield Rejected(number, line.rstrip(b"\r\n"), error.problems)
        else:
            yield event


class _CsvRecords:
    """The records of a CSV file, each with the number of its first line and its own bytes.

    A cell in quotes may hold line breaks, so a record can be several lines. Bytes that are no
    UTF-8 pass through as surrogates, and so spoil only the record that they stand in.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self._taken: list[bytes] = []
        # The limit belongs to the whole process, and the default is too small for JSON in a cell.
        csv.field_size_limit(max(CELL_LIMIT, csv.field_size_limit()))
        self._reader = csv.reader(self._texts(), strict=True)
        self.number = 1

    def _texts(self) -> Iterator[str]:
        for line in self._lines:
            self._taken.append(line)
            yield line.decode("utf-8", "surrogateescape")

    @property
    def raw(self) -> bytes:
        return b"".join(self._taken).rstrip(b"\r\n")

    def next(self) -> list[str] | None:
        """The cells of the next record that is not blank; `None` at the end."""
        while True:
            self.number = self._reader.line_num + 1
            self._taken.clear()
            try:
                cells = next(self._reader)
            except StopIteration:
                return None
            except csv.Error as error:
                raise EventError([_csv_problem(str(error))]) from None
            if len(cells) > 1 or (cells and cells[0].strip()):
                return cells


def _csv_problem(reason: str) -> str:
    if "unexpected end" in reason:
        return "a quote that opens in this record is never closed"
    if "field larger" in reason:
        return f"a cell is longer than {CELL_LIMIT} characters; is a quote never closed"
    return f"no CSV: {reason}"


def _csv_rows(lines: Iterable[bytes], types: TypeSystem, name: str) -> Iterator[Event | Rejected]:
    records = _CsvRecords(lines)
    try:
        header = records.next()
    except EventError as error:
        raise UsageError(f"the first line of `{name}` names no columns: {error}") from None
    if header is None:
        raise UsageError(f"`{name}` is empty: the first line of a CSV file names its columns")
    layout = Layout.of([_readable(column.strip()) for column in header], f"`{name}`")
    rows = RowReader(layout, types, name, convert_text)
    row = 0
    while True:
        try:
            cells = records.next()
            if cells is None:
                return
            row += 1
            event = rows.event(row, _row(cells, len(header), records.raw))
        except EventError as error:
            yield Rejected(records.number, records.raw, error.problems)
        else:
            yield event


def _row(cells: list[str], width: int, raw: bytes) -> list[str | None]:
    if len(cells) != width:
        raise EventError(
            [f"the row has {len(cells)} cells, but the first line names {width} columns"]
        )
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
        raise EventError([f"the text is not UTF-8: {problem}"]) from None
    return [cell or None for cell in cells]


def _readable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _parquet(
    files: Sequence[tuple[Path | BinaryIO, str]], types: TypeSystem, progress: Progress | None
) -> Iterator[Event | Rejected]:
    # pyarrow takes longer to load than the rest of Ensue, and most runs do not need it.
    from ensue.events.parquet import read_parquet

    return read_parquet(files, types, progress)


def _parquet_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(each for each in path.rglob("*.parquet") if each.name[0] not in "_.")
    if not files:
        raise UsageError(
            f"the directory `{path}` holds no `.parquet` file: give one that does, or the path of"
            " a file of events"
        )
    return files

"""Files of events: JSON lines, CSV and Parquet, read record by record.

In comes a path, `Input`s of `sources` or an open binary file; out goes, for each record in its
order, a conformed `Event` or a `Rejected` that keeps the record and says what is wrong with it, so
that a bad record never stops a run. What makes the whole file unusable (it is not there, it is no
Parquet, it has no column `time`) is a `UsageError`. No file is held in memory whole. JSON lines are
read by `cloudevents`; which column of a table is what stands in `columns`.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import decode
from ensue.events.columns import Layout, RowReader, convert_text
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.sources import LINES, Input, open_inputs
from ensue.events.sources.contents import check_format
from ensue.events.types import TypeSystem

Progress = Callable[[int, int | None], None]
"""Is told how much has been read and, if that is known, how much there is: bytes on the disk, or
for one open table rows. It is called now and then, and once more at the end."""

CELL_LIMIT = 2**28
"""The longest CSV cell, in characters. It stops a quote that is never closed from taking the
whole rest of a large file into memory."""

_PROGRESS_STEP = 2**18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_events(
    source: Path | str | Sequence[Input] | BinaryIO,
    types: TypeSystem,
    format: str | None = None,  # noqa: A002 - the name that users know from the command line
    *,
    name: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Event | Rejected]:
    """The events of a file, in its order, and in their places the records that are none.

    `source` may be `-` for the standard input, a folder, a pattern, or `Input`s. `format` is
    `jsonl`, `csv`, `parquet` or `arrow`; without it the first bytes and the ending of the file's
    name decide. An open file is `jsonl` unless `format` says otherwise. `name` is what stands in
    for the `source` of rows that have none.
    """
    if isinstance(source, str | Path):
        return _read_inputs(open_inputs([str(source)], format), types, name, progress)
    if isinstance(source, list | tuple):
        return _read_inputs(source, types, name, progress)
    assert not isinstance(source, Sequence)
    format = check_format(format or LINES)  # noqa: A001
    name = name or Path(str(getattr(source, "name", "stream"))).name
    if format in ("parquet", "arrow"):
        from ensue.events.parquet import read_arrow, read_parquet

        read = read_parquet if format == "parquet" else read_arrow
        return read(source, name, types, progress)
    return _streamed(_measured(source, name, progress), types, format, name)


def _read_inputs(
    inputs: Sequence[Input], types: TypeSystem, name: str | None, progress: Progress | None
) -> Iterator[Event | Rejected]:
    """The records of several files, one file after the other.

    Numbers that stand in for ids go on from file to file; a refused record keeps the number in its
    own file, and that file's path.
    """
    sizes = [each.size for each in inputs]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    before = rows = 0
    for each in inputs:
        told = None if progress is None else _Told(progress, before, total)
        for record in _records(each, types, name or each.name, rows, told):
            rows += 1
            yield record if isinstance(record, Event) else _in_file(record, each)
        before += each.size or 0
    if progress:
        progress(before, total)


def _in_file(record: Rejected, file: Input) -> Rejected:
    return msgspec.structs.replace(record, file=None if file.is_stdin else file.path)


def _records(
    each: Input, types: TypeSystem, name: str, rows_before: int, told: _Told | None
) -> Iterator[Event | Rejected]:
    if each.format in ("parquet", "arrow"):
        yield from _tables(each, types, name, rows_before, told)
        return
    with each.open(told) as file:
        lines = _measured(file, each.path, None)
        yield from _streamed(lines, types, each.format, name, each.delimiter, rows_before)


@dataclass(frozen=True)
class _Told:
    """Tells of one file among others how far all of them are read."""

    progress: Progress
    before: int
    total: int | None

    def __call__(self, done: int) -> None:
        self.progress(self.before + done, self.total)

    def share(self, size: int | None) -> Progress:
        """For a reader that counts rows: its share of the bytes of its file."""
        return lambda done, total: self(0 if not total else (size or 0) * done // total)


def _unreadable(path: Path | str, error: Exception) -> UsageError:
    reason = getattr(error, "strerror", None) or str(error)
    return UsageError(f"`{path}` cannot be read: {reason[:1].lower()}{reason[1:]}")


def _streamed(
    lines: Iterator[bytes],
    types: TypeSystem,
    format_: str,
    name: str,
    delimiter: str = ",",
    rows_before: int = 0,
) -> Iterator[Event | Rejected]:
    if format_ == LINES:
        return _json_lines(lines, types)
    return _csv_rows(lines, types, name, delimiter, rows_before)


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

    def __init__(self, lines: Iterable[bytes], delimiter: str) -> None:
        self._lines = lines
        self._taken: list[bytes] = []
        # The limit belongs to the whole process, and the default is too small for JSON in a cell.
        csv.field_size_limit(max(CELL_LIMIT, csv.field_size_limit()))
        self._reader = csv.reader(self._texts(), delimiter=delimiter, strict=True)
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


def _csv_rows(
    lines: Iterable[bytes], types: TypeSystem, name: str, delimiter: str, rows_before: int
) -> Iterator[Event | Rejected]:
    records = _CsvRecords(lines, delimiter)
    try:
        header = records.next()
    except EventError as error:
        raise UsageError(f"the first line of `{name}` names no columns: {error}") from None
    if header is None:
        raise UsageError(f"`{name}` is empty: the first line of a CSV file names its columns")
    layout = Layout.of([_readable(column.strip()) for column in header], f"`{name}`")
    rows = RowReader(layout, types, name, convert_text)
    row = rows_before
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


def _tables(
    each: Input, types: TypeSystem, name: str, rows_before: int, told: _Told | None
) -> Iterator[Event | Rejected]:
    # pyarrow takes longer to load than the rest of Ensue, and most runs do not need it.
    from ensue.events.parquet import read_arrow, read_parquet

    file = Path(each.path) if each.is_file else each.open()
    progress = None if told is None else told.share(each.size)
    read = read_parquet if each.format == "parquet" else read_arrow
    yield from read(file, name, types, progress, rows_before)

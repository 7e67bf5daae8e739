"""One record of a text file by itself: a JSON line, or a row of CSV.

In come the bytes of a record and its place; out goes an `Event`, or a `Rejected` that keeps the
record and says everything that is wrong with it. Readers of whole files in columns hand the records
here that they cannot read, so that a refusal reads the same however a file was read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence

from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import decode, event_of, read_object
from ensue.events.columns import convert_text
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.mapping import Mapping, apply_row
from ensue.events.mapping.rows import row_reader
from ensue.events.types import TypeSystem

CELL_LIMIT = 2**28
"""The longest CSV cell, in characters. It stops a quote that is never closed from taking the
whole rest of a large file into memory."""


class LineReader:
    """Reads JSON lines: CloudEvents, or plain objects by a mapping."""

    def __init__(self, types: TypeSystem, name: str, mapping: Mapping | None = None) -> None:
        self._types = types
        self._name = name
        self._mapping = None if mapping is None or mapping.is_default else mapping

    def read(self, number: int, row: int, line: bytes) -> Event | Rejected:
        """The record in a line that is not blank; `row` stands in for an id."""
        record = line.strip()
        try:
            if self._mapping is None:
                return conform(decode(record), self._types)
            members = apply_row(
                self._mapping, read_object(record), self._types, number=row, source=self._name
            )
            return conform(event_of(members), self._types)
        except EventError as error:
            return Rejected(number, line.rstrip(b"\r\n"), error.problems)


class CellReader:
    """Reads rows of CSV that share a header. Raises `UsageError` if that makes no events."""

    def __init__(
        self, header: Sequence[str], types: TypeSystem, name: str, mapping: Mapping | None = None
    ) -> None:
        self._width = len(header)
        self._rows = row_reader(header, mapping, types, name, convert_text, f"`{name}`")

    def read(self, number: int, row: int, cells: Sequence[str], raw: bytes) -> Event | Rejected:
        """The record in the cells; `row` stands in for an id."""
        try:
            return self._rows.event(row, self._checked(cells, raw))
        except EventError as error:
            return Rejected(number, raw, error.problems)

    def _checked(self, cells: Sequence[str], raw: bytes) -> list[str | None]:
        if len(cells) != self._width:
            raise EventError(
                [f"the row has {len(cells)} cells, but the first line names {self._width} columns"]
            )
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            problem = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
            raise EventError([f"the text is not UTF-8: {problem}"]) from None
        return [cell or None for cell in cells]


class CsvRecords:
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

    def header(self, name: str) -> list[str]:
        """The names of the columns. Raises `UsageError` if the first record has none."""
        try:
            header = self.next()
        except EventError as error:
            raise UsageError(f"the first line of `{name}` names no columns: {error}") from None
        if header is None:
            raise UsageError(f"`{name}` is empty: the first line of a CSV file names its columns")
        return [_readable(column.strip()) for column in header]

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


def _readable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

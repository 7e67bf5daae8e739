"""The reading of a single record of a text file: a JSON line, or a row of CSV.

In come the bytes of a record and its number; out goes an `Event`, or a `Rejected` with the record
and all of its problems. Readers of files in columns use it for records that they cannot read, so
that a refusal is the same however a file is read.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from ensue.errors import EventError, UsageError
from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.cloudevents import event_of, read_object
from ensue.events.columns import convert_text
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.last_record import LastRecord
from ensue.events.mapping import Mapping, apply_row
from ensue.events.mapping.rows import row_reader
from ensue.events.mapping.years import Years
from ensue.events.record_ids import record_id
from ensue.events.records import overlong
from ensue.events.records.usual_events import UsualEvents
from ensue.events.types import TypeSystem


class LineReader:
    """Reads JSON lines: CloudEvents, or plain objects by a mapping."""

    def __init__(
        self,
        types: TypeSystem,
        name: str,
        mapping: Mapping | None = None,
        last: LastRecord | None = None,
        bounds: Bounds = BOUNDS,
        label: str | None = None,
    ) -> None:
        """`label` is the file in ids of records without one, by default its `name`."""
        self._last = last
        self._bounds = bounds
        self._types = types
        self._name = name
        self._label = label or name
        self._mapping = None if mapping is None or mapping.is_default else mapping
        self._usual = UsualEvents(types, name, mapping, label)
        self.years = None if mapping is None else Years.of(mapping.year)

    def read(self, number: int, line: bytes) -> Event | Rejected:
        """The record of a line that is not blank."""
        if (refused := overlong.refusal(number, line, self._bounds)) is not None:
            return refused
        if self._last is not None:
            self._last.read(number, line.rstrip(b"\r\n"))
        record = line.strip()
        try:
            members = read_object(record)
            event = self._usual.event(members, number)
            if event is not None:
                return conform(event, self._types) if self._usual.has_misfit else event
            if self._mapping is None:
                return conform(event_of(members), self._types)
            members = apply_row(
                self._mapping,
                members,
                self._types,
                identity=record_id(self._label, number),
                source=self._name,
                years=self.years,
            )
            return conform(event_of(members), self._types)
        except EventError as error:
            return Rejected(number, line.rstrip(b"\r\n"), error.problems)


class CellReader:
    """Reads rows of CSV under one header. Raises `UsageError` if it makes no events."""

    def __init__(
        self,
        header: Sequence[str],
        types: TypeSystem,
        name: str,
        mapping: Mapping | None = None,
        last: LastRecord | None = None,
        bounds: Bounds = BOUNDS,
        label: str | None = None,
        nulls: Collection[str] = (),
    ) -> None:
        """`label` is the file in ids of rows without one, by default its `name`.

        `nulls` are the texts that stand for a null beside the empty cell.
        """
        self._last = last
        self._bounds = bounds
        self._width = len(header)
        self._label = label or name
        self._nulls = frozenset(("", *nulls))
        self._rows = row_reader(header, mapping, types, name, convert_text, f"`{name}`")
        self.years = self._rows.years

    def read(self, number: int, cells: Sequence[str], raw: bytes) -> Event | Rejected:
        """The record of cells."""
        if (refused := overlong.refusal(number, raw, self._bounds)) is not None:
            return refused
        if self._last is not None:
            self._last.read(number, raw)
        try:
            return self._rows.event(record_id(self._label, number), self._checked(cells, raw))
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
        return [None if cell in self._nulls else cell for cell in cells]


class CsvRecords:
    """The records of a CSV file, each with the number of its first line and its own bytes.

    A quoted cell may have line breaks, so that a record can have several lines. Bytes that are no
    UTF-8 become surrogates, so that only their record is refused. A record that is too long,
    because a quote is never closed, ends with the line with which it becomes too long.
    """

    def __init__(self, lines: Iterable[bytes], delimiter: str, bounds: Bounds = BOUNDS) -> None:
        self._bounds = bounds
        self._lines = iter(lines)
        self._taken: list[bytes] = []
        self._size = self._count = 0
        self._is_long = False
        # The limit is one of the whole process, and the default is too small for JSON in a cell.
        csv.field_size_limit(max(bounds.record_bytes + 2, csv.field_size_limit()))
        self._reader = csv.reader(_Texts(self._take), delimiter=delimiter, strict=True)
        self.number = 1

    def _take(self) -> str:
        """The next line. Raises `EventError` if the record is too long with it."""
        line = next(self._lines)
        self._taken.append(line)
        self._count += 1
        length = self._size + len(line.rstrip(b"\r\n"))
        self._size += len(line)
        self._is_long = length > self._bounds.record_bytes
        if self._is_long:
            raise EventError([overlong.problem(self._bounds)])
        return line.decode("utf-8", "surrogateescape")

    @property
    def size(self) -> int:
        """The number of bytes of the record, with its line ends."""
        return self._size

    @property
    def raw(self) -> bytes:
        """The bytes of the record; the first bytes of a record that is too long."""
        whole = b"".join(self._taken)
        return (whole[: self._bounds.kept_bytes] if self._is_long else whole).rstrip(b"\r\n")

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
            self.number = self._count + 1
            self._taken.clear()
            self._size = 0
            try:
                cells = next(self._reader)
            except StopIteration:
                return None
            except csv.Error as error:
                raise EventError([_csv_problem(str(error))]) from None
            if len(cells) > 1 or (cells and cells[0].strip()):
                return cells


class _Texts:
    """An iterator over lines that can be continued after an error."""

    def __init__(self, take: Callable[[], str]) -> None:
        self._take = take

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return self._take()


def _csv_problem(reason: str) -> str:
    if "unexpected end" in reason:
        return "a quote that opens in this record is never closed"
    if "new-line character" in reason:
        return (
            "a carriage return stands outside of quotes: lines end with a line feed, also after"
            " carriage returns; `tr '\\r' '\\n'` makes such ends"
        )
    return f"no CSV: {reason}"


def _readable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

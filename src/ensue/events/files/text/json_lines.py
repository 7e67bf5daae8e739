"""JSON lines as chunks: CloudEvents, or plain objects by a mapping.

In come blocks of lines; out go chunks with a column for every declared attribute. A block is parsed
by `pyarrow.json` (`json_columns`); one that this refuses is decoded line by line (`json_objects`).
The rules by which values make an event are those of `cloudevents` and, for plain objects, of
`mapping.rows`. A row that the columns do not represent is read singly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.cloudevents import NUMBERED, TEXT_ATTRIBUTES, VERSION
from ensue.events.columns import CONTEXT_COLUMNS, DATA_COLUMN
from ensue.events.event import RESERVED, Event, Rejected
from ensue.events.files.ahead import ahead
from ensue.events.files.attributes import DeclaredAttribute, DeclaredAttributes
from ensue.events.files.chunk import Chunk, Mask, Rows, stored_lines
from ensue.events.files.text.blocks import Blocks, in_lines, whole_lines
from ensue.events.files.text.context import fill_context
from ensue.events.files.text.found import ArrowFound, Found
from ensue.events.files.text.json_columns import ColumnParser, NotInColumnsError, ParsedColumns
from ensue.events.files.text.json_objects import ParsedObjects, objects_of
from ensue.events.files.text.lines import Lines
from ensue.events.files.text.wanted import Wanted, WantedValues
from ensue.events.mapping import Mapping
from ensue.events.mapping.instants import joined_columns
from ensue.events.mapping.years import Years
from ensue.events.records.text_record import LineReader
from ensue.events.types import TypeSystem

Parsed = ParsedColumns | ParsedObjects


class LineChunks:
    """Makes chunks of the JSON lines of one file."""

    def __init__(
        self,
        types: TypeSystem,
        name: str,
        mapping: Mapping | None = None,
        bounds: Bounds = BOUNDS,
        label: str | None = None,
    ) -> None:
        """`label` is the file in ids of records without one, by default its `name`."""
        self._bounds = bounds
        self._reader = LineReader(types, name, mapping, bounds=bounds, label=label)
        self._name = name
        self._label = label or name
        self._mapping = mapping or Mapping()
        self._declared = DeclaredAttributes(types)
        self.years = Years.of(self._mapping.year)
        self.lines_before = 0
        self._wanted = WantedValues(self._mapping, self._declared)
        self._parser = ColumnParser(self._wanted, bounds.part_bytes)
        self._has_hidden = any(each.type is None for each in self._declared.all)

    def chunks(self, file: BinaryIO, path: str) -> Iterator[Chunk]:
        # While columns are made of one block, the next is read.
        with closing(ahead(self._blocks(file, path))) as blocks:
            for block, lines in blocks:
                chunk = self.chunk(block, lines=lines)
                if len(chunk):
                    yield chunk

    def _blocks(self, file: BinaryIO, path: str) -> Iterator[tuple[bytes, Lines]]:
        most = self._bounds.records_at_once(len(self._wanted.all))
        for block in whole_lines(Blocks(file, path, self._bounds), self._bounds):
            yield from in_lines(block, most)

    def chunk(
        self,
        block: bytes,
        numbers: Rows | None = None,
        near: Rows | None = None,
        lines: Lines | None = None,
    ) -> Chunk:
        """The chunk of a block, and its lines if they are known.

        `numbers` are those of the lines in the file, by default the next. `near` are the times of
        lines that are read again.
        """
        lines = Lines.of(block) if lines is None else lines
        if numbers is None:
            numbers = lines.numbers + self.lines_before
        self.lines_before += lines.total
        source = _LineSource(block, lines.begins, lines.ends, numbers, self._reader)
        parsed = self._parser.parse(block, lines)
        if parsed is not None:
            before = None if self.years is None else self.years.now
            try:
                return self._chunk(parsed, source, near)
            except NotInColumnsError:
                self._parser.refuse()
                if self.years is not None and before is not None:
                    self.years.go_on(*before)
        return self._chunk(ParsedObjects(objects_of(block, lines), self._wanted), source, near)

    def _chunk(self, parsed: Parsed, source: _LineSource, near: Rows | None) -> Chunk:
        """Raises `NotInColumnsError` if columns do not tell what the lines say."""
        is_plain = self._mapping.is_plain
        doubtful = parsed.is_refused()
        doubtful |= source.ends - source.begins > self._bounds.record_bytes
        if is_plain:
            columns = self._plain_context(parsed, source.line_numbers, doubtful, near)
        else:
            columns = self._cloud_event(parsed, doubtful)
        doubtful |= np.asarray(columns["type"].is_null())
        codes = self._declared.codes(columns["type"])
        for each, wanted in self._wanted.attributes:
            self._add_attribute(each, wanted, parsed, codes, columns, doubtful)
        rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        has_members, has_data, is_clashing = (True, True, False)
        if not is_plain:
            has_members, has_data, is_clashing = parsed.has_others()
        times = columns["time"].cast(pa.int64())

        def singly(asked: Rows) -> list[Event | Rejected]:
            return source.read(asked, times)

        return Chunk(
            rows,
            doubtful,
            singly,
            source.taken,
            source.original,
            has_extensions=has_members and not is_plain,
            has_other_data=self._has_hidden or has_data,
            is_clashing=is_clashing or self._is_split(parsed),
            held_bytes=len(source.block) + rows.nbytes,
            names=parsed.names(),
        )

    def _is_split(self, parsed: Parsed) -> bool:
        """Whether a name is an attribute of CloudEvents in some rows, and of the data in others."""
        if not self._mapping.is_plain:
            return False
        own = TEXT_ATTRIBUTES - self._mapping.columns.keys()
        asked = [wanted for name in own if (wanted := self._wanted.context.get(name)) is not None]
        return any(parsed.found(each).is_nested.any() for each in asked)

    # --- columns ----------------------------------------------------------------------------------

    def _cloud_event(self, parsed: Parsed, doubtful: Mask) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for name, wanted in self._wanted.context.items():
            assert wanted is not None
            found = parsed.found(wanted)
            if name == "time":
                time = found.times(None, self._mapping.zone)
                columns[name] = time.column
                doubtful |= time.unread | ~found.present
                continue
            is_needed = name in ("id", "source", "type")
            if not is_needed and not found.present.any():
                continue
            column, unread = found.identities() if name in NUMBERED else found.texts()
            doubtful |= unread
            if is_needed:
                doubtful |= np.asarray(pc.fill_null(pc.equal(pc.binary_length(column), 0), True))
            if name == "specversion":
                doubtful |= found.present & ~_equals(column, VERSION)
            else:
                columns[name] = column
        data = parsed.found(self._wanted.data)
        doubtful |= data.present & ~data.is_object
        assert self._wanted.encoded is not None
        doubtful |= parsed.found(self._wanted.encoded).present
        return columns

    def _plain_context(
        self, parsed: Parsed, numbers: Rows, doubtful: Mask, near: Rows | None
    ) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for name, wanted in self._wanted.context.items():
            if wanted is None:
                continue
            found = self._found(parsed, wanted, doubtful)
            is_mapped = name in self._mapping.columns
            if name == "time":
                time = found.times(wanted.unit, self._mapping.zone, self.years, near)
                columns[name] = time.column
                doubtful |= time.unread | ~found.present
                continue
            column, unread = found.identities() if name in NUMBERED else found.texts()
            # An object that is not mapped stays in the data.
            doubtful |= unread if is_mapped else unread & ~found.is_nested
            if name == "specversion":
                doubtful |= found.present & ~found.is_nested & ~_equals(column, VERSION)
            elif name == "type" or column.null_count < len(column):
                columns[name] = column
        if self._mapping.type is not None:
            columns["type"] = pa.repeat(pa.scalar(self._mapping.type), parsed.count)
        fill_context(columns, self._label, numbers, self._name)
        if any(wanted.is_split for _, wanted in self._wanted.attributes):
            data = parsed.found(self._wanted.data)
            doubtful |= data.is_object
        return columns

    def _found(self, parsed: Parsed, wanted: Wanted, doubtful: Mask) -> Found:
        """The values of a name, joined if they come from several."""
        if not wanted.others:
            return parsed.found(wanted)
        columns = []
        for each in (wanted, *wanted.others):
            column, unread = parsed.found(each).identities()
            doubtful |= unread
            columns.append(column)
        return ArrowFound(joined_columns(columns))

    def _add_attribute(
        self,
        each: DeclaredAttribute,
        wanted: Wanted,
        parsed: Parsed,
        codes: Rows,
        columns: dict[str, pa.Array],
        doubtful: Mask,
    ) -> None:
        declared = each.by[codes]
        found = self._found(parsed, wanted, doubtful)
        if not self._mapping.is_plain:
            absent = found.absent
            if absent is None:
                if (declared & ~found.present).any():
                    raise NotInColumnsError
            else:
                doubtful |= declared & absent
        is_known = codes >= 0
        if each.is_apart:
            doubtful |= found.present & is_known
            if each.type is not None:
                columns[each.name] = pa.nulls(parsed.count, each.field.type)
            return
        assert each.type is not None
        if wanted.unit is None:
            column, unread = found.typed(each.type, self._mapping.zone)
        else:
            column, unread = found.times(wanted.unit, self._mapping.zone)
        # A number with a unit is read in events of any type.
        doubtful |= unread & is_known if wanted.unit is None else unread
        if wanted.unit is not None or not found.keeps(each.type):
            # Where the type does not declare it, an event has the value as it was given. No rule
            # reads events of an undeclared type.
            doubtful |= found.present & ~declared & is_known
        columns[each.name] = column


def _equals(column: pa.Array, text: str) -> Mask:
    found: Mask = np.asarray(pc.fill_null(pc.equal(column, text), False))
    return found


@dataclass(frozen=True)
class _LineSource:
    """Reads single lines of a block."""

    block: bytes
    begins: Rows
    ends: Rows
    line_numbers: Rows
    reader: LineReader

    def read(self, rows: Rows, times: pa.Array) -> list[Event | Rejected]:
        """Single records; `times` are those of all rows, for times without a year."""
        years = self.reader.years
        found = []
        for row, number, begin, end in zip(
            rows.tolist(),
            self.line_numbers[rows].tolist(),
            self.begins[rows].tolist(),
            self.ends[rows].tolist(),
            strict=True,
        ):
            if years is not None:
                years.near = times[row].as_py()
            found.append(self.reader.read(number, self.block[begin:end]))
        return found

    def taken(self, rows: Rows) -> pa.RecordBatch:
        # Each with its line break, so that records make a file again.
        raws = [raw + b"\n" for raw in self._raws(rows)]
        return stored_lines(raws, self.line_numbers[rows])

    def original(self, rows: Rows) -> list[Rejected]:
        return [
            Rejected(number, raw.rstrip(b"\r\n"), ())
            for number, raw in zip(self.line_numbers[rows].tolist(), self._raws(rows), strict=True)
        ]

    def _raws(self, rows: Rows) -> list[bytes]:
        ends = self.ends[rows].tolist()
        return [
            self.block[begin:end]
            for begin, end in zip(self.begins[rows].tolist(), ends, strict=True)
        ]


assert not RESERVED - CONTEXT_COLUMNS - {DATA_COLUMN, "data_base64"}

"""CSV as chunks.

In come blocks of records; out go chunks with a column for each column of the file: of the declared
type for a declared attribute, and else of text. `csv_cells` cuts and parses the records;
`events.columns` and a mapping define their meaning.

The module is long because a record may continue in the next block: header, scan and chunk share the
rest of a block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.errors import EventError
from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.cloudevents import VERSION
from ensue.events.columns import CONTEXT_COLUMNS, DATA_COLUMN
from ensue.events.event import Event, Rejected
from ensue.events.files.ahead import ahead
from ensue.events.files.attributes import DeclaredAttribute, DeclaredAttributes
from ensue.events.files.chunk import Chunk, Mask, Rows, stored_lines
from ensue.events.files.text.blocks import Blocks
from ensue.events.files.text.context import fill_context
from ensue.events.files.text.csv_cells import Dialect, LinesOf, Records, records_of
from ensue.events.files.text.found import TextFound
from ensue.events.mapping import Mapping
from ensue.events.mapping.instants import joined_columns
from ensue.events.mapping.years import Years
from ensue.events.records import overlong
from ensue.events.records.text_record import CellReader, CsvRecords
from ensue.events.types import TypeSystem, ValueType

_STAND_IN = b"x\n"
_ENDING = 2


class CellChunks:
    """Makes chunks of the records of one CSV file."""

    def __init__(
        self,
        types: TypeSystem,
        name: str,
        delimiter: str = ",",
        mapping: Mapping | None = None,
        header: Sequence[str] | None = None,
        bounds: Bounds = BOUNDS,
        label: str | None = None,
        nulls: Collection[str] = (),
    ) -> None:
        """`header` has the names of the columns, if the first record does not.

        `label` is the file in ids of records without one, by default its `name`, and `nulls` are
        the texts that stand for a null beside the empty cell.
        """
        self._bounds = bounds
        self._label = label or name
        self._nulls = nulls
        self._types = types
        self._name = name
        self._delimiter = delimiter
        self._mapping = mapping or Mapping()
        self._declared = DeclaredAttributes(types)
        self.years = Years.of(self._mapping.year)
        self.lines_before = 0
        self._given_header = header
        self._header: list[str] = []
        self._reader: CellReader | None = None

    def chunks(self, file: BinaryIO, path: str) -> Iterator[Chunk]:
        blocks = Blocks(file, path, self._bounds)
        first = self._after_header(blocks)
        # While columns are made of one block, the next is scanned.
        with closing(ahead(self._scanned(first, blocks))) as scanned:
            for each in scanned:
                chunk = (
                    self._chunk_of(each) if isinstance(each, _ScannedRows) else self._refused(each)
                )
                if len(chunk):
                    yield chunk

    def _scanned(self, block: bytes, blocks: Blocks) -> Iterator[_ScannedRows | _TooLong]:
        most = self._bounds.records_at_once(len(self._header))
        while True:
            found = self._scan(block, blocks.is_last, most)
            used, is_all = found.records.used, found.records.is_all
            if not used and len(block) > self._bounds.record_bytes + _ENDING:
                cut, block = _cut(block, blocks, self._bounds)
                yield cut
                continue
            yield found
            if is_all and blocks.is_last:
                return
            block = block[used:]
            if is_all:
                blocks.keep(block)
                block = blocks.next()

    def _refused(self, cut: _TooLong) -> Chunk:
        """A chunk of one record that is too long."""
        record = overlong.refused(self.lines_before + 1, cut.begin, self._bounds)
        after = self.lines_before + cut.lines
        chunk = self._chunk_of(self._scan(_STAND_IN, True, 1))
        self.lines_before = after
        chunk.doubtful[:] = True
        return replace(chunk, singly=lambda _: [record])

    def use_header(self, header: list[str]) -> None:
        """Read records under these names. Raises `UsageError` if they make no events."""
        self._header = header
        self._reader = CellReader(
            header,
            self._types,
            self._name,
            self._mapping,
            bounds=self._bounds,
            label=self._label,
            nulls=self._nulls,
        )

    def _after_header(self, blocks: Blocks) -> bytes:
        """Read the header; the rest of its block is returned."""
        block = blocks.next()
        if self._given_header is not None:
            self.use_header(list(self._given_header))
            return block
        while True:
            records = CsvRecords(lines := LinesOf(block), self._delimiter, self._bounds)
            try:
                header: list[str] | None = records.next()
            except EventError:
                header = None
            # A header that fills its block may continue in the next.
            if header is not None and lines.used < len(block):
                break
            if blocks.is_last or len(block) > self._bounds.record_bytes:
                break
            blocks.keep(block)
            block = blocks.next()
        records = CsvRecords(lines := LinesOf(block), self._delimiter, self._bounds)
        self.use_header(records.header(self._name))
        self.lines_before = lines.count
        return block[lines.used :]

    def chunk(
        self,
        block: bytes,
        is_last: bool,
        numbers: Rows | None = None,
        near: Rows | None = None,
    ) -> tuple[Chunk, int]:
        """The complete records of a block, and the number of their bytes.

        `numbers` are the lines of the records in the file, by default the next. `near` are the
        times of records that are read again.
        """
        scanned = self._scan(block, is_last, None)
        return self._chunk_of(scanned, numbers, near), scanned.records.used

    def _scan(self, block: bytes, is_last: bool, most: int | None) -> _ScannedRows:
        """The first records of a block, `most` of them, up to one that is too long."""
        dialect = Dialect(self._delimiter, len(self._header), self._bounds)
        records = records_of(block, dialect, is_last, most)
        for row in np.flatnonzero(
            records.ends - records.begins > self._bounds.record_bytes
        ).tolist():
            begin, end = int(records.begins[row]), int(records.ends[row])
            if overlong.refusal(0, block[begin:end], self._bounds) is None:
                continue
            # The long record is cut later, as the first record of the rest.
            records = records.first(row)
            break
        return _ScannedRows(block, records)

    def _chunk_of(
        self,
        scanned: _ScannedRows,
        numbers: Rows | None = None,
        near: Rows | None = None,
    ) -> Chunk:
        """The chunk of scanned records."""
        assert self._reader is not None
        records = scanned.records
        if numbers is None:
            numbers = records.numbers + self.lines_before
        source = _RecordSource(
            scanned.block,
            records.begins,
            records.ends,
            numbers,
            self._delimiter,
            self._reader,
            self._bounds,
        )
        self.lines_before += records.lines
        return self._chunk(records.cells, source, records.flagged.copy(), near)

    # --- columns ----------------------------------------------------------------------------------

    def _chunk(
        self,
        cells: Sequence[pa.Array],
        source: _RecordSource,
        doubtful: Mask,
        near: Rows | None,
    ) -> Chunk:
        mapping = self._mapping
        places = {name: TextFound(cells[at], self._nulls) for at, name in enumerate(self._header)}
        moved = mapping.moved(self._header)
        found = {
            name: each
            for name, each in places.items()
            if name not in moved and name not in mapping.columns
        }
        for name, origin in mapping.columns.items():
            first, *others = [places[path] for path in origin.sources(self._header)]
            texts = [each.texts().column for each in (first, *others)]
            found[name] = TextFound(joined_columns(texts)) if others else first
        count = len(source.begins)
        columns: dict[str, pa.Array] = {}
        if mapping.type is not None:
            found.pop("type", None)
            columns["type"] = pa.repeat(pa.scalar(mapping.type), count)
        time = found.pop("time").times(mapping.unit("time"), mapping.zone, self.years, near)
        columns["time"] = time.column
        doubtful |= time.unread | time.column.is_null().to_numpy(zero_copy_only=False)
        if (version := found.pop("specversion", None)) is not None:
            fits = pc.fill_null(pc.equal(version.texts().column, VERSION), True)
            doubtful |= ~np.asarray(fits)
        if DATA_COLUMN in found:
            # The whole data as JSON text.
            doubtful |= found.pop(DATA_COLUMN).present
        for name in [each for each in found if each in CONTEXT_COLUMNS]:
            columns[name] = found.pop(name).texts().column
        fill_context(columns, self._label, source.line_numbers, self._name)
        doubtful |= np.asarray(columns["type"].is_null())
        codes = self._declared.codes(columns["type"])
        is_known = codes >= 0
        declared = {each.name: each for each in self._declared.all}
        for name, each in found.items():
            known = declared.get(name)
            unit = mapping.unit(name)
            if known is None and unit is None:
                columns[name] = each.texts().column
                continue
            if known is not None and known.is_apart:
                doubtful |= each.present & is_known
                if known.type is not None:
                    columns[name] = pa.nulls(count, known.field.type)
                continue
            if unit is not None:
                typed = each.times(unit, mapping.zone)
            else:
                assert known is not None
                typed = each.typed(_type_of(known), mapping.zone)
            doubtful |= typed.unread & is_known if unit is None else typed.unread
            if unit is None and known is not None and not each.keeps(_type_of(known)):
                # Where the type does not declare it, the cell is text. No rule reads events of an
                # undeclared type.
                doubtful |= each.present & ~known.by[codes] & is_known
            columns[name] = typed.column
        rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        has_other_data = DATA_COLUMN in places or any(
            each.type is None for each in self._declared.all
        )
        times = time.column.cast(pa.int64())

        def singly(asked: Rows) -> list[Event | Rejected]:
            return source.read(asked, times)

        return Chunk(
            rows,
            doubtful,
            singly,
            source.taken,
            source.original,
            has_other_data=has_other_data,
            header=self._header,
            held_bytes=len(source.block) + rows.nbytes,
            names=frozenset(self._header),
        )


def _type_of(known: DeclaredAttribute) -> ValueType:
    assert known.type is not None
    return known.type


def _cut(block: bytes, blocks: Blocks, bounds: Bounds) -> tuple[_TooLong, bytes]:
    """A record that is too long, and the bytes after the line with which it became too long.

    A reader of single records (`CsvRecords`) goes on at the same place.
    """
    begin = block[: bounds.kept_bytes]
    end = overlong.end_of_line_too_far(block, bounds)
    lines = block.count(b"\n", 0, end if end >= 0 else len(block)) + 1
    while end < 0 and not blocks.is_last:
        block = blocks.next()
        end = block.find(b"\n")
    return _TooLong(begin, lines), block[end + 1 :] if end >= 0 else b""


class _ScannedRows(NamedTuple):
    """A block and the records in it that are to be a chunk."""

    block: bytes
    records: Records


class _TooLong(NamedTuple):
    """A record that is too long: its first bytes, and the number of its lines."""

    begin: bytes
    lines: int


@dataclass(frozen=True)
class _RecordSource:
    """Reads single records of a block."""

    block: bytes
    begins: Rows
    ends: Rows
    line_numbers: Rows
    delimiter: str
    reader: CellReader
    bounds: Bounds

    def _raw(self, row: int) -> bytes:
        return self.block[int(self.begins[row]) : int(self.ends[row])]

    def cells(self, row: int) -> list[str] | None:
        """The cells of a record; None if it is blank. Raises `EventError` if it is no CSV."""
        return CsvRecords(LinesOf(self._raw(row)), self.delimiter, self.bounds).next()

    def read(self, rows: Rows, times: pa.Array) -> list[Event | Rejected]:
        """Single records; `times` are those of all rows, for times without a year."""
        years = self.reader.years
        found = []
        for row in rows.tolist():
            if years is not None:
                years.near = times[row].as_py()
            found.append(self._read(row))
        return found

    def _read(self, row: int) -> Event | Rejected:
        number, raw = int(self.line_numbers[row]), self._raw(row).rstrip(b"\r\n")
        if (refused := overlong.refusal(number, raw, self.bounds)) is not None:
            return refused
        try:
            cells = self.cells(row)
        except EventError as error:
            return Rejected(number, raw, error.problems)
        assert cells is not None
        return self.reader.read(number, cells, raw)

    def taken(self, rows: Rows) -> pa.RecordBatch:
        raws = [self._raw(row).rstrip(b"\r\n") + b"\n" for row in rows.tolist()]
        return stored_lines(raws, self.line_numbers[rows])

    def original(self, rows: Rows) -> list[Rejected]:
        return [
            Rejected(int(self.line_numbers[row]), self._raw(row).rstrip(b"\r\n"), ())
            for row in rows.tolist()
        ]

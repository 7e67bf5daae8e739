"""JSON lines as chunks: CloudEvents, or plain objects by a mapping.

In come blocks of lines; out go chunks with a column for every declared attribute.
`kernels.json_lines` finds the places of values; the rules by which values make an event are those
of `cloudevents` and, for plain objects, of `mapping.rows`. A row that these columns do not
represent is read singly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.cloudevents import TEXT_ATTRIBUTES, VERSION
from ensue.events.columns import CONTEXT_COLUMNS, DATA_COLUMN, EXTENSION_PREFIX
from ensue.events.event import RESERVED, Event, Rejected
from ensue.events.files.ahead import ahead
from ensue.events.files.attributes import DeclaredAttribute, DeclaredAttributes
from ensue.events.files.chunk import Chunk, Mask, Rows, stored_lines
from ensue.events.files.text.blocks import (
    LINE_BREAK,
    Blocks,
    in_lines,
    not_utf8,
    whole_lines,
)
from ensue.events.files.text.context import fill_context
from ensue.events.files.text.name_tree import NameTree
from ensue.events.files.text.places import ValuePlaces
from ensue.events.kernels import json_lines
from ensue.events.kernels.json_lines import new_stacks, scan_lines
from ensue.events.kernels.scanned import Records, ScannedValues
from ensue.events.kernels.words import count_of, words_of
from ensue.events.mapping import Mapping
from ensue.events.nesting import path_of
from ensue.events.records.text_record import LineReader
from ensue.events.types import TypeSystem


@dataclass(frozen=True)
class _Wanted:
    """The slots in which a value may be found, the first one that has it counts; and its unit."""

    slots: tuple[int, ...]
    unit: str | None = None


class _ScannedLines:
    """The lines of a block with the places of their values."""

    def __init__(self, block: bytes, tree: Any, data_node: int, slots: int, strict: bool) -> None:
        self.block = block
        self.data = np.frombuffer(block, np.uint8)
        count = count_of(self.data, LINE_BREAK) + 1
        values, room = ScannedValues.room(slots, count), Records.room(count)
        self.count, self.lines = scan_lines(
            self.data,
            words_of(block),
            len(block),
            tree,
            new_stacks(),
            data_node,
            strict,
            room,
            values,
        )
        self.kinds, self.begins, self.ends = values
        records = room.first(self.count)
        self.line_begins, self.line_ends = records.begins, records.ends
        self.numbers, self.notes = records.lines, records.notes
        self.flagged = records.flagged != 0

    def has(self, note: int) -> bool:
        return bool((self.notes & note).any())

    def places(self, wanted: _Wanted) -> tuple[ValuePlaces, Any]:
        """The places of a value, and its kinds."""
        first, *others = wanted.slots
        n = self.count
        kinds, begins, ends = self.kinds[first, :n], self.begins[first, :n], self.ends[first, :n]
        for slot in others:
            is_other = (kinds == json_lines.ABSENT) & (self.kinds[slot, :n] != json_lines.ABSENT)
            if is_other.any():
                kinds = np.where(is_other, self.kinds[slot, :n], kinds)
                begins = np.where(is_other, self.begins[slot, :n], begins)
                ends = np.where(is_other, self.ends[slot, :n], ends)
        present = kinds > json_lines.NULL
        return ValuePlaces(self.data, begins, ends, present, kinds), kinds


class LineChunks:
    """Makes chunks of the JSON lines of one file."""

    def __init__(
        self,
        types: TypeSystem,
        name: str,
        mapping: Mapping | None = None,
        rows_before: int = 0,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self._bounds = bounds
        self._reader = LineReader(types, name, mapping, bounds=bounds)
        self._name = name
        self._mapping = mapping or Mapping()
        self._declared = DeclaredAttributes(types)
        self._rows = rows_before
        self._lines = 0
        tree = NameTree()
        self._context = {name: self._wanted(tree, name) for name in self._context_names()}
        self._attributes = [(each, self._attribute(tree, each)) for each in self._declared.all]
        self._data = _Wanted((tree.add([DATA_COLUMN]),))
        if not self._mapping.is_plain:
            self._encoded = _Wanted((tree.add(["data_base64"]),))
            for each in self._declared.all:
                tree.forbid(each.name)
        self._has_hidden = any(each.type is None for each in self._declared.all)
        self._slots = tree.slots
        self._tree, self._data_node = tree.arrays(DATA_COLUMN)

    def chunks(self, file: BinaryIO, path: str) -> Iterator[Chunk]:
        # While columns are made of one block, the next is scanned, and the one after it is read.
        with (
            closing(ahead(self._blocks(file, path))) as blocks,
            closing(ahead(map(self._scan, blocks))) as scanned,
        ):
            for each in scanned:
                chunk = self._chunk_of(each)
                if len(chunk):
                    yield chunk

    def _blocks(self, file: BinaryIO, path: str) -> Iterator[bytes]:
        most = self._bounds.records_at_once(self._slots)
        for block in whole_lines(Blocks(file, path, self._bounds), self._bounds):
            yield from in_lines(block, most)

    def chunk(
        self, block: bytes, numbers: Rows | None = None, numbers_of_lines: Rows | None = None
    ) -> Chunk:
        """The chunk of a block.

        `numbers` are ids for lines without one, and `numbers_of_lines` those of the lines in the
        file; by default the next.
        """
        return self._chunk_of(self._scan(block), numbers, numbers_of_lines)

    def _scan(self, block: bytes) -> _ScannedLines:
        strict = not self._mapping.is_plain
        return _ScannedLines(block, self._tree, self._data_node, self._slots, strict)

    def _chunk_of(
        self,
        scanned: _ScannedLines,
        numbers: Rows | None = None,
        numbers_of_lines: Rows | None = None,
    ) -> Chunk:
        is_plain, block = self._mapping.is_plain, scanned.block
        line_numbers = scanned.numbers + self._lines
        if numbers_of_lines is not None:
            line_numbers = numbers_of_lines
        row_numbers = np.arange(self._rows + 1, self._rows + 1 + scanned.count)
        if numbers is not None:
            row_numbers = numbers
        self._lines += scanned.lines
        self._rows += scanned.count
        begins, ends = scanned.line_begins, scanned.line_ends
        beyond_ascii = (scanned.notes & json_lines.BEYOND_ASCII) != 0
        doubtful = scanned.flagged | not_utf8(block, begins, ends, beyond_ascii)
        doubtful |= ends - begins > self._bounds.record_bytes
        columns = (self._plain_context if is_plain else self._cloud_event)(
            scanned, row_numbers, doubtful
        )
        doubtful |= np.asarray(columns["type"].is_null())
        codes = self._declared.codes(columns["type"])
        for each, wanted in self._attributes:
            self._add_attribute(each, wanted, scanned, codes, columns, doubtful)
        rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        source = _LineSource(block, begins, ends, line_numbers, row_numbers, self._reader)
        return Chunk(
            rows,
            doubtful,
            source.read,
            source.taken,
            source.original,
            has_extensions=scanned.has(json_lines.OTHER_MEMBERS) and not is_plain,
            has_other_data=self._has_hidden or is_plain or scanned.has(json_lines.OTHER_DATA),
            is_clashing=scanned.has(json_lines.CLASH) or self._is_split(scanned),
            held_bytes=len(block) + rows.nbytes,
        )

    # --- what is asked for ------------------------------------------------------------------------

    def _context_names(self) -> list[str]:
        names = ["specversion", "id", "source", "type", "time", *sorted(TEXT_ATTRIBUTES)]
        mapped = [name for name in self._mapping.columns if name.startswith(EXTENSION_PREFIX)]
        return [*names, *mapped]

    def _wanted(self, tree: NameTree, name: str) -> _Wanted | None:
        """The slots of an attribute of CloudEvents; None if it has none."""
        origin = self._mapping.columns.get(name)
        if origin is not None:
            return _Wanted(tuple(tree.add(each) for each in _ways(origin.path)), origin.unit)
        if self._is_moved(name) or (name == "type" and self._mapping.type is not None):
            return None
        return _Wanted((tree.add([name]),))

    def _attribute(self, tree: NameTree, each: DeclaredAttribute) -> _Wanted | None:
        origin = self._mapping.columns.get(each.name)
        if origin is not None:
            return _Wanted(tuple(tree.add(way) for way in _ways(origin.path)), origin.unit)
        path = path_of(each.name)
        if not self._mapping.is_plain:
            return _Wanted((tree.add([DATA_COLUMN, *path]),))
        if self._is_moved(each.name) or self._is_moved(path[0]):
            return None if len(path) == 1 else _Wanted((tree.add([each.name]),))
        if len(path) == 1:
            return _Wanted((tree.add(path),))
        return _Wanted((tree.add([each.name]), tree.add(path)))

    def _is_split(self, scanned: _ScannedLines) -> bool:
        """Whether a name is an attribute of CloudEvents in some rows, and of the data in others."""
        if not self._mapping.is_plain:
            return False
        own = TEXT_ATTRIBUTES - self._mapping.columns.keys()
        asked = [wanted for name in own if (wanted := self._context.get(name)) is not None]
        return any((scanned.places(each)[1] >= json_lines.OBJECT).any() for each in asked)

    def _is_moved(self, name: str) -> bool:
        return any(origin.path == name for origin in self._mapping.columns.values())

    # --- columns ----------------------------------------------------------------------------------

    def _cloud_event(self, scanned: _ScannedLines, _: Rows, doubtful: Mask) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for name, wanted in self._context.items():
            assert wanted is not None
            places, kinds = scanned.places(wanted)
            if name == "time":
                time = places.times(self._mapping.zone)
                columns[name] = time.column
                doubtful |= time.unread | ~places.present
                continue
            needed = name in ("id", "source", "type")
            if not needed and not places.present.any():
                continue
            found = places.texts()
            doubtful |= found.unread
            if needed:
                doubtful |= (kinds != json_lines.TEXT) & (kinds != json_lines.ESCAPED)
                doubtful |= places.begins == places.ends
            if name == "specversion":
                doubtful |= places.present & ~_equals(found.column, VERSION)
            else:
                columns[name] = found.column
        data, kinds = scanned.places(self._data)
        doubtful |= data.present & (kinds != json_lines.OBJECT)
        doubtful |= scanned.places(self._encoded)[0].present
        return columns

    def _plain_context(
        self, scanned: _ScannedLines, row_numbers: Rows, doubtful: Mask
    ) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for name, wanted in self._context.items():
            if wanted is None:
                continue
            places, kinds = scanned.places(wanted)
            is_mapped = name in self._mapping.columns
            if name == "time":
                time = places.times(self._mapping.zone, wanted.unit)
                columns[name] = time.column
                doubtful |= time.unread | ~places.present
                continue
            found = places.texts()
            nested = (kinds == json_lines.OBJECT) | (kinds == json_lines.ARRAY)
            # An object that is not mapped stays in the data.
            doubtful |= found.unread if is_mapped else found.unread & ~nested
            if name == "specversion":
                doubtful |= places.present & ~nested & ~_equals(found.column, VERSION)
            elif name == "type" or found.column.null_count < len(found.column):
                columns[name] = found.column
        if self._mapping.type is not None:
            columns["type"] = pa.repeat(pa.scalar(self._mapping.type), scanned.count)
        fill_context(columns, row_numbers, self._name)
        data, kinds = scanned.places(self._data)
        doubtful |= data.present & (kinds == json_lines.OBJECT)
        return columns

    def _add_attribute(
        self,
        each: DeclaredAttribute,
        wanted: _Wanted | None,
        scanned: _ScannedLines,
        codes: Any,
        columns: dict[str, pa.Array],
        doubtful: Mask,
    ) -> None:
        declared = each.by[codes]
        if wanted is None:
            if each.type is not None:
                columns[each.name] = pa.nulls(scanned.count, each.field.type)
            return
        places, kinds = scanned.places(wanted)
        if not self._mapping.is_plain:
            doubtful |= declared & (kinds == json_lines.ABSENT)
        is_known = codes >= 0
        if each.is_apart:
            doubtful |= places.present & is_known
            if each.type is not None:
                columns[each.name] = pa.nulls(scanned.count, each.field.type)
            return
        assert each.type is not None
        if wanted.unit is None:
            found = places.typed(each.type, self._mapping.zone)
        else:
            found = places.times(None, wanted.unit)
        # In a row whose type does not declare the attribute, the value may be of any kind. No rule
        # reads events of an undeclared type.
        doubtful |= (found.unread | (places.present & ~declared)) & is_known
        columns[each.name] = found.column


def _ways(path: str) -> list[list[str]]:
    """The names that a dotted path may stand for: names with dots in them go first."""
    parts = path.split(".")
    return [[*parts[:at], ".".join(parts[at:])] for at in range(len(parts))]


def _equals(column: pa.Array, text: str) -> Mask:
    import pyarrow.compute as pc

    found: Mask = np.asarray(pc.fill_null(pc.equal(column, text), False))
    return found


@dataclass(frozen=True)
class _LineSource:
    """Reads single lines of a block."""

    block: bytes
    begins: Rows
    ends: Rows
    line_numbers: Rows
    row_numbers: Rows
    reader: LineReader

    def read(self, rows: Rows) -> list[Event | Rejected]:
        return [
            self.reader.read(number, row, self.block[begin:end])
            for number, row, begin, end in zip(
                self.line_numbers[rows].tolist(),
                self.row_numbers[rows].tolist(),
                self.begins[rows].tolist(),
                self.ends[rows].tolist(),
                strict=True,
            )
        ]

    def taken(self, rows: Rows) -> pa.RecordBatch:
        # Each with its line break, so that records make a file again.
        raws = [raw + b"\n" for raw in self._raws(rows)]
        return stored_lines(raws, self.row_numbers[rows], self.line_numbers[rows])

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

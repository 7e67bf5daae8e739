"""The records of several files in the order of their times, as chunks.

In come chunks in the order of files, each with the rows that are events and their times; out go
chunks in the order of the times. Records are stored in the form that they have in their files, and
read again when their turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ensue.events.event import Rejected
from ensue.events.files.attributes import DeclaredAttributes
from ensue.events.files.chunk import NUMBER, RAW, ROW, Chunk, Rows
from ensue.events.files.sorting import TIME, Cursor, Sorter, merged
from ensue.events.files.tables import TableChunks
from ensue.events.files.text.csv_rows import CellChunks
from ensue.events.files.text.json_lines import LineChunks
from ensue.events.mapping import Mapping
from ensue.events.sources import LINES, InputFile
from ensue.events.types import TypeSystem

FILE = "\0file"
_CONTEXT = ("id", "source", "type", "time")


class OrderedRecords:
    """Sorts the records of files. `is_outside_memory` says that they did not fit in memory."""

    def __init__(
        self, inputs: Sequence[InputFile], types: TypeSystem, mapping: Mapping | None = None
    ) -> None:
        self._inputs = inputs
        self._types = types
        self._mapping = mapping
        self._sorters: dict[Any, Sorter] = {}
        self._headers: dict[int, list[str]] = {}
        self._places = {id(each): place for place, each in enumerate(inputs)}
        self._declared = {each.name for each in DeclaredAttributes(types).all}

    @property
    def is_outside_memory(self) -> bool:
        return any(sorter.is_outside_memory for sorter in self._sorters.values())

    def add(self, file: InputFile, chunk: Chunk, kept: Rows, times: Any) -> None:
        """Add the rows of a chunk that are events."""
        records = chunk.record(kept)
        place = self._places[id(file)]
        if RAW in records.schema.names and chunk.header is not None:
            self._headers[place] = chunk.header
        given = records.append_column(FILE, pa.array(np.full(len(kept), place, np.int32)))
        key = "text" if RAW in records.schema.names else str(records.schema)
        self._sorters.setdefault(key, Sorter()).add(times, given)

    def chunks(self) -> Iterator[Chunk]:
        sorters = list(self._sorters.values())
        if len(sorters) == 1:
            for rows in sorters[0].batches():
                yield self._chunk([rows])
            return
        for slices in merged([Cursor(each.batches()) for each in sorters]):
            yield self._chunk([rows for _, rows in slices])

    def _chunk(self, batches: Sequence[pa.RecordBatch]) -> Chunk:
        """One chunk of batches whose rows have their own files."""
        parts: list[Chunk] = []
        times: list[Any] = []
        first = 0
        origins: list[Any] = []
        for rows in batches:
            files = rows.column(rows.schema.get_field_index(FILE)).to_numpy()
            for file in np.unique(files).tolist():
                places = np.flatnonzero(files == file)
                own = rows if len(places) == len(rows) else rows.take(pa.array(places))
                parts.append(self._read_again(file, own))
                times.append(own.column(own.schema.get_field_index(TIME)).to_numpy())
                # Records of several files with equal times stay in the order of the files.
                origins.append(places + first)
            first += len(rows)
        if len(parts) == 1:
            return parts[0]
        order = np.lexsort((np.concatenate(origins), np.concatenate(times)))
        return joined(parts, order, self._declared)

    def _read_again(self, place: int, rows: pa.RecordBatch) -> Chunk:
        file = self._inputs[place]
        numbers, in_file = (
            rows.column(rows.schema.get_field_index(name)).to_numpy() for name in (ROW, NUMBER)
        )
        if file.format in ("parquet", "arrow"):
            own = rows.drop_columns([FILE, TIME, ROW, NUMBER])
            where = f"`{file.name}`"
            tables = TableChunks(own.schema, self._types, file.name, where, self._mapping)
            chunk = tables.chunk(own, numbers, in_file)
        else:
            block = b"".join(rows.column(rows.schema.get_field_index(RAW)).to_pylist())
            if file.format == LINES:
                lines = LineChunks(self._types, file.name, self._mapping)
                chunk = lines.chunk(block, numbers, in_file)
            else:
                cells = CellChunks(self._types, file.name, file.delimiter, self._mapping)
                cells.use_header(self._headers[place])
                chunk, _ = cells.chunk(block, True, numbers, in_file)
        path = None if file.is_stdin else file.path

        def original(places: Rows) -> list[Rejected]:
            return [msgspec.structs.replace(each, file=path) for each in chunk.original(places)]

        return replace(chunk, original=original)


def joined(parts: Sequence[Chunk], order: Rows, declared: set[str]) -> Chunk:
    """The rows of several chunks in a given order.

    A column that is not in all chunks, and is no declared attribute, is left out: its values are
    then read from the events.
    """
    names = {name: None for part in parts for name in part.rows.schema.names}
    kept = [
        name
        for name in names
        if name in declared or all(name in part.rows.schema.names for part in parts)
    ]
    sizes = np.array([len(part) for part in parts])
    begins = np.cumsum(sizes) - sizes
    index = pa.array(order)
    columns: dict[str, pa.Array] = {}
    is_clashing = any(part.is_clashing for part in parts)
    for name in kept:
        arrays = [_column(part.rows, name) for part in parts]
        column = _concatenated(arrays, sizes)
        if column is None:
            is_clashing |= name in declared or name in _CONTEXT
            continue
        columns[name] = column.take(index)
    is_hidden = len(columns) < len(names)
    doubtful = np.concatenate([part.doubtful for part in parts])[order]

    def from_parts(ask: Callable[[Chunk, Rows], list[Any]], rows: Rows) -> list[Any]:
        places = order[rows]
        homes = np.searchsorted(begins, places, side="right") - 1
        found: list[Any] = [None] * len(rows)
        for home in np.unique(homes).tolist():
            at = np.flatnonzero(homes == home)
            read = ask(parts[home], places[at] - begins[home])
            for place, each in zip(at.tolist(), read, strict=True):
                found[place] = each
        return found

    return Chunk(
        pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)),
        doubtful,
        lambda rows: from_parts(lambda part, places: part.singly(places), rows),
        _not_again,
        lambda rows: from_parts(lambda part, places: part.original(places), rows),
        has_extensions=is_hidden or any(part.has_extensions for part in parts),
        has_other_data=is_hidden or any(part.has_other_data for part in parts),
        is_clashing=is_clashing,
        held_bytes=sum(part.held_bytes for part in parts),
    )


def _not_again(_: Rows) -> pa.RecordBatch:
    raise AssertionError("what is in order is not put aside again")


def _column(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    place = rows.schema.get_field_index(name)
    if place < 0:
        return None
    column = rows.column(place)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _concatenated(arrays: Sequence[pa.Array | None], sizes: Any) -> pa.Array | None:
    """Arrays concatenated in one type; None if no type fits all of them."""
    fields = [pa.field("c", each.type) for each in arrays if each is not None]
    try:
        type_ = (
            pa.unify_schemas([pa.schema([field]) for field in fields], promote_options="permissive")
            .field(0)
            .type
        )
        held = [
            pa.nulls(size, type_) if each is None else each.cast(type_)
            for each, size in zip(arrays, sizes.tolist(), strict=True)
        ]
        return pa.concat_arrays(held)
    except pa.ArrowException:
        return None

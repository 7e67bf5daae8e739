"""The records of several files in the order of their times, as chunks.

In come chunks in the order of files, each with the rows that are events and their times; out go
chunks in the order of the times. Chunks wait in memory as they are. If they are too many, records
are stored in the form that they have in their files, sorted on disk, and read again when their turn
comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ensue.events.files.attributes import DeclaredAttributes
from ensue.events.files.chunk import NUMBER, RAW, Chunk, Rows
from ensue.events.files.joining import Joined, part_of, with_file
from ensue.events.files.sorting import BATCH_ROWS, SORT_BYTES, TIME, Cursor, Sorter, merged
from ensue.events.files.tables import TableChunks
from ensue.events.files.text.csv_rows import CellChunks
from ensue.events.files.text.json_lines import LineChunks
from ensue.events.mapping import Mapping
from ensue.events.sources import LINES, InputFile
from ensue.events.types import TypeSystem

FILE = "\0file"


class HeldRows(NamedTuple):
    """The rows of a chunk of a file that are events: their places in it, columns and times.

    `rows` is None if no columns can hold all of the events.
    """

    file: InputFile
    chunk: Chunk
    kept: Rows
    rows: pa.RecordBatch | None
    times: Any

    def part(self) -> Chunk:
        """The rows as a chunk of their own."""
        path = None if self.file.is_stdin else self.file.path
        return with_file(part_of(self.chunk, self.rows, self.kept), path)


class OrderedRecords:
    """Sorts the records of files. `is_outside_memory` says that they did not fit in memory."""

    def __init__(
        self,
        inputs: Sequence[InputFile],
        types: TypeSystem,
        mapping: Mapping | None = None,
        most_bytes: int = SORT_BYTES,
    ) -> None:
        """Chunks of up to `most_bytes` are held in memory."""
        self._most_bytes = most_bytes
        self._held: list[HeldRows] = []
        self._bytes = 0
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

    def add(self, held: HeldRows) -> None:
        """Add the rows of a chunk that are events."""
        if self._sorters:
            self._store(held)
            return
        self._held.append(held)
        self._bytes += held.chunk.held_bytes
        if self._bytes > self._most_bytes:
            waiting, self._held = self._held, []
            for each in waiting:
                self._store(each)

    def _store(self, held: HeldRows) -> None:
        records = held.chunk.record(held.kept)
        place = self._places[id(held.file)]
        if RAW in records.schema.names and held.chunk.header is not None:
            self._headers[place] = held.chunk.header
        given = records.append_column(FILE, pa.array(np.full(len(records), place, np.int32)))
        key = "text" if RAW in records.schema.names else str(records.schema)
        self._sorters.setdefault(key, Sorter(self._most_bytes)).add(held.times, given)

    def chunks(self) -> Iterator[Chunk]:
        sorters = list(self._sorters.values())
        if not sorters:
            yield from self._from_memory()
        elif len(sorters) == 1:
            for rows in sorters[0].batches():
                yield self._chunk([rows])
        else:
            for slices in merged([Cursor(each.batches()) for each in sorters]):
                yield self._chunk([rows for _, rows in slices])

    def _from_memory(self) -> Iterator[Chunk]:
        held, self._held = self._held, []
        if not held:
            return
        times = np.concatenate([each.times for each in held])
        # A stable sort: records with equal times stay in the order of the files.
        order = np.argsort(times, kind="stable")
        parts = Joined([each.part() for each in held], self._declared)
        for begin in range(0, len(order), BATCH_ROWS):
            yield parts.chunk(order[begin : begin + BATCH_ROWS])

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
        return Joined(parts, self._declared).chunk(order)

    def _read_again(self, place: int, rows: pa.RecordBatch) -> Chunk:
        file = self._inputs[place]
        numbers, times = (
            rows.column(rows.schema.get_field_index(name)).to_numpy() for name in (NUMBER, TIME)
        )
        if file.format in ("parquet", "arrow"):
            own = rows.drop_columns([FILE, TIME, NUMBER])
            where = f"`{file.name}`"
            tables = TableChunks(
                own.schema, self._types, file.name, where, self._mapping, file.label
            )
            chunk = tables.chunk(own, numbers, times)
        else:
            block = b"".join(rows.column(rows.schema.get_field_index(RAW)).to_pylist())
            if file.format == LINES:
                lines = LineChunks(self._types, file.name, self._mapping, label=file.label)
                chunk = lines.chunk(block, numbers, times)
            else:
                cells = CellChunks(
                    self._types,
                    file.name,
                    file.delimiter,
                    self._mapping,
                    label=file.label,
                    nulls=file.nulls,
                )
                cells.use_header(self._headers[place])
                chunk, _ = cells.chunk(block, True, numbers, times)
        return with_file(chunk, None if file.is_stdin else file.path)

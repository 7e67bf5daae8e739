"""Files of events as chunks, one file after the other.

In come input files; out go their chunks, each with its file, in bounded memory. A file that cannot
be used at all (it is no Parquet, it has no column for the time) is a `UsageError`, as in
`ensue.events.records.reading`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.files.chunk import Chunk
from ensue.events.files.text.csv_rows import CellChunks
from ensue.events.files.text.json_lines import LineChunks
from ensue.events.mapping import Mapping
from ensue.events.records.progress import FileProgress, OnProgress
from ensue.events.sources import LINES, InputFile, with_content
from ensue.events.types import TypeSystem


class FileChunk(NamedTuple):
    """A chunk, and the file that it comes from."""

    file: InputFile
    chunk: Chunk


def read_chunks(
    inputs: Sequence[InputFile],
    types: TypeSystem,
    mapping: Mapping | None = None,
    progress: OnProgress | None = None,
    bounds: Bounds = BOUNDS,
) -> Iterator[FileChunk]:
    """The chunks of several files, one file after the other."""
    sizes = [each.size for each in inputs]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    before = 0
    for each in with_content(inputs):
        told = None if progress is None else FileProgress(progress, before, total)
        for chunk in _chunks(each, types, mapping, told, bounds):
            yield FileChunk(each, chunk)
        before += each.size or 0
    if progress:
        progress(before, total)


def _chunks(
    each: InputFile,
    types: TypeSystem,
    mapping: Mapping | None,
    told: FileProgress | None,
    bounds: Bounds,
) -> Iterator[Chunk]:
    if each.format in ("parquet", "arrow"):
        yield from _table_chunks(each, types, mapping, told)
        return
    with each.open(told) as file:
        if each.format == LINES:
            lines = LineChunks(types, each.name, mapping, bounds, each.label)
            yield from lines.chunks(file, each.path)
        else:
            cells = CellChunks(
                types,
                each.name,
                each.delimiter,
                mapping,
                each.header,
                bounds,
                label=each.label,
                nulls=each.nulls,
            )
            yield from cells.chunks(file, each.path)


def _table_chunks(
    each: InputFile,
    types: TypeSystem,
    mapping: Mapping | None,
    told: FileProgress | None,
) -> Iterator[Chunk]:
    # Parquet takes long to import, and text does not need it.
    from ensue.events.files.tables import TableChunks
    from ensue.events.records.parquet import open_arrow, open_parquet, parquet_batches

    progress = None if told is None else told.by_rows(each.size)
    with ExitStack() as stack:
        if each.format == "parquet":
            opened = open_parquet(
                Path(each.path) if each.is_file else each.open(), each.name, stack
            )
            schema, total = opened.file.schema_arrow, opened.file.metadata.num_rows
            batches = parquet_batches(opened, each.name)
        else:
            schema, batches = open_arrow(stack.enter_context(each.open()), each.name, stack)
            total = None
        chunks = TableChunks(schema, types, each.name, f"`{each.name}`", mapping, each.label)
        done = 0
        for rows in batches:
            yield chunks.chunk(rows, np.arange(done + 1, done + 1 + len(rows)))
            done += len(rows)
            if progress:
                progress(done, total)

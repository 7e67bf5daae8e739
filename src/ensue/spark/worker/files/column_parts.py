"""Row groups of Parquet files that a worker opens itself, as rows that fit their types.

In come parts of files; out go batches of typed columns with arrivals, as long as every row is an
event that columns show. The first row that is not ends the reading of its part, which says so: all
files are then read by Spark, which names such rows one by one (`batch.parquet_files`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ensue.engine.batch.input.batches import TableReading
from ensue.errors import EnsueError
from ensue.events.files.tables import TableChunks
from ensue.events.mapping import NO_MAPPING, Mapping, PlainMapping
from ensue.spark.worker.event_rows import ARRIVAL
from ensue.spark.worker.files.file_parts import FilePart
from ensue.spark.worker.files.line_places import PLACES_A_FILE, name_of, plain_path
from ensue.spark.worker.files.line_records import types_of

ROWS_AT_ONCE = 1 << 17

Batches = Iterator[pa.RecordBatch]


class ColumnsTask(NamedTuple):
    """Files of columns for a worker, as plain data.

    `names` are the columns that are read, `labels` what files are called in ids of rows without
    one, by their plain paths; `mapping` is that of the user.
    """

    library: bytes
    names: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    mapping: PlainMapping = NO_MAPPING


class ColumnsReader:
    """Reads parts of the files of a task."""

    def __init__(self, task: ColumnsTask) -> None:
        self._task = task
        self._types = types_of(task.library)
        self._mapping = Mapping.from_plain(task.mapping)
        self._labels = dict(task.labels)
        self._readings: dict[tuple[str, ...], TableReading] = {}

    def read(self, part: FilePart, told: dict[str, Any]) -> Batches:
        """The rows of a part; `told` has `rejected` if there is one that is no event."""
        try:
            with pq.ParquetFile(part.path, read_dictionary=self._dictionaries()) as file:
                yield from self._read(file, part, told)
        except (pa.ArrowException, OSError, EnsueError):
            # Spark may be able to read it, or says why not.
            told["rejected"] = 1

    def _dictionaries(self) -> list[str]:
        """The column of types; there are few of them."""
        origin = self._mapping.columns.get("type")
        name = "type" if origin is None else origin.path
        return [name] if name in self._task.names else []

    def _read(self, file: pq.ParquetFile, part: FilePart, told: dict[str, Any]) -> Batches:
        groups = range(part.begin, part.end)
        done = sum(file.metadata.row_group(n).num_rows for n in range(part.begin))
        name = name_of(part.file)
        label = self._labels.get(plain_path(part.file), name)
        chunks: TableChunks | None = None
        for rows in file.iter_batches(ROWS_AT_ONCE, list(groups), list(self._task.names)):
            if chunks is None:
                chunks = TableChunks(
                    rows.schema, self._types, name, f"`{name}`", self._mapping, label
                )
            places = np.arange(done, done + rows.num_rows)
            chunk = chunks.chunk(rows, places + 1)
            reading = self._reading(tuple(chunk.rows.schema.names))
            wrong = chunk.doubtful | reading.misfits(chunk.rows, reading.codes(chunk.rows))
            if wrong.any():
                told["rejected"] = int(np.count_nonzero(wrong))
                return
            arrivals = pa.array(part.rank * PLACES_A_FILE + places, pa.int64())
            yield chunk.rows.append_column(ARRIVAL, arrivals)
            done += rows.num_rows

    def _reading(self, names: tuple[str, ...]) -> TableReading:
        known = self._readings.get(names)
        if known is None:
            known = self._readings[names] = TableReading(names, self._types)
        return known

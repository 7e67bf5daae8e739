"""Rules over a stream of text files: JSON lines, CSV and logs of Zeek, as `ensue run` reads them.

In comes a stream of lines with the paths of their files (`open_lines`); out goes a stream of
outputs, late events and rejected records. Each file is read by one task from begin to end, so that
its first lines can say how it is to be read, a cell may hold line breaks, and the number of a
record stands in for an id that it lacks. A file of which nothing can be read is one rejected
record, since a stream goes on with the next.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.engine.timing import jumps
from ensue.errors import UsageError
from ensue.events.event import Event, Rejected
from ensue.events.mapping import Mapping, PlainMapping
from ensue.events.records.dead_letters import shown
from ensue.events.records.reading import read_text
from ensue.events.sources.contents import Given
from ensue.events.types import TypeSystem
from ensue.library import LibraryLike, as_library
from ensue.spark.failures import FAILURES, reason_of
from ensue.spark.outputs import output_columns
from ensue.spark.packaging import carried
from ensue.spark.plan import plan_of
from ensue.spark.streaming.checkpoint.signing import checked_key
from ensue.spark.streaming.chunks import CHUNK_DDL, StreamTask, pack_read, planned
from ensue.spark.streaming.config import SourceConfig
from ensue.spark.streaming.job import StreamOptions, bucket_outputs, rows_held
from ensue.spark.worker.files.line_places import name_of, plain_path
from ensue.spark.worker.remote_call import for_workers

WHOLE_FILES = {
    "spark.sql.files.maxPartitionBytes": str(1 << 60),
    "spark.sql.files.openCostInBytes": str(1 << 40),
}
"""With these settings Spark cuts no file of less than a terabyte into blocks."""
LINES_A_FILE = 1 << 40
_FILE_CODES = 1 << 22


def open_lines(spark: SparkSession, source: SourceConfig) -> DataFrame:
    """The lines of the files of a source, in columns `file` and `value`.

    Raises `UsageError` for a folder that cannot be read.
    """
    for name, value in WHOLE_FILES.items():
        spark.conf.set(name, value)
    # Only a line feed ends a line, and bytes that are no UTF-8 reach the worker as they are.
    reader = spark.readStream.format("text").option("recursiveFileLookup", "true")
    reader = reader.options(**source.options).option("lineSep", "\n")
    try:
        opened = reader.load(source.path)
    except FAILURES as error:
        raise UsageError(f"the source `{source.path}` cannot be read: {reason_of(error)}") from None
    return opened.select(
        sf.col("_metadata.file_path").alias("file"), sf.col("value").cast("binary")
    )


class TextTask(NamedTuple):
    """Text files of a stream for a worker, as plain data: the `StreamTask`, the options of the
    files, the mapping, and the folder of the source."""

    stream: tuple[Any, ...]
    format: str
    delimiter: str | None
    header: tuple[str, ...] | None
    nulls: tuple[str, ...]
    mapping: PlainMapping
    root: str = ""

    def label_of(self, file: str) -> str:
        """What a file is called in ids of records without one: its path below the source's."""
        path, root = plain_path(file).removeprefix("file:"), self.root
        return path.removeprefix(root) if root and path.startswith(root) else name_of(file)

    @property
    def given(self) -> Given:
        return Given(self.format, self.delimiter, self.header, self.nulls)


def correlate_lines(
    lines: DataFrame,
    library: LibraryLike,
    given: Given,
    mapping: Mapping,
    options: StreamOptions,
    folder: str | None = None,
) -> DataFrame:
    """The outputs of a library over lines of `open_lines`, as `correlate` gives them of a stream.

    Events of equal times are read by file, in an order of their own, and line. In ids of records
    without one, files are called by their paths below the `folder`.
    """
    loaded = as_library(library).plain()
    plan = plan_of(loaded.checked, options.correlations)
    stream = StreamTask(
        loaded.running_text,
        plan.selected,
        options.lateness_microseconds,
        options.buckets_for(lines),
        "events",
        has_arrival=True,
        with_event=options.whole_events,
        idle=options.idle_microseconds,
        max_jump=jumps.max_jump(loaded.checked, options.max_jump),
        key=checked_key(options.key),
        rows_held=rows_held(lines),
    )
    task = TextTask(
        tuple(stream),
        given.format or "jsonl",
        given.delimiter,
        given.header,
        given.nulls,
        mapping.plain,
        "" if folder is None else _root(folder),
    )
    packed = lines.mapInArrow(for_workers(pack_files, task, carried(lines)), CHUNK_DDL)
    return bucket_outputs(packed, stream, output_columns(plan, with_event=options.whole_events))


def _root(folder: str) -> str:
    """The beginning of the paths of all files of a folder."""
    path = plain_path(folder if "://" in folder else os.path.abspath(folder))
    return path.removeprefix("file:").rstrip("/") + "/"


# --- workers ------------------------------------------------------------------------------------


def pack_files(
    given: tuple[Any, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Lines of files, one file after the other, as chunks of events for buckets."""
    task = TextTask(*given)
    stream = StreamTask(*task.stream)
    types = planned(stream.library, stream.selected)[0].library.types
    yield from pack_read(stream, read_files(task, types, batches))


def read_files(
    task: TextTask, types: TypeSystem, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[int, Event | Rejected]]:
    """The records of files, each with its arrival."""
    lines = chain.from_iterable(map(_named_lines, batches))
    for file, of_file in groupby(lines, key=itemgetter(0)):
        first = zlib.crc32(file.encode()) % _FILE_CODES * LINES_A_FILE
        records = _records(task, types, file, (line for _, line in of_file))
        for place, record in enumerate(records):
            yield first + place, record


def _named_lines(batch: pa.RecordBatch) -> Iterator[tuple[str, bytes]]:
    files = batch.column("file").dictionary_encode()
    names = files.dictionary.to_pylist()
    lines = batch.column("value").to_pylist()
    for code, line in zip(files.indices.to_pylist(), lines, strict=True):
        yield names[code], (line or b"") + b"\n"


def _records(
    task: TextTask, types: TypeSystem, file: str, lines: Iterator[bytes]
) -> Iterator[Event | Rejected]:
    first = next(lines)
    mapping = Mapping.from_plain(task.mapping)
    every = chain([first], lines)
    name, label = name_of(file), task.label_of(file)
    try:
        for record in read_text(every, types, name, task.given, mapping, label):
            yield record if isinstance(record, Event) else _told(record, file)
    except UsageError as error:
        yield _told(Rejected(1, first.rstrip(b"\r\n"), (str(error),)), file)


def _told(record: Rejected, file: str) -> Rejected:
    """The record as JSON, with its place."""
    path = plain_path(file)
    told = {"file": path.removeprefix("file:"), **shown(record)}
    return Rejected(record.number, msgspec.json.encode(told), record.problems)

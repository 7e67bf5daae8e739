"""Folders of event files, read by executors: Parquet, JSON lines and CSV.

In come a path that Spark understands (a folder, a glob, a place in an object store) and a library;
out goes a `FileRun`: how many events there are, the records that are none, and the outputs, as
events in the order of every other engine or as partitioned Parquet. Nothing of a file goes through
the driver. Columns of Parquet stay columns, so that filters reach the files. Lines and cells are
read as everywhere else (`ensue.events`), only in workers. Events of equal times are read in the
order of the names of their files, and there of their places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote_plus

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.engine.counts import Counts
from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import decode
from ensue.events.columns import Layout, RowReader, convert_text
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.times import datetime_of
from ensue.events.types import TypeSystem
from ensue.library import Library, parse
from ensue.spark.batch.events import EncodedEventJob, ordered_outputs
from ensue.spark.batch.job import BatchOptions, Job
from ensue.spark.batch.unkeyed_counts import CountedOutputs
from ensue.spark.failures import FAILURES, reason_of
from ensue.spark.worker.event_rows import ARRIVAL, write_event

DATE = "ensue_date"
"""The partition of an output in a folder: the day of its time, in UTC."""
PARTITIONS = ("correlation", DATE)
MOST_RANKED = 1000
"""From so many files on, those of one time are read in an order that Spark chooses."""

_PLACES_A_FILE = 1 << 40
_DAY = 86_400_000_000
_SCHEME = re.compile("^([a-z0-9]+):/+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RECORD_DDL = (
    f"`{ARRIVAL}` bigint, time timestamp, payload binary, place string, raw binary,"
    " problems array<string>"
)
_RECORD_SCHEMA = pa.schema(
    [
        (ARRIVAL, pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("payload", pa.binary()),
        ("place", pa.string()),
        ("raw", pa.binary()),
        ("problems", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class FileRun:
    """A library over files. Nothing is read before it is asked for."""

    files: int
    job: Job
    in_order: Job
    records: DataFrame | None = None

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        library: Library,
        path: str,
        format_: str,
        until: int | None = None,
        correlation: str | None = None,
    ) -> FileRun:
        """Raises `UsageError` for files that cannot be opened, or columns that do not fit."""
        options = BatchOptions(
            until=None if until is None else datetime_of(until),
            correlations=None if correlation is None else [correlation],
            count_unkeyed=True,
        )
        ordered = replace(options, order=True, whole_events=True)
        if format_ == "parquet":
            read = _open(spark.read.option("recursiveFileLookup", "true").format("parquet"), path)
            events, count = _with_places(read)
            return cls(
                count,
                _without_arrival(
                    Job.of(events, library, options=replace(options, arrival=ARRIVAL))
                ),
                _without_arrival(
                    Job.of(events, library, options=replace(ordered, arrival=ARRIVAL))
                ),
            )
        rows, cells = (_lines(spark, path), ()) if format_ == "jsonl" else _cells(spark, path)
        ranked = _names(rows)
        worker = read_cells if cells else read_lines
        reading = partial(worker, (str(library), ranked, cells))
        records = rows.mapInArrow(reading, _RECORD_DDL)
        events = records.filter(sf.col("payload").isNotNull()).select(
            ARRIVAL,
            "payload",
            "time",
            *(sf.lit(None).cast("string").alias(name) for name in ("id", "type", "data")),
        )
        return cls(
            len(ranked),
            EncodedEventJob.of(events, library, options=options),
            EncodedEventJob.of(events, library, options=ordered),
            records,
        )

    def counted(self) -> tuple[int, int]:
        """The number of events, and of rejected records."""
        if self.records is not None:
            all_, events = sf.count("*"), sf.count("payload")
            found = self.records.agg(all_.alias("all"), events.alias("events")).collect()[0]
            return found["events"], found["all"] - found["events"]
        total = self.job.events.count()
        refused = self.job.rejected().count()
        return total - refused, refused

    def rejected(self) -> Iterator[tuple[str | None, Rejected]]:
        """The records that are no events, and as far as it is known where each stands."""
        if self.records is None:
            for row in self.job.rejected().toLocalIterator():
                yield None, Rejected(0, row["row"], tuple(row["problems"]))
            return
        refused = self.records.filter(sf.col("payload").isNull())
        for row in refused.select("place", "raw", "problems").toLocalIterator():
            yield row["place"], Rejected(0, bytes(row["raw"]), tuple(row["problems"]))

    def outputs(self, counts: Counts) -> Iterator[Event]:
        """The outputs in the order of every other engine, one by one."""
        yield from ordered_outputs(self.in_order, counts)

    def write(self, folder: str, counts: Counts) -> int:
        """The outputs as Parquet, in folders by correlation and by day; how many there are."""
        counted = CountedOutputs(self.job)
        made = dated(counted.rows)
        try:
            made.write.partitionBy(*PARTITIONS).parquet(folder)
        except AnalysisException as error:
            if error.getCondition() != "PATH_ALREADY_EXISTS":
                raise
            raise taken(folder) from None
        counted.add_to(counts)
        return made.sparkSession.read.schema(made.schema).parquet(folder).count()


def taken(folder: str) -> UsageError:
    return UsageError(
        f"there is something in `{folder}` already: give another folder for the outputs"
    )


def without_files(path: str) -> UsageError:
    return UsageError(f"`{path}` has no files: give a folder, or a pattern, of files of events")


def dated(rows: DataFrame) -> DataFrame:
    """The rows with the day of their times, by which folders of them are parted."""
    days = sf.floor(sf.unix_micros("time") / sf.lit(_DAY)).cast("int")
    return rows.withColumn(DATE, sf.date_from_unix_date(days))


def _open(reader: Any, path: str) -> DataFrame:
    try:
        opened: DataFrame = reader.load(path)
        if opened.inputFiles():
            return opened
    except FAILURES as error:
        text = reason_of(error)
        raise UsageError(f"`{path}` cannot be read: {text[:1].lower()}{text[1:]}") from None
    raise without_files(path)


def _file() -> Column:
    return sf.col("_metadata.file_path")


def _names(read: DataFrame) -> tuple[str, ...]:
    """The names of the files, sorted."""
    return tuple(sorted({_plain(each) for each in read.inputFiles()}))


def _plain(name: str) -> str:
    """Spark writes a name in several ways: with escapes or without, with one stroke or three."""
    return _SCHEME.sub(r"\1:/", unquote_plus(name))


# --- columns --------------------------------------------------------------------------------------


def _with_places(read: DataFrame) -> tuple[DataFrame, int]:
    """The columns, a source for rows that have none, and where each row stands."""
    files = _names(read)
    own_name = sf.element_at(sf.split(_file(), "/"), -1)
    source = own_name
    if "source" in read.columns:
        source = sf.coalesce(sf.nullif(sf.col("source"), sf.lit("")), own_name)
    kept = [sf.col(f"`{name}`") for name in read.columns if name != "source"]
    place: Column = sf.monotonically_increasing_id()
    if len(files) < MOST_RANKED:
        decoded = sf.coalesce(sf.try_url_decode(_file()), _file())
        name = sf.regexp_replace(decoded, _SCHEME.pattern, "$1:/")
        found = sf.array_position(sf.array(*map(sf.lit, files)), name)
        rank = sf.when(found > 0, found).otherwise(sf.lit(len(files) + 1))
        place = rank * sf.lit(_PLACES_A_FILE) + sf.col("_metadata.row_index")
    return read.select(*kept, source.alias("source"), place.cast("bigint").alias(ARRIVAL)), len(
        files
    )


def _without_arrival(job: Job) -> Job:
    """The job with the places of rows as their arrival only, and not as data."""
    layout = job.layout
    kept = replace(
        layout,
        renamed=tuple((name, origin) for name, origin in layout.renamed if name != ARRIVAL),
        attributes={n: each for n, each in layout.attributes.items() if n != ARRIVAL},
    )
    return replace(job, layout=kept)


# --- lines and cells ------------------------------------------------------------------------------


def _lines(spark: SparkSession, path: str) -> DataFrame:
    reader = spark.read.option("recursiveFileLookup", "true").format("text")
    # As bytes, since what is no UTF-8 must come through to be refused.
    return _open(reader, path).select(
        _file().alias("file"),
        sf.col("_metadata.file_block_start").alias("start"),
        sf.col("value").cast("binary"),
    )


def _cells(spark: SparkSession, path: str) -> tuple[DataFrame, tuple[str, ...]]:
    """The cells as text, and their names; a row of another number of cells comes as it is."""
    reader = spark.read.option("recursiveFileLookup", "true").format("csv").option("header", "true")
    reader = reader.option("escape", '"').option("multiLine", "true").option("mode", "PERMISSIVE")
    names = _open(reader, path).columns
    Layout.of(names, f"`{path}`")
    if "id" not in names:
        raise UsageError(
            f"the files of `{path}` have no column `id`, and rows that many workers read have no"
            " numbers that could stand in: add one"
        )
    schema = ", ".join(f"`{name}` string" for name in (*names, "_corrupt_record"))
    reader = reader.schema(schema).option("enforceSchema", "false")
    cells = sf.array(*(sf.col(f"`{name}`") for name in names))
    rows = _open(reader, path).select(
        _file().alias("file"),
        sf.lit(0).cast("bigint").alias("start"),
        cells.alias("cells"),
        sf.col("_corrupt_record").alias("corrupt"),
    )
    return rows, tuple(names)


@lru_cache(maxsize=16)
def _types(library: str) -> TypeSystem:
    return parse(library).checked.types


class _Places:
    """Numbers records by file, and there by their order; a part of a file begins at its byte."""

    def __init__(self, files: Sequence[str]) -> None:
        self._ranks = {name: rank for rank, name in enumerate(files)}
        self._seen: dict[tuple[str, int], int] = {}

    def next(self, file: str, start: int) -> tuple[int, str, bool]:
        """The number of the next record, where it stands, and whether it is the first of all."""
        count = self._seen.get((file, start), 0)
        self._seen[file, start] = count + 1
        rank = self._ranks.get(_plain(file), len(self._ranks))
        # A record takes at least a byte, so that no number comes twice.
        number = rank * _PLACES_A_FILE + start + count
        place = file if start else f"{file}:{count + 1}"
        return number, place, not (start or count)


Told = tuple[str, tuple[str, ...], tuple[str, ...]]
"""What a worker is told: the library, the names of the files, and those of their cells."""


def read_lines(given: Told, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """JSON lines as events in bytes, or with what is wrong with them."""
    types, places = _types(given[0]), _Places(given[1])
    for batch in batches:
        made: list[tuple[Any, ...]] = []
        for row in batch.to_pylist():
            number, place, is_first = places.next(row["file"], row["start"])
            raw: bytes = row["value"] or b""
            line = raw.removeprefix(_BYTE_ORDER_MARK) if is_first else raw
            if not line.strip():
                continue
            try:
                event = conform(decode(line.strip()), types)
            except EventError as error:
                made.append((number, None, None, place, line, error.problems))
            else:
                made.append((number, event.time, write_event(event), None, None, None))
        yield _batch(made)


def read_cells(given: Told, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of CSV as events in bytes, or with what is wrong with them."""
    types, places, names = _types(given[0]), _Places(given[1]), given[2]
    readers: dict[str, RowReader] = {}
    for batch in batches:
        made: list[tuple[Any, ...]] = []
        for row in batch.to_pylist():
            file, cells = row["file"], row["cells"]
            number, place, _ = places.next(file, row["start"])
            if file not in readers:
                name = _plain(file).rpartition("/")[2]
                readers[file] = RowReader(Layout.of(names, name), types, name, convert_text)
            try:
                if row["corrupt"] is not None:
                    raise EventError([f"the row has another number of cells than {len(names)}"])
                event = _identified(readers[file], cells)
            except EventError as error:
                raw = row["corrupt"] or ",".join(cell or "" for cell in cells)
                made.append((number, None, None, place, raw.encode(), error.problems))
            else:
                made.append((number, event.time, write_event(event), None, None, None))
        yield _batch(made)


def _identified(reader: RowReader, cells: Sequence[str | None]) -> Event:
    cells = [cell or None for cell in cells]
    if cells[reader.layout.context["id"]] is None:
        raise EventError(["`id` must be a non-empty string; it is missing"])
    return reader.event(0, cells)


def _batch(made: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*made, strict=True) if made else [()] * len(_RECORD_SCHEMA)
    arrays = []
    for field, values in zip(_RECORD_SCHEMA, columns, strict=True):
        type_ = pa.int64() if field.name == "time" else field.type
        arrays.append(pa.array(list(values), type_).cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=_RECORD_SCHEMA)

"""Files of lines: as parts for workers that open them, or as rows that Spark reads.

In come paths, a library and a `FileReading`; out goes an `Input`. Workers turn lines into typed
columns (`line_columns` says which) or, where no columns suffice, into events in bytes. Records
without ids have their places, as in one process, by counts of the lines of all earlier blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from ensue.engine.timing.jumps import UNBOUNDED
from ensue.events.columns import Layout
from ensue.events.sources.contents import Content, Given
from ensue.events.sources.inputs import inputs_of
from ensue.lang.checked import CheckedLibrary
from ensue.lang.derived.wanted import types_read
from ensue.library import Library
from ensue.spark.batch.inputs import (
    MOST_RANKED,
    FileReading,
    Input,
    ObservedCounts,
    file_column,
    open_with,
    paths_of,
    reader_of,
    shown,
)
from ensue.spark.batch.job import reach_of
from ensue.spark.batch.line_columns import (
    FIRST_LINES,
    csv_fields,
    csv_header,
    first_lines,
    json_fields,
    mapped_names,
)
from ensue.spark.batch.rejected import RejectedRecords
from ensue.spark.worker.event_rows import ARRIVAL, BEGIN, REACH
from ensue.spark.worker.files.line_chunks import (
    KINDS,
    NEEDS_EVENT,
    NEEDS_NUMBER,
    OPEN_QUOTE,
    LinesTask,
    read_lines,
)
from ensue.spark.worker.files.line_places import (
    LINE_DDL,
    file_codes,
    local_path,
    name_of,
    plain_path,
)
from ensue.spark.worker.files.line_records import PAYLOAD_DDL, refuse_ahead
from ensue.spark.worker.files.whole_files import PLACED_DDL, place_lines, read_whole_files
from ensue.spark.worker.remote_call import for_workers

FIRST_BYTES = 1 << 16
"""How much of a file is read to see its first lines."""
NO_OFFSET = "the offset is missing"
"""Part of the problem that is said of a time without an offset, where no time zone was given."""


def _text(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    # As bytes, since a line that is no UTF-8 must reach the worker as it is. Only a line feed ends
    # a line: a carriage return inside one is left to the reader of the line.
    return open_with(reader_of(spark, "text").option("lineSep", "\n"), paths).select(
        file_column().alias("file"),
        sf.col("_metadata.file_block_start").alias("start"),
        sf.col("value").cast("binary"),
    )


def _named_files(
    spark: SparkSession, paths: Sequence[str], lines: DataFrame, reading: FileReading
) -> tuple[tuple[str, ...], bool]:
    """The paths of the files as rows have them, in order, and whether codes can stand for them."""
    files = paths_of(lines, reading)
    if len(files) >= MOST_RANKED:
        return files, False
    # Nothing of the files is read, since their contents are not asked for.
    rows = (
        open_with(reader_of(spark, "binaryFile"), paths)
        .select(file_column().alias("file"))
        .collect()
    )
    named = reading.in_order([row["file"] for row in rows])
    if tuple(map(plain_path, named)) != files or file_codes(named) is None:
        return files, False
    return tuple(named), True


def open_lines(
    spark: SparkSession,
    paths: Sequence[str],
    library: Library,
    format_: str,
    reading: FileReading,
    allowed_jump: float,
) -> Input:
    lines = _text(spark, paths)
    return _LineFiles(spark, paths, lines, library, format_, reading, allowed_jump).as_rows()


class _LineFiles:
    """Files of lines: what is known of their columns, and the records that they become.

    Raises `UsageError` for columns that make no events.
    """

    def __init__(
        self,
        spark: SparkSession,
        paths: Sequence[str],
        lines: DataFrame,
        library: Library,
        format_: str,
        reading: FileReading,
        allowed_jump: float,
    ) -> None:
        self._spark = spark
        self._paths = paths
        self._lines = lines
        self._library = library
        self._format = format_
        self._reading = reading
        self._allowed_jump = allowed_jump
        mapping = reading.mapping
        self._header: tuple[str, ...] = ()
        self._cells = Content(format_)
        self._own_cells: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
        if format_ == "csv":
            given = reading.given
            self._header, self._cells = csv_header(*first_lines(lines), shown(paths), given)
            if self._cells.header is None and not self._cells.is_zeek:
                self._own_cells = self._cells_unlike_the_first(given)
            headers = [self._header, *(header for _, _, header in self._own_cells)]
            names = [mapped_names(header, mapping) for header in headers]
            for each in names:
                Layout.of(each, shown(paths))
            is_numbered = any("id" not in each for each in names)
            self.fields = csv_fields(library, tuple(dict.fromkeys(chain.from_iterable(names))))
        else:
            is_numbered = mapping.is_plain and "id" not in mapping.columns
            self.fields = json_fields(library, mapping)
        self._is_numbered = is_numbered or reading.numbered

    def _cells_unlike_the_first(self, given: Given) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """The local files with another delimiter or header than the first, with both."""
        files = self._lines.inputFiles()
        found = []
        for file in files if 1 < len(files) < MOST_RANKED else ():
            path = local_path(file)
            if path is not None:
                header, cells = csv_header(name_of(file), _head(path), shown([path]), given)
                if (cells.delimiter, header) != (self._cells.delimiter, self._header):
                    found.append((plain_path(file), cells.delimiter, header))
        return tuple(found)

    def _task(self, files: Sequence[str], before: Any, is_encoded: bool) -> LinesTask:
        mapping, cells = self._reading.mapping, self._cells
        labels = self._reading.labels(files)
        return LinesTask(
            self._library.tables(),
            tuple(files),
            self._format,
            self._header,
            cells.delimiter,
            mapping.plain,
            fields=() if is_encoded else self.fields or (),
            before=before,
            has_header=cells.header is None,
            is_zeek=cells.is_zeek,
            has_fields=cells.is_zeek and self._reading.header is None,
            keeps_raw=is_encoded and self._allowed_jump != UNBOUNDED,
            own_cells=self._own_cells,
            has_rest=cells.has_rest,
            nulls=cells.nulls,
            labels=tuple((file, label) for file, label in labels.items() if label != name_of(file)),
        )

    def as_rows(self) -> Input:
        """The files as rows that Spark reads."""
        lines, reading = self._lines, self._reading
        files, with_codes = _named_files(self._spark, self._paths, lines, reading)
        is_encoded = reading.as_events or reading.in_whole_files or self.fields is None
        before = None
        if self._is_numbered and not reading.in_whole_files:
            before = _lines_before(lines)
        task = self._task(files, before, is_encoded)
        handed = lines.withColumn("file", sf.crc32("file")) if with_codes else lines
        if reading.in_whole_files:
            records = _whole_files(handed, task)
        else:
            ddl = PAYLOAD_DDL if is_encoded else _ddl(task)
            records = handed.mapInArrow(for_workers(read_lines, task), ddl)
        held = None
        in_a_join = self._allowed_jump != UNBOUNDED
        if in_a_join:
            # How far the clock comes, where it stands at the end, counts and outputs: each is a
            # pass.
            held = records = records.persist()
            near = _near if is_encoded else _near_in_columns
            records = near(records, self._allowed_jump)
        counted_lines = None if reading.in_whole_files else lines
        rejected = RejectedRecords.of_lines(records, counted_lines, self._format)
        observed, counted = _counted(records, self._library.checked, in_a_join)
        kept = counted.filter(sf.col("problems").isNull())
        if is_encoded:
            return _encoded(kept, rejected, observed, len(files), held)
        return Input(len(files), self._columns(kept, task), rejected, observed, held=held)

    def _columns(self, records: DataFrame, task: LinesTask) -> DataFrame:
        return records.select(*(sf.col(f"`{name}`") for name, _ in task.fields), ARRIVAL)


def _ddl(task: LinesTask) -> str:
    typed = (f"`{name}` {KINDS[kind][1]}" for name, kind in task.fields)
    return ", ".join([LINE_DDL, *typed])


def _head(path: str) -> list[bytes]:
    """The first lines of a local file, which may be packed."""
    (file,) = inputs_of([path], Given("csv"))
    with file.open() as opened:
        block = opened.read(FIRST_BYTES)
    return block.removesuffix(b"\n").split(b"\n")[:FIRST_LINES]


def _near(records: DataFrame, allowed: float) -> DataFrame:
    """Events in bytes; events that lie too far ahead are rejected."""
    known = _with_reach(records, allowed)
    return known.mapInArrow(for_workers(refuse_ahead, (allowed,)), PAYLOAD_DDL)


def _near_in_columns(records: DataFrame, allowed: float) -> DataFrame:
    """Events in columns; whole events are asked for where one lies too far from the others.

    What is rejected is told as a whole, which columns are not. It is rare enough to read again.
    """
    is_far = ~sf.unix_micros("time").between(sf.col(BEGIN), sf.col(REACH))
    is_far = sf.col("problems").isNull() & is_far
    asked = sf.when(is_far, sf.array(sf.lit(NEEDS_EVENT))).otherwise(sf.col("problems"))
    return _with_reach(records, allowed).withColumn("problems", asked).drop(REACH, BEGIN)


def _with_reach(records: DataFrame, allowed: float) -> DataFrame:
    """Records with the time to which the clock comes."""
    times = records.filter(sf.col("problems").isNull()).select(sf.unix_micros("time").alias("time"))
    return records.crossJoin(sf.broadcast(reach_of(times, int(allowed), None)))


def _lines_before(lines: DataFrame) -> tuple[tuple[str, int, int], ...]:
    """How many lines of its file come before each block; a pass over the bytes of the files."""
    blocks = lines.groupBy("file", "start").agg(sf.count("*").alias("lines")).collect()
    found: list[tuple[str, int, int]] = []
    done, current = 0, None
    for row in sorted(blocks, key=lambda row: (row["file"], row["start"])):
        if row["file"] != current:
            done, current = 0, row["file"]
        found.append((row["file"], row["start"], done))
        done += row["lines"]
    return tuple(found)


def _encoded(
    kept: DataFrame,
    rejected: RejectedRecords,
    observed: ObservedCounts | DataFrame,
    files: int,
    held: DataFrame | None = None,
) -> Input:
    """Events in bytes."""
    events = kept.select(
        ARRIVAL,
        "payload",
        "time",
        *(sf.lit(None).cast("string").alias(name) for name in ("id", "type", "data")),
    )
    return Input(files, events, rejected, observed, is_encoded=True, held=held)


def _counted(
    records: DataFrame, library: CheckedLibrary, in_a_join: bool
) -> tuple[ObservedCounts | DataFrame, DataFrame]:
    """The records, counted while they are read; in one more pass where they come from a join.

    Spark does not observe the side of a join that it finds it need not read.
    """
    is_event = sf.col("problems").isNull()
    marks = {"open": OPEN_QUOTE, "needs_event": NEEDS_EVENT, "needs_number": NEEDS_NUMBER}
    counts = [
        sf.count_if(is_event).alias("events"),
        sf.count("problems").alias("rejected"),
        *(
            sf.count_if(sf.array_contains("problems", sf.lit(mark))).alias(name)
            for name, mark in marks.items()
        ),
        sf.count_if(sf.array_join("problems", " ").contains(NO_OFFSET)).alias("no_offset"),
        *unread_types(is_event, sf.col("type"), library),
    ]
    if in_a_join:
        return records.agg(*counts), records
    observed = Observation()
    counted = ObservedCounts(observed, records.agg(*counts))
    return counted, records.observe(observed, *counts)


def unread_types(is_event: Column, type_: Column, library: CheckedLibrary) -> list[Column]:
    """How many events are of types that no rule reads, and one of these types."""
    read = sorted(types_read(library))
    is_unread = is_event & ~type_.isin(*read) if read else is_event
    return [
        sf.count_if(is_unread).alias("unread"),
        sf.max(sf.when(is_unread, type_)).alias("unread_type"),
    ]


def _whole_files(lines: DataFrame, task: LinesTask) -> DataFrame:
    """The records of files, each read by one task, or all by one task that counts them."""
    placed = lines.mapInArrow(for_workers(place_lines, task), PLACED_DDL)
    in_order = placed.repartition("rank").sortWithinPartitions(ARRIVAL)
    return in_order.mapInArrow(for_workers(read_whole_files, task), PAYLOAD_DDL)

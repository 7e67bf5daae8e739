"""Files as DataFrames: their lines or columns, with the place of every record.

In come paths, a library and a `Reading`; out goes an `Input`. Parquet keeps its columns. Workers
turn lines into typed columns (`line_columns` says which) or, where no columns suffice, into events
in bytes. Records without ids are numbered, as in one process, by counts of the records of all
blocks that come before.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from ensue.engine.timing.jumps import UNBOUNDED, JumpLike, max_jump
from ensue.errors import UsageError
from ensue.events.columns import Layout
from ensue.events.mapping import Mapping as UserMapping
from ensue.events.sources.contents import Content, Given
from ensue.lang.checked import CheckedLibrary
from ensue.lang.matching.wanted import types_read
from ensue.library import Library
from ensue.spark.batch import nanoseconds
from ensue.spark.batch.job import reach_of
from ensue.spark.batch.line_columns import csv_fields, csv_header, json_fields, mapped_names
from ensue.spark.batch.rejected import RejectedRecords
from ensue.spark.failures import FAILURES, reason_of
from ensue.spark.worker.event_rows import ARRIVAL, BEGIN, REACH
from ensue.spark.worker.line_chunks import (
    KINDS,
    NEEDS_EVENT,
    NEEDS_NUMBER,
    OPEN_QUOTE,
    LinesTask,
    read_lines,
)
from ensue.spark.worker.line_places import (
    LINE_DDL,
    PLACES_A_FILE,
    SCHEME,
    file_codes,
    plain_path,
)
from ensue.spark.worker.line_records import PAYLOAD_DDL, refuse_ahead
from ensue.spark.worker.remote_call import for_workers
from ensue.spark.worker.whole_files import PLACED_DDL, place_lines, read_whole_files

MOST_RANKED = 1000
"""From this number of Parquet files on, Spark chooses the order of events of equal times."""
NO_OFFSET = "the offset is missing"
"""Part of the problem that is said of a time without an offset, where no time zone was given."""


@dataclass(frozen=True)
class Reading:
    """How files are read: what the user has said, and what they turned out to need.

    `header` has the names of the columns of CSV, where the first lines of files do not. With
    `line_breaks` cells of CSV may hold line breaks, so that each file is read by one task. With
    `as_events` lines become events in bytes, and with `numbered` the number of a record stands in
    for an id that it lacks.
    """

    mapping: UserMapping = field(default_factory=UserMapping)
    delimiter: str | None = None
    line_breaks: bool = False
    as_events: bool = False
    numbered: bool = False
    header: tuple[str, ...] | None = None


PLAIN = Reading()


@dataclass(frozen=True)
class ObservedCounts:
    """Counts that come with a query; `again` counts in a pass of its own, where they did not.

    Of a query that turns out to have no rows, Spark may leave out the step that observes.
    """

    observation: Observation
    again: DataFrame


@dataclass(frozen=True)
class Input:
    """The files of a run.

    `events` has the columns of a job. Of lines, `rejected` has the records that are no events, and
    `observed` their counts once a query over `events` has run. Of Parquet, `rows` has the columns
    as they are in the files, and the place of each row. `held` is kept by executors until the end.
    """

    files: int
    events: DataFrame
    rejected: RejectedRecords | None = None
    observed: ObservedCounts | DataFrame | None = None
    is_encoded: bool = False
    rows: DataFrame | None = None
    held: DataFrame | None = None

    @property
    def is_table(self) -> bool:
        return self.rows is not None


def open_files(
    spark: SparkSession,
    library: Library,
    paths: Sequence[str],
    format_: str,
    reading: Reading,
    jump: JumpLike = None,
) -> Input:
    """Raises `UsageError` for files that cannot be opened, or columns that do not fit."""
    if format_ == "parquet":
        return _parquet(spark, paths, reading)
    if format_ not in ("jsonl", "csv"):
        raise UsageError(
            f"Spark reads JSON lines, CSV and Parquet, and not {format_}: choose another engine"
        )
    allowed = max_jump(library.checked, jump, bounded=True)
    return _lines(spark, paths, library, format_, reading, allowed)


def _open(reader: Any, paths: Sequence[str]) -> DataFrame:
    try:
        opened: DataFrame = reader.load(list(paths))
        if opened.inputFiles():
            return opened
    except FAILURES as error:
        text = reason_of(error)
        raise UsageError(f"{_shown(paths)} cannot be read: {text[:1].lower()}{text[1:]}") from None
    raise without_files(", ".join(paths))


def without_files(path: str) -> UsageError:
    return UsageError(f"`{path}` has no files: give a folder, or a pattern, of files of events")


def _shown(paths: Sequence[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def _reader(spark: SparkSession, format_: str) -> Any:
    return spark.read.option("recursiveFileLookup", "true").format(format_)


def _file() -> Column:
    return sf.col("_metadata.file_path")


def paths_of(read: DataFrame) -> tuple[str, ...]:
    """The paths of the files in one form, sorted."""
    return tuple(sorted({plain_path(each) for each in read.inputFiles()}))


# --- Parquet ------------------------------------------------------------------------------------


def _parquet(spark: SparkSession, paths: Sequence[str], reading: Reading) -> Input:
    """The columns, the name of the file where a row has no source, and the place of each row."""
    read = _with_plain_times(spark, paths, reading)
    files = paths_of(read)
    own_name = sf.element_at(sf.split(_file(), "/"), -1)
    place: Column = sf.monotonically_increasing_id()
    if len(files) < MOST_RANKED:
        rank = _rank(files, read.inputFiles())
        place = rank * sf.lit(PLACES_A_FILE) + sf.col("_metadata.row_index")
    arrival = place.cast("bigint").alias(ARRIVAL)
    added = [arrival]
    if "id" not in (*read.columns, *reading.mapping.columns):
        added.append(_row_number(read, files).alias("id"))
    elif reading.numbered:
        ids = _column_of_ids(reading)
        if ids in read.columns:
            known = sf.col(f"`{ids}`").cast("string")
            read = read.withColumn(ids, sf.coalesce(known, _row_number(read, files)))
    source = own_name
    if "source" in read.columns and "source" not in reading.mapping.columns:
        source = sf.coalesce(sf.nullif(sf.col("source"), sf.lit("")), own_name)
    kept = [sf.col(f"`{name}`") for name in read.columns if name != "source"]
    if "source" in reading.mapping.columns:
        kept, named = [sf.col(f"`{name}`") for name in read.columns], []
    else:
        named = [source.alias("source")]
    events = read.select(*kept, *named, *added)
    return Input(len(files), events, rows=read.select("*", *added))


def _rank(files: Sequence[str], spelled: Sequence[str]) -> Column:
    """The number of the file of a row among all files.

    Each path is known by its code, in every way in which Spark spells it: to decode and compare
    texts for every row would cost more than a rule.
    """
    ranks = {path: rank for rank, path in enumerate(files)}
    by_code: dict[int, int] = {}
    for path in spelled:
        rank = ranks[plain_path(path)]
        for each in (path, *(SCHEME.sub(rf"\1:{slashes}", path) for slashes in ("/", "///"))):
            if by_code.setdefault(zlib.crc32(each.encode()), rank) != rank:
                return _rank_by_text(files)
    known = sf.array_position(sf.array(*map(sf.lit, by_code)), sf.crc32(_file()))
    # A code that is not found has the place 0.
    numbers = sf.array(*map(sf.lit, (len(files), *by_code.values())))
    return sf.get(numbers, known.cast("int"))


def _rank_by_text(files: Sequence[str]) -> Column:
    decoded = sf.coalesce(sf.try_url_decode(_file()), _file())
    path = sf.regexp_replace(decoded, SCHEME.pattern, "$1:/")
    found = sf.array_position(sf.array(*map(sf.lit, files)), path)
    return sf.when(found > 0, found - 1).otherwise(sf.lit(len(files)))


def _column_of_ids(reading: Reading) -> str:
    origin = reading.mapping.columns.get("id")
    return "id" if origin is None else origin.path


def _row_number(read: DataFrame, files: Sequence[str]) -> Column:
    """The number of a row over all files, which stands in for an id."""
    number = sf.col("_metadata.row_index") + 1
    if len(files) > 1:
        counts = read.groupBy(_file().alias("file")).count().collect()
        rows = {plain_path(row["file"]): row["count"] for row in counts}
        done, before = 0, {}
        for file in files:
            before[file] = done
            done += rows.get(file, 0)
        spelled = {row["file"]: before[plain_path(row["file"])] for row in counts}
        pairs = [sf.lit(each) for pair in spelled.items() for each in pair]
        number = number + sf.element_at(sf.create_map(*pairs), _file())
    return number.cast("string")


def _with_plain_times(spark: SparkSession, paths: Sequence[str], reading: Reading) -> DataFrame:
    """The columns of Parquet; times in nanoseconds, which Spark does not read, in microseconds."""
    reader = _reader(spark, "parquet")
    try:
        read = _open(reader, paths)
    except UsageError as error:
        if nanoseconds.SIGN not in str(error):
            raise
        spark.conf.set(nanoseconds.SETTING, "true")
        read = _open(reader, paths)
    files = paths_of(read)
    if len(files) < MOST_RANKED:
        if elsewhere := nanoseconds.types_elsewhere(files):
            spark.conf.set(nanoseconds.BY_VECTORS, "false")
            schema = nanoseconds.with_types(reader, read.schema, elsewhere)
            read = _open(_reader(spark, "parquet").schema(schema), paths)
        empty = nanoseconds.empty_columns(files, read.schema)
        read = read.withColumns({name: sf.lit(None) for name in empty}) if empty else read
    if spark.conf.get(nanoseconds.SETTING, "false") != "true":
        return read
    # What the user has given a unit is meant as a number.
    counted = {each.path for each in reading.mapping.columns.values() if each.unit is not None}
    for name, is_local in nanoseconds.nanosecond_columns(files, read.schema).items():
        if name not in counted:
            number, zone = sf.col(f"`{name}`"), reading.mapping.timezone
            read = read.withColumn(name, nanoseconds.in_microseconds(number, is_local, zone))
    return read


# --- lines --------------------------------------------------------------------------------------


def _text(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    # As bytes, since a line that is no UTF-8 must reach the worker as it is. Only a line feed ends
    # a line: a carriage return inside one is left to the reader of the line.
    return _open(_reader(spark, "text").option("lineSep", "\n"), paths).select(
        _file().alias("file"),
        sf.col("_metadata.file_block_start").alias("start"),
        sf.col("value").cast("binary"),
    )


def _named_files(
    spark: SparkSession, paths: Sequence[str], lines: DataFrame
) -> tuple[tuple[str, ...], bool]:
    """The paths of the files as rows have them, in order, and whether codes can stand for them."""
    files = paths_of(lines)
    if len(files) >= MOST_RANKED:
        return files, False
    # Nothing of the files is read, since their contents are not asked for.
    rows = _open(_reader(spark, "binaryFile"), paths).select(_file().alias("file")).collect()
    named = sorted((row["file"] for row in rows), key=plain_path)
    if tuple(map(plain_path, named)) != files or file_codes(named) is None:
        return files, False
    return tuple(named), True


def _lines(
    spark: SparkSession,
    paths: Sequence[str],
    library: Library,
    format_: str,
    reading: Reading,
    allowed_jump: float,
) -> Input:
    lines = _text(spark, paths)
    files, with_codes = _named_files(spark, paths, lines)
    mapping = reading.mapping
    header: tuple[str, ...] = ()
    cells = Content(format_)
    if format_ == "csv":
        given = Given("csv", reading.delimiter, reading.header)
        header, cells = csv_header(lines, _shown(paths), given)
        Layout.of(mapped_names(header, mapping), _shown(paths))
    columns = tuple((name, each.path, each.unit) for name, each in mapping.columns.items())
    said = columns, mapping.type, mapping.timezone
    if format_ == "csv":
        is_numbered = "id" not in mapped_names(header, mapping)
        fields = csv_fields(library, mapped_names(header, mapping))
    else:
        is_numbered = mapping.is_plain and "id" not in mapping.columns
        fields = json_fields(library, mapping)
    is_numbered = is_numbered or reading.numbered
    is_encoded = reading.as_events or reading.line_breaks or fields is None
    task = LinesTask(
        library.tables(),
        files,
        format_,
        header,
        cells.delimiter,
        *said,
        fields=() if fields is None or is_encoded else fields,
        before=_numbers_before(lines, files, cells, reading) if is_numbered else None,
        has_header=cells.header is None,
        is_zeek=cells.is_zeek,
        has_fields=cells.is_zeek and reading.header is None,
    )
    ddl = PAYLOAD_DDL
    if not is_encoded:
        typed = (f"`{name}` {KINDS[kind][1]}" for name, kind in task.fields)
        ddl = ", ".join([LINE_DDL, *typed])
    handed = lines.withColumn("file", sf.crc32("file")) if with_codes else lines
    if reading.line_breaks:
        records = _whole_files(handed, task)
    else:
        records = handed.mapInArrow(for_workers(read_lines, task), ddl)
    held = None
    if allowed_jump != UNBOUNDED:
        # How far the clock comes, where it stands at the end, counts and outputs: each is a pass.
        held = records = records.persist()
        near = _near if is_encoded else _near_in_columns
        records = near(records, library.tables(), allowed_jump)
    counted_lines = None if reading.line_breaks else lines
    rejected = RejectedRecords.of_lines(records, counted_lines, format_)
    in_a_join = allowed_jump != UNBOUNDED
    observed, counted = _counted(records, library.checked, in_a_join)
    kept = counted.filter(sf.col("problems").isNull())
    if is_encoded:
        return _encoded(kept, rejected, observed, len(files), held)
    events = kept.select(*(sf.col(f"`{name}`") for name, _ in task.fields), ARRIVAL)
    return Input(len(files), events, rejected, observed, held=held)


def _near(records: DataFrame, library: bytes, allowed: float) -> DataFrame:
    """Events in bytes, of which those that lie too far ahead are rejected."""
    known = _with_reach(records, allowed)
    return known.mapInArrow(for_workers(refuse_ahead, (library, allowed)), PAYLOAD_DDL)


def _near_in_columns(records: DataFrame, _library: bytes, allowed: float) -> DataFrame:
    """Events in columns, of which those too far from the others ask for whole events.

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


def _numbers_before(
    lines: DataFrame, files: Sequence[str], cells: Content, reading: Reading
) -> tuple[tuple[str, int, int], ...]:
    """How many records come before each block of the files; a pass over their bytes.

    One task that reads whole files counts their records by itself.
    """
    if reading.line_breaks:
        return ()
    text = sf.col("value").cast("string")
    is_record = text.rlike(r"\S")
    if cells.is_zeek:
        is_record &= ~text.startswith("#")
    blocks = lines.groupBy("file", "start").agg(sf.count_if(is_record).alias("records")).collect()
    ranks = {plain_path(name): rank for rank, name in enumerate(files)}
    counted = sorted(
        (ranks.get(plain_path(row["file"]), len(ranks)), row["start"], row["file"], row["records"])
        for row in blocks
    )
    found: list[tuple[str, int, int]] = []
    done = 0
    for _, start, file, records in counted:
        found.append((file, start, done))
        # The header of a file is no record.
        has_header = cells.format == "csv" and cells.header is None
        done += records - (1 if has_header and start == 0 else 0)
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
    """The records of files of which each is read by one task, or all by one that counts them."""
    placed = lines.mapInArrow(for_workers(place_lines, task), PLACED_DDL)
    by_file = placed.repartition("rank") if task.before is None else placed.repartition(1)
    in_order = by_file.sortWithinPartitions(ARRIVAL)
    return in_order.mapInArrow(for_workers(read_whole_files, task), PAYLOAD_DDL)

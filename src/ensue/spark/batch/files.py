"""Files of events, read by executors: Parquet, JSON lines and CSV.

In come a path that Spark understands (a file, a folder, a glob, a place in an object store) and a
library; out goes a `FileRun`: its outputs, how many events there were, and the rejected records
(`rejected`). Nothing of a file goes through the driver. Columns of Parquet stay columns, so that
filters reach the files. Lines of CSV become columns in workers (`worker.csv_rows`) where attributes
have columns; other lines become events in bytes there (`worker.line_records`). Events of equal
times are read in the order of the paths of their files, and there of their places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from ensue.engine.counts import Counts
from ensue.engine.jumps import UNBOUNDED, JumpLike, max_jump
from ensue.errors import UsageError
from ensue.events.columns import Layout
from ensue.events.times import datetime_of
from ensue.library import Library
from ensue.spark.batch.events import EncodedEventJob
from ensue.spark.batch.job import BatchOptions, Job, reach_of
from ensue.spark.batch.rejected import RejectedRecords
from ensue.spark.batch.unkeyed_counts import CountedOutputs
from ensue.spark.failures import FAILURES, reason_of
from ensue.spark.plan import plan_of
from ensue.spark.sql.conformance import conforms
from ensue.spark.sql.scan import names_read
from ensue.spark.worker.csv_rows import CsvTask, column_kinds, event_fields, read_csv_lines
from ensue.spark.worker.event_rows import ARRIVAL
from ensue.spark.worker.line_places import LINE_DDL, PLACES_A_FILE, SCHEME, first_line, plain_path
from ensue.spark.worker.line_records import (
    OPEN_QUOTE,
    PAYLOAD_DDL,
    LineTask,
    header_names,
    read_csv_cells,
    read_csv_payloads,
    read_json_lines,
    refuse_ahead,
)
from ensue.spark.worker.output_lines import LINES_DDL, join_lines
from ensue.spark.worker.remote_call import for_workers

DATE = "ensue_date"
"""The partition of an output in a folder: the day of its time, in UTC."""
PARTITIONS = ("correlation", DATE)
MOST_RANKED = 1000
"""From this number of Parquet files on, Spark chooses the order of events of equal times."""

_DAY = 86_400_000_000


@dataclass(frozen=True)
class Input:
    """The files of a run.

    `events` has the columns of a job. Of lines, `rejected` has the records that are no events, and
    `observed` their counts once a query over `events` has run. Of Parquet, `rows` has the columns
    as they are in the files, and the place of each row.
    """

    files: int
    events: DataFrame
    rejected: RejectedRecords | None = None
    observed: Observation | DataFrame | None = None
    is_encoded: bool = False
    rows: DataFrame | None = None


class FileRun:
    """A library over files. Nothing is read before `outputs` is called."""

    def __init__(self, given: Input, library: Library, options: BatchOptions) -> None:
        self.files = given.files
        self._input = given
        self._library = library
        self._options = options

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        library: Library,
        paths: Sequence[str],
        format_: str,
        until: int | None = None,
        correlation: str | None = None,
        line_breaks: bool = False,
        jump: JumpLike = None,
    ) -> Self:
        """Raises `UsageError` for files that cannot be opened, or columns that do not fit.

        With `line_breaks` cells of CSV may hold line breaks, so that each file is read by one task.
        """
        options = BatchOptions(
            until=None if until is None else datetime_of(until),
            correlations=None if correlation is None else [correlation],
            arrival=ARRIVAL,
            max_jump=jump,
            count_unkeyed=True,
        )
        if format_ == "parquet":
            return cls(_parquet(spark, paths), library, options)
        if format_ == "jsonl":
            return cls(_json_lines(spark, paths, library, jump), library, options)
        return cls(_csv(spark, paths, library, line_breaks, jump), library, options)

    def outputs(self, in_lines: bool) -> FileOutputs:
        """Run the library; with `in_lines` the outputs are JSON lines in order."""
        options = replace(self._options, order=in_lines, whole_events=in_lines)
        if self._input.is_encoded:
            options = replace(options, arrival=None)
        kind = EncodedEventJob if self._input.is_encoded else Job
        job = _without_arrival(kind.of(self._input.events, self._library, options=options))
        rejected = self._input.rejected
        if rejected is not None:
            # What lies too far ahead was rejected when lines were read.
            job = replace(job, max_jump=UNBOUNDED)
        else:
            assert self._input.rows is not None
            plain = _without_arrival(Job.of(self._input.rows, self._library, options=self._options))
            rejected = RejectedRecords.of_job(plain, _paths(self._input.rows))
        return FileOutputs(job, rejected, self._input.observed, in_lines)


class FileOutputs:
    """The outputs of a run over files, kept by executors until `close`.

    They are kept because their counts decide what becomes of them: a rejected record may stop a
    run, and a line break in a cell of CSV wants another way of reading.
    """

    def __init__(
        self,
        job: Job,
        rejected: RejectedRecords,
        observed: Observation | DataFrame | None,
        in_lines: bool,
    ) -> None:
        self.rejected = rejected
        self.counts = Counts()
        self._job = job
        counted = CountedOutputs(job)
        self._rows = counted.rows.select("order", "event") if in_lines else dated(counted.rows)
        self._rows.persist()
        self.counts.outputs = self._rows.count()
        counted.add_to(self.counts)
        found = _observed_counts(observed) if observed else _counts(job)
        self.counts.events = found["events"]
        self.rejected_count = found["rejected"]
        self.has_line_breaks = bool(found.get("open"))

    def lines(self) -> Iterator[bytes]:
        """The outputs as JSON lines in the order of the other engines, in blocks."""
        # One partition, since a sort over several would make the outputs twice, to sample them.
        rows = self._rows.repartition(1).sortWithinPartitions("order")
        for row in rows.mapInArrow(for_workers(join_lines, ()), LINES_DDL).toLocalIterator():
            yield bytes(row["lines"])

    def write(self, folder: str) -> None:
        """Write the outputs as Parquet, in folders by correlation and by day."""
        try:
            self._rows.write.partitionBy(*PARTITIONS).parquet(folder)
        except AnalysisException as error:
            if error.getCondition() != "PATH_ALREADY_EXISTS":
                raise
            raise taken(folder) from None

    def latest_time(self) -> int | None:
        """The time of the last event, in one more pass."""
        return self._job.latest_time()

    def event_types(self) -> Counter[str]:
        """How many events there are of each type, in one more pass."""
        return self._job.event_types()

    def close(self) -> None:
        self._rows.unpersist()


def taken(folder: str) -> UsageError:
    return UsageError(
        f"there is something in `{folder}` already: give another folder for the outputs"
    )


def without_files(path: str) -> UsageError:
    return UsageError(f"`{path}` has no files: give a folder, or a pattern, of files of events")


def dated(rows: DataFrame) -> DataFrame:
    """The rows with the day of their times, a partition of folders."""
    days = sf.floor(sf.unix_micros("time") / sf.lit(_DAY)).cast("int")
    return rows.withColumn(DATE, sf.date_from_unix_date(days))


def _counts(job: Job) -> Mapping[str, int]:
    """The number of events and of rejected rows, in one pass over the columns that decide it."""
    if job.python_reasons or job.is_bounded:
        total, rejected = job.events.count(), job.rejected().count()
    else:
        is_event = conforms(job.layout, job.plan.library.types)
        found = job.events.agg(sf.count("*"), sf.count_if(~is_event)).collect()[0]
        total, rejected = found[0], found[1]
    return {"events": total - rejected, "rejected": rejected}


def _observed_counts(observed: Observation | DataFrame) -> Mapping[str, int]:
    found = observed.get if isinstance(observed, Observation) else observed.collect()[0].asDict()
    return {name: found[name] or 0 for name in ("events", "rejected", "open")}


# --- opening files ------------------------------------------------------------------------------


def _open(reader: Any, paths: Sequence[str]) -> DataFrame:
    try:
        opened: DataFrame = reader.load(list(paths))
        if opened.inputFiles():
            return opened
    except FAILURES as error:
        text = reason_of(error)
        raise UsageError(f"{_shown(paths)} cannot be read: {text[:1].lower()}{text[1:]}") from None
    raise without_files(", ".join(paths))


def _shown(paths: Sequence[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def _reader(spark: SparkSession, format_: str) -> Any:
    return spark.read.option("recursiveFileLookup", "true").format(format_)


def _file() -> Column:
    return sf.col("_metadata.file_path")


def _paths(read: DataFrame) -> tuple[str, ...]:
    """The paths of the files in one form, sorted."""
    return tuple(sorted({plain_path(each) for each in read.inputFiles()}))


# --- Parquet ------------------------------------------------------------------------------------


def _parquet(spark: SparkSession, paths: Sequence[str]) -> Input:
    """The columns, the name of the file where a row has no source, and the place of each row."""
    read = _open(_reader(spark, "parquet"), paths)
    files = _paths(read)
    own_name = sf.element_at(sf.split(_file(), "/"), -1)
    source = own_name
    if "source" in read.columns:
        source = sf.coalesce(sf.nullif(sf.col("source"), sf.lit("")), own_name)
    kept = [sf.col(f"`{name}`") for name in read.columns if name != "source"]
    place: Column = sf.monotonically_increasing_id()
    if len(files) < MOST_RANKED:
        decoded = sf.coalesce(sf.try_url_decode(_file()), _file())
        name = sf.regexp_replace(decoded, SCHEME.pattern, "$1:/")
        found = sf.array_position(sf.array(*map(sf.lit, files)), name)
        rank = sf.when(found > 0, found - 1).otherwise(sf.lit(len(files)))
        place = rank * sf.lit(PLACES_A_FILE) + sf.col("_metadata.row_index")
    arrival = place.cast("bigint").alias(ARRIVAL)
    events = read.select(*kept, source.alias("source"), arrival)
    return Input(len(files), events, rows=read.select("*", arrival))


def _without_arrival(job: Job) -> Job:
    """The job with the places of rows as their arrival only, and not as data."""
    layout = job.layout
    kept = replace(
        layout,
        renamed=tuple((name, origin) for name, origin in layout.renamed if name != ARRIVAL),
        attributes={n: each for n, each in layout.attributes.items() if n != ARRIVAL},
    )
    return replace(job, layout=kept)


# --- lines --------------------------------------------------------------------------------------


def _text(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    # As bytes, since a line that is no UTF-8 must reach the worker as it is. Only a line feed ends
    # a line: a carriage return inside one is left to the reader of the line.
    return _open(_reader(spark, "text").option("lineSep", "\n"), paths).select(
        _file().alias("file"),
        sf.col("_metadata.file_block_start").alias("start"),
        sf.col("value").cast("binary"),
    )


def _json_lines(
    spark: SparkSession, paths: Sequence[str], library: Library, jump: JumpLike
) -> Input:
    lines = _text(spark, paths)
    task = LineTask(library.tables(), _paths(lines))
    records = lines.mapInArrow(for_workers(read_json_lines, task), PAYLOAD_DDL)
    records, joined = _near(records, library, jump)
    return _encoded(
        records, RejectedRecords.of_lines(records, lines, "jsonl"), len(task.files), joined
    )


def _near(records: DataFrame, library: Library, jump: JumpLike) -> tuple[DataFrame, bool]:
    """Records of which those that lie too far ahead are rejected; and whether any may be."""
    allowed = max_jump(library.checked, jump, bounded=True)
    if allowed == UNBOUNDED:
        return records, False
    times = records.filter(sf.col("problems").isNull()).select(sf.unix_micros("time").alias("time"))
    known = records.crossJoin(sf.broadcast(reach_of(times, int(allowed), None)))
    task = (library.tables(), allowed)
    return known.mapInArrow(for_workers(refuse_ahead, task), PAYLOAD_DDL), True


def _encoded(records: DataFrame, rejected: RejectedRecords, files: int, joined: bool) -> Input:
    """Events in bytes."""
    observed, counted = _counted(records, joined)
    events = counted.filter(sf.col("problems").isNull()).select(
        ARRIVAL,
        "payload",
        "time",
        *(sf.lit(None).cast("string").alias(name) for name in ("id", "type", "data")),
    )
    return Input(files, events, rejected, observed, is_encoded=True)


def _counted(
    records: DataFrame, in_a_join: bool = False
) -> tuple[Observation | DataFrame, DataFrame]:
    """The records, counted while they are read; in one more pass where they come from a join.

    Spark does not observe the side of a join that it finds it need not read.
    """
    is_open = sf.array_contains("problems", sf.lit(OPEN_QUOTE))
    counts = [
        sf.count_if(sf.col("problems").isNull()).alias("events"),
        sf.count("problems").alias("rejected"),
        sf.count_if(is_open).alias("open"),
    ]
    if in_a_join:
        return records.agg(*counts), records
    observed = Observation()
    return observed, records.observe(observed, *counts)


# --- CSV ----------------------------------------------------------------------------------------


def _csv(
    spark: SparkSession, paths: Sequence[str], library: Library, line_breaks: bool, jump: JumpLike
) -> Input:
    lines = _text(spark, paths)
    files = _paths(lines)
    header, names = csv_header(lines, _shown(paths))
    if line_breaks:
        task = LineTask(library.tables(), files, header, names)
        return _csv_with_line_breaks(spark, paths, task, library, jump)
    types = library.checked.types
    kinds = column_kinds(names, types)
    # A record that may be rejected for its time is kept as a whole until that is known.
    is_bounded = max_jump(library.checked, jump, bounded=True) != UNBOUNDED
    if kinds is None or is_bounded or not _has_columns(library, names):
        task = LineTask(library.tables(), files, header, names)
        records = lines.mapInArrow(for_workers(read_csv_payloads, task), PAYLOAD_DDL)
        records, joined = _near(records, library, jump)
        return _encoded(
            records, RejectedRecords.of_lines(records, lines, "csv"), len(files), joined
        )
    typed = CsvTask(library.tables(), files, header, names, kinds)
    fields = event_fields(typed)
    ddl = ", ".join([LINE_DDL, *(f"`{name}` {spark_type}" for name, _, spark_type in fields)])
    records = lines.mapInArrow(for_workers(read_csv_lines, typed), ddl)
    observed, counted = _counted(records)
    kept = [sf.col(f"`{name}`") for name, _, _ in fields]
    events = counted.filter(sf.col("problems").isNull()).select(*kept, ARRIVAL)
    rejected = RejectedRecords.of_lines(records, lines, "csv")
    return Input(len(files), events, rejected, observed)


def csv_header(lines: DataFrame, where: str) -> tuple[bytes, tuple[str, ...]]:
    """The first line of a file of CSV, and its names. Raises `UsageError` if it cannot be used."""
    first = lines.filter(sf.col("start") == 0).select("value").head()
    if first is None or not first_line(bytes(first["value"])).strip():
        raise UsageError(f"{where} is empty: the first line of a CSV file names its columns")
    header = first_line(bytes(first["value"]))
    names = header_names(header)
    Layout.of(names, where)
    if "id" not in names:
        raise UsageError(
            f"the files of {where} have no column `id`, and rows that many workers read have no"
            " numbers that could stand in: add one"
        )
    return header, names


def _has_columns(library: Library, names: tuple[str, ...]) -> bool:
    """Whether columns hold all that rules read, as the types of their ports declare it.

    A cell of an attribute that a type does not declare is text, which a column of numbers cannot
    hold; a `data` cell may hold anything; and an event that is sent on is sent on whole.
    """
    types = library.checked.types
    declared = {name for each in types for name in types.attributes(each.name)}
    rules = [rule for group in plan_of(library.checked).groups for rule in group.rules]
    if "data" in names or any(rule.sends_on for rule in rules):
        return False
    for rule in rules:
        for port in rule.event_ports:
            for type_name in types.subtypes(port.type):
                own = types.attributes(type_name)
                if not own.keys() <= set(names):
                    return False
                if not set(names_read(rule)) & declared <= own.keys():
                    return False
    return True


def _csv_with_line_breaks(
    spark: SparkSession, paths: Sequence[str], task: LineTask, library: Library, jump: JumpLike
) -> Input:
    """The cells as Spark parts them; a row of another number of cells comes as its text."""
    names = [f"c{number}" for number in range(len(task.names))]
    schema = ", ".join(f"`{name}` string" for name in (*names, "corrupt"))
    reader = _reader(spark, "csv").option("header", "true").option("escape", '"')
    reader = reader.option("multiLine", "true").option("columnNameOfCorruptRecord", "corrupt")
    rows = _open(reader.schema(schema), paths).select(
        _file().alias("file"),
        sf.lit(0).cast("bigint").alias("start"),
        sf.array(*(sf.col(name) for name in names)).alias("cells"),
        sf.col("corrupt").cast("binary").alias("value"),
    )
    records = rows.mapInArrow(for_workers(read_csv_cells, task), PAYLOAD_DDL)
    records, joined = _near(records, library, jump)
    return _encoded(
        records, RejectedRecords.of_lines(records, None, "csv"), len(task.files), joined
    )

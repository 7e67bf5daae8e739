"""Files of events, read by executors: Parquet, JSON lines and CSV.

In come paths that Spark understands (files, folders, globs, places in an object store), a library
and how to read (`Reading`); out goes a `FileRun`: its outputs, how many events there were, and the
rejected records (`rejected`). Nothing of a file goes through the driver. Columns of Parquet stay
columns, so that filters reach the files. Lines become columns in workers (`worker.line_chunks`)
where attributes have columns, and else events in bytes. Events of equal times are read in the order
of the paths of their files, and there of their places. Opening files is in `opening`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Self

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.engine.counts import Counts
from ensue.engine.timing.jumps import UNBOUNDED, JumpLike
from ensue.errors import UsageError
from ensue.events.times import datetime_of
from ensue.library import Library
from ensue.spark.batch.events import EncodedEventJob
from ensue.spark.batch.job import BatchOptions, Job
from ensue.spark.batch.opening import (
    PLAIN,
    Input,
    ObservedCounts,
    Reading,
    open_files,
    paths_of,
    unread_types,
)
from ensue.spark.batch.rejected import RejectedRecords
from ensue.spark.batch.unkeyed_counts import CountedOutputs
from ensue.spark.failures import FAILURES
from ensue.spark.sql.conformance import conforms
from ensue.spark.worker.event_rows import ARRIVAL
from ensue.spark.worker.output_lines import LINES_DDL, PACKED_DDL, join_lines, pack_tables
from ensue.spark.worker.packed_types import FILES_BESIDE_TYPES
from ensue.spark.worker.remote_call import for_workers

DATE = "ensue_date"
"""The partition of an output in a folder: the day of its time, in UTC."""
PARTITIONS = ("correlation", DATE)

_DAY = 86_400_000_000

OutputForm = Literal["lines", "tables", "folder"]
"""What outputs become: JSON lines, tables for one file, or a folder of Parquet files."""


class FileRun:
    """A library over files. Nothing is read before `outputs` is called."""

    def __init__(
        self,
        given: Input,
        library: Library,
        options: BatchOptions,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        self.files = given.files
        self._columns = columns or {}
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
        reading: Reading = PLAIN,
        jump: JumpLike = None,
    ) -> Self:
        """Raises `UsageError` for files that cannot be opened, or columns that do not fit."""
        options = BatchOptions(
            until=None if until is None else datetime_of(until),
            correlations=None if correlation is None else [correlation],
            arrival=ARRIVAL,
            max_jump=jump,
            count_unkeyed=True,
        )
        given = open_files(spark, library, paths, format_, reading, jump)
        options = replace(options, packs_types=given.files < FILES_BESIDE_TYPES)
        if given.is_table:
            # The mapping of lines has been applied where they were read.
            mapping = reading.mapping
            options = replace(options, type=mapping.type, timezone=mapping.timezone)
            return cls(given, library, options, dict(mapping.columns))
        return cls(given, library, options)

    def outputs(self, form: OutputForm) -> FileOutputs:
        """Run the library. Lines and tables are in order, a folder is in none."""
        options = replace(self._options, order=form != "folder", whole_events=form == "lines")
        if self._input.is_encoded:
            options = replace(options, arrival=None)
        kind = EncodedEventJob if self._input.is_encoded else Job
        given, columns = self._input, self._columns
        job = _without_arrival(kind.of(given.events, self._library, columns, options))
        rejected = given.rejected
        if rejected is None:
            assert given.rows is not None
            plain = Job.of(given.rows, self._library, columns, self._options)
            rejected = RejectedRecords.of_job(_without_arrival(plain), paths_of(given.rows))
        else:
            # What lies too far ahead was rejected when lines were read.
            job = replace(job, max_jump=UNBOUNDED)
        return FileOutputs(job, rejected, self._input, form)


class FileOutputs:
    """The outputs of a run over files, kept by executors until `close`.

    They are kept because their counts decide what becomes of them: a rejected record may stop a
    run, and some records want another way of reading.
    """

    def __init__(
        self,
        job: Job,
        rejected: RejectedRecords,
        given: Input,
        form: OutputForm,
    ) -> None:
        self.rejected = rejected
        self._held = given.held
        self.counts = Counts()
        self._job = job
        counted = CountedOutputs(job)
        match form:
            case "lines":
                self._rows = counted.rows.select("order", "event")
            case "tables":
                self._rows = counted.rows
            case "folder":
                self._rows = dated(counted.rows)
        self._rows.persist()
        self.counts.outputs = self._rows.count()
        counted.add_to(self.counts)
        observed = given.observed
        found = _counts(job) if observed is None else _observed_counts(observed)
        self.counts.events = found["events"] or 0
        self.rejected_count = found["rejected"] or 0
        self.without_offset = found.get("no_offset") or 0
        self.unread = (found.get("unread") or 0, found.get("unread_type"))
        self._found = found

    def another_reading(self, reading: Reading) -> Reading | None:
        """How the files have to be read instead; None if they could be read as they were."""
        if self._found.get("open"):
            return replace(reading, line_breaks=True)
        if self._found.get("needs_event"):
            return replace(reading, as_events=True)
        if self._found.get("needs_number") and not reading.numbered:
            return replace(reading, numbered=True)
        return None

    def keep_rejected(self) -> None:
        """Have executors keep the rejected records, since they are read more than once."""
        self.rejected = self.rejected.keep()

    def lines(self) -> Iterator[bytes]:
        """The outputs as JSON lines in the order of the other engines, in blocks."""
        blocks = self._in_order().mapInArrow(for_workers(join_lines, ()), LINES_DDL)
        for row in blocks.toLocalIterator():
            yield bytes(row["lines"])

    def tables(self) -> Iterator[pa.Table]:
        """The outputs in columns, in the same order, in parts."""
        packed = self._in_order().mapInArrow(for_workers(pack_tables, ()), PACKED_DDL)
        for row in packed.toLocalIterator():
            table = pa.ipc.open_stream(bytes(row["packed"])).read_all()
            yield table.drop_columns(["order"])

    def _in_order(self) -> DataFrame:
        # One partition, since a sort over several would make the outputs twice, to sample them.
        return self._rows.repartition(1).sortWithinPartitions("order")

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
        self.rejected.close()
        if self._held is not None:
            self._held.unpersist()


def taken(folder: str) -> UsageError:
    return UsageError(
        f"there is something in `{folder}` already: give another folder for the outputs"
    )


def dated(rows: DataFrame) -> DataFrame:
    """The rows with the day of their times, a partition of folders."""
    days = sf.floor(sf.unix_micros("time") / sf.lit(_DAY)).cast("int")
    return rows.withColumn(DATE, sf.date_from_unix_date(days))


def _counts(job: Job) -> Mapping[str, Any]:
    """The number of events and of rejected rows, in one pass over the columns that decide it."""
    has_no_id = job.layout.context["id"].column.isNull()
    if job.python_reasons or job.is_bounded:
        needed = sf.count_if(has_no_id).alias("needs_number")
        total, number = job.events.agg(sf.count("*"), needed).collect()[0]
        rejected = job.rejected().count()
        return {"events": total - rejected, "rejected": rejected, "needs_number": number}
    library = job.plan.library
    is_event = conforms(job.layout, library.types)
    type_ = job.layout.context["type"].column
    found = job.events.agg(
        sf.count("*").alias("total"),
        sf.count_if(~is_event).alias("rejected"),
        sf.count_if(has_no_id).alias("needs_number"),
        *unread_types(is_event, type_, library),
    ).collect()[0]
    return {**found.asDict(), "events": found["total"] - found["rejected"]}


def _observed_counts(observed: ObservedCounts | DataFrame) -> Mapping[str, Any]:
    if isinstance(observed, ObservedCounts):
        with suppress(*FAILURES):
            if known := observed.observation.get:
                return known
        observed = observed.again
    found: dict[str, Any] = observed.collect()[0].asDict()
    return found


def _without_arrival(job: Job) -> Job:
    """The job with the places of rows as their arrival only, and not as data."""
    layout = job.layout
    kept = replace(
        layout,
        renamed=tuple((name, origin) for name, origin in layout.renamed if name != ARRIVAL),
        attributes={n: each for n, each in layout.attributes.items() if n != ARRIVAL},
    )
    return replace(job, layout=kept)

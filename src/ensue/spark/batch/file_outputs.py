"""Outputs of a run over files: written in order, or as a folder, and what was counted on the way.

In comes a job over rows of files; out go lines, tables or a folder of outputs. Executors keep the
outputs until `close`, because counts decide what becomes of them: a rejected record may stop a run,
and some records want another way of reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ensue.engine.counts import Counts
from ensue.errors import UsageError
from ensue.spark.batch.inputs import FileReading, Input, ObservedCounts, folder_for_java
from ensue.spark.batch.job import Job
from ensue.spark.batch.line_files import unread_types
from ensue.spark.batch.rejected import RejectedRecords
from ensue.spark.batch.unkeyed_counts import CountedOutputs
from ensue.spark.failures import FAILURES
from ensue.spark.sql.conformance import conforms
from ensue.spark.worker.output_lines import LINES_DDL, PACKED_DDL, join_lines, pack_tables
from ensue.spark.worker.remote_call import for_workers

DATE = "ensue_date"
"""The partition of an output in a folder: the day of its time, in UTC."""
PARTITIONS = ("correlation", DATE)

_DAY = 86_400_000_000

OutputForm = Literal["lines", "tables", "folder"]
"""What outputs become: JSON lines, tables for one file, or a folder of Parquet files."""


class FileOutputs:
    """The outputs of a run over files, and counts of its records."""

    def __init__(self, job: Job, rejected: RejectedRecords, given: Input, form: OutputForm) -> None:
        self.rejected = rejected
        self._held = given.held
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
        outputs = self._rows.count()
        observed = given.observed
        self._found = _counts(job) if observed is None else _observed_counts(observed)
        self.counts = Counts()
        self.counts.events = self._found["events"] or 0
        self.counts.outputs = outputs
        counted.add_to(self.counts)
        self.rejected_count = self._found["rejected"] or 0
        self.without_offset = self._found.get("no_offset") or 0
        self.unread = (self._found.get("unread") or 0, self._found.get("unread_type"))

    def another_reading(self, reading: FileReading) -> FileReading | None:
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
            with pa.ipc.open_stream(bytes(row["packed"])) as stream:
                yield stream.read_all().drop_columns(["order"])

    def _in_order(self) -> DataFrame:
        # One partition, since a sort over several would make the outputs twice, to sample them.
        return self._rows.repartition(1).sortWithinPartitions("order")

    def write(self, folder: str) -> None:
        """Write the outputs as Parquet, in folders by correlation and by day."""
        try:
            place = folder_for_java(self._rows.sparkSession, folder)
            self._rows.write.partitionBy(*PARTITIONS).parquet(place)
        except AnalysisException as error:
            if error.getCondition() != "PATH_ALREADY_EXISTS":
                raise
            raise taken(folder) from None

    def rules_of_folder(self) -> set[str]:
        """The rules that have outputs in a folder."""
        rules = self._rows.select("correlation").distinct().collect()
        return {row["correlation"] for row in rules}

    def latest_time(self) -> int | None:
        """The time of the last event, in one more pass."""
        return self._job.latest_time()

    def event_types(self) -> Counter[str]:
        """How many events there are of each type, in one more pass."""
        return self._job.event_types()

    def close(self) -> None:
        """Have executors keep nothing any more."""
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

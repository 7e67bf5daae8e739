"""Files of events, read by executors: Parquet, JSON lines and CSV.

In come paths that Spark understands (files, folders, globs, places in an object store), a library
and how to read (`FileReading`); out goes a `FileRun`: its outputs, the number of events, and the
rejected records (`rejected`). Nothing of a file goes through the driver. Columns of Parquet stay
columns, so that filters reach the files. Lines become columns in workers, where attributes have
columns (`worker.files.line_chunks`), and else events in bytes. Events of equal times are read in
the order of their files (`FileReading.order`), and there of their places. Opening files is in
`opening`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from pyspark.sql import SparkSession

from ensue.engine.timing.jumps import UNBOUNDED, JumpLike, check_advance, max_jump
from ensue.events.times import datetime_of
from ensue.library import Library
from ensue.spark.batch.events import EncodedEventJob
from ensue.spark.batch.file_outputs import FileOutputs, OutputForm
from ensue.spark.batch.inputs import PLAIN, FileReading, Input
from ensue.spark.batch.job import BatchOptions, Job
from ensue.spark.batch.opening import open_files
from ensue.spark.batch.rejected import RejectedRecords
from ensue.spark.worker.event_rows import ARRIVAL, OWN_ID
from ensue.spark.worker.packed_types import FILES_BESIDE_TYPES


class FileRun:
    """A library over files. Nothing is read before `outputs` is called."""

    def __init__(
        self,
        given: Input,
        library: Library,
        options: BatchOptions,
        reading: FileReading,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        self._reading = reading
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
        reading: FileReading = PLAIN,
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
            return cls(given, library, options, reading, dict(mapping.columns))
        return cls(given, library, options, reading)

    def outputs(self, form: OutputForm) -> FileOutputs:
        """Run the library. Lines and tables are in order, a folder is in none."""
        options = replace(self._options, order=form != "folder", whole_events=form == "lines")
        given, columns = self._input, self._columns
        if given.is_encoded:
            options = replace(options, arrival=None)
        kind = EncodedEventJob if given.is_encoded else Job
        job = _without_added(kind.of(given.events, self._library, columns, options))
        rejected = given.rejected
        if rejected is None:
            assert given.rows is not None
            plain = Job.of(given.rows, self._library, columns, self._options)
            files = self._reading.in_order(given.rows.inputFiles())
            plain, mapping = _without_added(plain), self._reading.mapping
            rejected = RejectedRecords.of_job(plain, files, given.columns, mapping)
        else:
            # What lies too far ahead was rejected when lines were read.
            job = replace(job, max_jump=UNBOUNDED)
        self._check_until(job)
        return FileOutputs(job, rejected, given, form)

    def _check_until(self, job: Job) -> None:
        """Raises `UsageError` if the clock is told to go on further than it may jump."""
        allowed = max_jump(self._library.checked, self._options.max_jump, bounded=True)
        if job.until is not None and allowed != UNBOUNDED:
            latest = replace(job, until=None).latest_time()
            check_advance(job.until, -math.inf if latest is None else latest, allowed)


def _without_added(job: Job) -> Job:
    """The job without the columns that were added to those of the files, as data."""
    layout, added = job.layout, (ARRIVAL, OWN_ID)
    kept = replace(
        layout,
        renamed=tuple((name, origin) for name, origin in layout.renamed if name not in added),
        attributes={n: each for n, each in layout.attributes.items() if n not in added},
    )
    return replace(job, layout=kept)

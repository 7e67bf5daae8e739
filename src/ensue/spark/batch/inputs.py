"""What the files of a run are to the rest of this room: how they are read, and what they become.

In come paths; out go Spark's readers of them and their names, in one form. `FileReading` has the
options of the user, and what the files turned out to need. `Input` has the rows of the files, as
`line_files` and `parquet_files` make them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.utils import is_remote

from ensue.errors import UsageError
from ensue.events.mapping import Mapping as UserMapping
from ensue.events.record_ids import labels_of
from ensue.events.sources.contents import Given
from ensue.spark.batch.rejected import RejectedRecords
from ensue.spark.failures import FAILURES, reason_of
from ensue.spark.worker.files.line_places import local_path, plain_path

MOST_RANKED = 1000
"""From this number of Parquet files on, Spark chooses the order of events of equal times."""


@dataclass(frozen=True)
class FileReading:
    """How files are read: what the user has said, and what they turned out to need.

    `header` has the names of the columns of CSV, where the first lines of files do not. With
    `line_breaks` cells of CSV may hold line breaks, so that each file is read by one task. With
    `as_events` lines become events in bytes, and with `numbered` the place of a record stands in
    for an id that it lacks. `order` has the local files in the order in which the user has named
    them; files that it does not have are read in the order of their paths. `nulls` are
    texts that stand for a null. `names` has local files as the user has named them, by their
    absolute paths.
    """

    mapping: UserMapping = field(default_factory=UserMapping)
    delimiter: str | None = None
    line_breaks: bool = False
    as_events: bool = False
    numbered: bool = False
    header: tuple[str, ...] | None = None
    order: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def given(self) -> Given:
        """The options for files of CSV."""
        return Given("csv", self.delimiter, self.header, self.nulls)

    @property
    def in_whole_files(self) -> bool:
        """Whether each file is read by one task, from begin to end."""
        return self.line_breaks or self.mapping.lacks_years

    def labels(self, files: Sequence[str]) -> dict[str, str]:
        """What files, as Spark spells their paths, are called in ids of records without one."""
        given = {file: self._named(file) for file in files}
        labels = labels_of(list(given.values()))
        return {plain_path(file): labels[name] for file, name in given.items()}

    def _named(self, file: str) -> str:
        path = local_path(file)
        return plain_path(file) if path is None else self.names.get(path, path)

    def in_order(self, files: Sequence[str]) -> list[str]:
        """Files, as Spark spells their paths, in the order in which they are read."""
        by_path = sorted(files, key=plain_path)
        if not self.order:
            return by_path
        ranks: dict[str | None, int] = {path: rank for rank, path in enumerate(self.order)}
        return sorted(by_path, key=lambda file: ranks.get(local_path(file), len(ranks)))


PLAIN = FileReading()


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
    as they are in the files, and the place of each row; `columns` says for each column of the files
    which of them has its values. `held` is kept by executors until the end.
    """

    files: int
    events: DataFrame
    rejected: RejectedRecords | None = None
    observed: ObservedCounts | DataFrame | None = None
    is_encoded: bool = False
    rows: DataFrame | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    held: DataFrame | None = None

    @property
    def is_table(self) -> bool:
        return self.rows is not None


def open_with(reader: Any, paths: Sequence[str]) -> DataFrame:
    try:
        opened: DataFrame = reader.load([path_for_java(path) for path in paths])
        if opened.inputFiles():
            return opened
    except FAILURES as error:
        text = reason_of(error)
        raise UsageError(f"{shown(paths)} cannot be read: {text[:1].lower()}{text[1:]}") from None
    raise without_files(", ".join(paths))


def path_for_java(path: str) -> str:
    """The path with the working directory of this process, if it is relative and leads to files.

    Java keeps the directory in which the session was started.
    """
    is_here = not os.path.isabs(path) and (os.path.exists(path) or glob(path))
    return f"file:{os.path.abspath(path)}" if is_here and not is_remote() else path


def folder_for_java(spark: SparkSession, path: str) -> str:
    """A folder to write, from the working directory of this process where Java is beside it."""
    is_here = not is_remote() and (spark.sparkContext.master or "").startswith("local")
    return os.path.abspath(path) if is_here and ":/" not in path else path


def without_files(path: str) -> UsageError:
    return UsageError(f"`{path}` has no files: give a folder, or a pattern, of files of events")


def shown(paths: Sequence[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def reader_of(spark: SparkSession, format_: str) -> Any:
    return spark.read.option("recursiveFileLookup", "true").format(format_)


def file_column() -> Column:
    return sf.col("_metadata.file_path")


def paths_of(read: DataFrame, reading: FileReading) -> tuple[str, ...]:
    """The paths of the files in one form, in the order in which they are read."""
    return tuple(dict.fromkeys(map(plain_path, reading.in_order(read.inputFiles()))))

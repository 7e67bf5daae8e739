"""Rejected records of files: their numbers, a sample for people, and dead letters.

In come the records that workers have rejected, with the block of their file and their number in it,
or rows of Parquet with their places; out go records with the number of their line or row in the
file. Only counts and a sample come to the driver. A folder of dead letters is written by executors;
a single file is written from small partitions, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from ensue.events.event import Rejected
from ensue.events.mapping import Mapping as UserMapping
from ensue.spark.batch.job import Job
from ensue.spark.worker.dead_letters import write_dead_letters
from ensue.spark.worker.event_rows import ARRIVAL
from ensue.spark.worker.files.line_places import PLACES_A_FILE
from ensue.spark.worker.output_lines import LINES_DDL, join_lines
from ensue.spark.worker.remote_call import for_workers

RECORDS_A_PARTITION = 20_000
"""How many dead letters at most are in the memory of the driver, where they go to one file."""


@dataclass(frozen=True)
class RejectedRecords:
    """Records of files that are no events.

    `rows` has an arrival, a `file`, a `number`, the record as `raw` and its `problems`. A row of
    Parquet is JSON text in `raw`.
    """

    rows: DataFrame
    format: str

    @classmethod
    def of_lines(cls, records: DataFrame, lines: DataFrame | None, format_: str) -> Self:
        """From records with their places; `lines` has all lines of the files, to count them."""
        rejected = records.filter(sf.col("problems").isNotNull())
        if lines is None:
            # Of files that were read as a whole, a line in its block is that line of its file.
            number = sf.col("line") + 1
            return cls(_selected(rejected.withColumn("number", number)), format_)
        counted = lines.groupBy("file", "start").agg(sf.count("*").alias("lines"))
        earlier = (
            Window.partitionBy("file").orderBy("start").rowsBetween(Window.unboundedPreceding, -1)
        )
        before = counted.select(
            sf.col("file").alias("of_file"),
            sf.col("start").alias("of_start"),
            sf.coalesce(sf.sum("lines").over(earlier), sf.lit(0)).alias("before"),
        )
        placed = rejected.join(
            sf.broadcast(before),
            (sf.col("file") == sf.col("of_file")) & (sf.col("start") == sf.col("of_start")),
        )
        number = sf.col("before") + sf.col("line") + 1
        return cls(_selected(placed.withColumn("number", number)), format_)

    @classmethod
    def of_job(
        cls, job: Job, files: Sequence[str], columns: Mapping[str, str], mapping: UserMapping
    ) -> Self:
        """From rows of Parquet, whose arrivals are places in the files.

        `columns` says for each column of the files which column of the events has its values.
        """
        found = job.rejected_in_files(columns, mapping)
        rows = found.withColumn("raw", sf.col("row").cast("binary"))
        rank = sf.floor(sf.col(ARRIVAL) / sf.lit(PLACES_A_FILE))
        names = sf.array(*map(sf.lit, files[:1000]))
        rows = rows.withColumn("file", sf.try_element_at(names, (rank + 1).cast("int")))
        number = sf.col(ARRIVAL) % sf.lit(PLACES_A_FILE) + 1
        return cls(_selected(rows.withColumn("number", number)), "parquet")

    def keep(self) -> Self:
        """The rejected rows, read once and kept by executors until `close`."""
        return type(self)(self.rows.persist(StorageLevel.DISK_ONLY), self.format)

    def close(self) -> None:
        self.rows.unpersist()

    def sample(self, count: int) -> Iterator[tuple[str | None, Rejected]]:
        """The first records, in the order of the files, with the file of each."""
        for row in self.rows.orderBy(ARRIVAL).limit(count).collect():
            raw = bytes(row["raw"])
            record = raw.decode() if self.format == "parquet" else raw
            yield row["file"], Rejected(row["number"], record, tuple(row["problems"]))

    def write_folder(self, folder: str) -> None:
        """Write dead letters as a folder of text files, by executors."""
        letters = self._dead_letters(self.rows.sortWithinPartitions(ARRIVAL))
        letters.select(sf.col("line").cast("string")).write.text(folder)

    def dead_letters(self, count: int) -> Iterator[bytes]:
        """Dead letters in the order of the files, in blocks of lines."""
        partitions = count // RECORDS_A_PARTITION + 1
        rows = self.rows.repartitionByRange(partitions, ARRIVAL).sortWithinPartitions(ARRIVAL)
        blocks = self._dead_letters(rows).mapInArrow(for_workers(join_lines, ()), LINES_DDL)
        for row in blocks.toLocalIterator():
            yield bytes(row["lines"])

    def _dead_letters(self, rows: DataFrame) -> DataFrame:
        write = for_workers(write_dead_letters, (self.format,))
        return rows.select("number", "raw", "problems").mapInArrow(write, "line binary")


def _selected(rows: DataFrame) -> DataFrame:
    return rows.select(ARRIVAL, "file", "number", "raw", "problems")

"""Files of events as the input of a run, by their format.

In come paths, a library and a `FileReading`; out goes an `Input`. Parquet keeps its columns
(`parquet_files`), and so does a table that Spark knows by its name (`tables`); lines become columns
or events in workers (`line_files`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from ensue.engine.timing.jumps import JumpLike, max_jump
from ensue.errors import UsageError
from ensue.library import Library
from ensue.spark.batch.inputs import FileReading, Input
from ensue.spark.batch.line_files import open_lines
from ensue.spark.batch.parquet_files import open_parquet
from ensue.spark.batch.tables import TABLE, open_table


def open_files(
    spark: SparkSession,
    library: Library,
    paths: Sequence[str],
    format_: str,
    reading: FileReading,
    jump: JumpLike = None,
) -> Input:
    """Raises `UsageError` for files that cannot be opened, or columns that do not fit."""
    if format_ == "parquet":
        return open_parquet(spark, paths, reading, library)
    if format_ == TABLE:
        return open_table(spark, paths[0], reading)
    if format_ not in ("jsonl", "csv"):
        raise UsageError(
            f"Spark reads JSON lines, CSV and Parquet, and not {format_}: choose another engine"
        )
    allowed = max_jump(library.checked, jump, bounded=True)
    return open_lines(spark, paths, library, format_, reading, allowed)

"""A table that Spark knows by its name, as the input of a run.

In comes the name of a table or a view in a catalog of the session; out goes an `Input` with its
columns. A table has no order of its own: events of equal times are read as Spark finds them, and so
are rows without an id numbered.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.spark.batch.inputs import FileReading, Input
from ensue.spark.failures import FAILURES, reason_of
from ensue.spark.worker.event_rows import ARRIVAL

TABLE = "table"
"""The format of what is read by a name."""


def open_table(spark: SparkSession, name: str, reading: FileReading) -> Input:
    """Raises `UsageError` if there is no such table."""
    try:
        read = spark.read.table(name)
        names = read.columns
    except FAILURES as error:
        text = reason_of(error)
        raise UsageError(
            f"the table `{name}` cannot be read: {text[:1].lower()}{text[1:]}"
        ) from None
    place = sf.monotonically_increasing_id()
    given = {*names, *reading.mapping.columns}
    added = [place.alias(ARRIVAL)]
    if "id" not in given:
        added.append(sf.concat(sf.lit(f"{name}:"), (place + 1).cast("string")).alias("id"))
    if "source" not in given:
        added.append(sf.lit(name).alias("source"))
    events = read.select("*", *added)
    return Input(1, events, rows=events, columns={each: each for each in names})

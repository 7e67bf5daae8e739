"""A `parquet:` history replayed on Spark: its folder is the DataFrame, `correlate` runs the rules.

In comes the folder; out go the outputs of a library in the order of every other engine. Events of
equal times are read in the order of their arrival, which the names of the files and the places of
the rows in them tell. Rules that ask the history itself are refused: Spark does not ask it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.events.times import datetime_of
from ensue.history.asking.prepared import asks_history
from ensue.library import Library
from ensue.spark.dispatch import correlate
from ensue.spark.session import open_session

ARRIVAL = "arrival"
_ROWS_OF_A_FILE = 1 << 32


def read_history(
    spark: SparkSession, folder: str, since: int | None = None, until: int | None = None
) -> DataFrame:
    """The events of a `parquet:` history as they came, with a column `arrival` for their order.

    `since` is the first time that counts, in microseconds, `until` the first that no longer does.
    """
    events = spark.read.option("mergeSchema", "true").parquet(folder)
    number = sf.regexp_extract(sf.col("_metadata.file_name"), r"part-(\d+)", 1).cast("bigint")
    place = number * _ROWS_OF_A_FILE + sf.col("_metadata.row_index")
    events = events.select("*", place.alias(ARRIVAL))
    if since is not None:
        events = events.where(sf.col("time") >= sf.lit(datetime_of(since)))
    if until is not None:
        events = events.where(sf.col("time") < sf.lit(datetime_of(until)))
    return events


def replayed(
    folder: str, library: Library, since: int | None = None, until: int | None = None
) -> Iterator[Event]:
    """The outputs of a library over a span of a history. Raises `UsageError`."""
    if asks_history(library.checked.tree.definitions):
        raise UsageError(
            "rules that ask a history are not replayed on Spark: choose the engine `step`, which"
            " reads the same folder"
        )
    events = read_history(open_session(), folder, since, until)
    outputs = correlate(
        events,
        library,
        until=None if until is None else datetime_of(until),
        order=True,
        whole_events=True,
        arrival=ARRIVAL,
    )
    for row in outputs.orderBy("order").select("event").toLocalIterator():
        yield decode(row["event"])

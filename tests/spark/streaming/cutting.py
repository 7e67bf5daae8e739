"""Streams cut into files: one file a micro-batch, read by Spark in the order of their names.

In come events and a seed; out go files, and what a stream over them puts out. A last file has a
heartbeat, an event that no rule wants, late enough for everything before it to be settled.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

HEARTBEAT = "test.heartbeat"


def cut(rows: Sequence[Any], random: Random, most: int = 5) -> list[list[Any]]:
    """The rows in pieces of random lengths, none of them empty."""
    places = random.sample(range(1, len(rows)), min(random.randint(0, most - 1), len(rows) - 1))
    bounds = [0, *sorted(places), len(rows)]
    return [list(rows[a:b]) for a, b in pairwise(bounds)]


def shuffled_within(times: Sequence[int], lateness: int, random: Random) -> list[int]:
    """Places of times in an order of arrival in which nothing is late; equal times as given."""
    keyed = [(time + random.randrange(lateness + 1), n) for n, time in enumerate(times)]
    delay: dict[int, int] = {}
    for arrives, place in keyed:
        # Events of one time must not overtake each other.
        delay[times[place]] = max(delay.get(times[place], 0), arrives)
    return [n for _, n in sorted((delay[times[n]], n) for n in range(len(times)))]


def write_pieces(folder: Path, pieces: Sequence[pa.Table], first: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, piece in enumerate(pieces, first):
        path = folder / f"{number:05}.parquet"
        hidden = folder / f"_{number:05}"
        pq.write_table(piece, hidden)
        # The source takes files by their times of change, and does not see names with a stroke.
        os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        hidden.rename(path)


def stream_of(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def collected(made: DataFrame, checkpoint: Path, name: str = "") -> list[dict[str, Any]]:
    """All rows that a stream puts out, once it has read all there is; a query may have a name."""
    found: list[dict[str, Any]] = []

    def keep(batch: DataFrame, number: int) -> None:
        found.extend(row.asDict() for row in batch.collect())

    writer = made.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    writer = writer.queryName(name) if name else writer
    writer.trigger(availableNow=True).start().awaitTermination()
    return found

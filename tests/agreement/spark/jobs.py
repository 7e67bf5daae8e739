"""Whether Spark agrees with the judges, for many trials in one job.

In come trials; out goes what differs. There are four ways: `bytes` (rows become events in Python,
whole events come out), `columns` (SQL reads the rows, and outputs have an order), `fast` (SQL and
the batch engine, outputs in any order) and `events` (a list of events, as commands give it).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from random import Random

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.events.times import datetime_of
from ensue.spark import correlate
from ensue.spark.batch.events import job_of_events
from tests.agreement.trials import Members, Trial

from .rows import as_rows, as_text, frame_of

WAYS = ("bytes", "columns", "fast", "events")


def differences(spark: SparkSession, trials: Sequence[Trial], way: str) -> list[str]:
    wrong = []
    for trial, given in zip(trials, observed(spark, trials, way), strict=True):
        for each in trial.judged(trial.by_time, trial.end):
            is_whole = way in ("bytes", "events")
            outputs = each.outputs if is_whole else as_rows(each.outputs, trial.library)
            wanted = [as_text(output) for output in outputs]
            found = [as_text(output) for output in given if output["correlation"] in each.rules]
            if way == "fast":
                wanted, found = sorted(wanted), sorted(found)
            if wanted != found:
                lines = "\n".join(["expected:", *wanted, "Spark:", *found])
                wrong.append(f"{way}: {trial}\n{each.text}\n{lines}")
    return wrong


def observed(spark: SparkSession, trials: Sequence[Trial], way: str) -> list[list[Members]]:
    """The outputs of each trial, all of them from one job."""
    parts = [
        _outputs(spark, trial, way).select(sf.lit(number).alias("n"), "order", "text")
        for number, trial in enumerate(trials)
        if trial.events
    ]
    found: list[list[Members]] = [[] for _ in trials]
    if parts:
        # Spark would run everything twice to put it in order: once to see how to spread it.
        rows = reduce(DataFrame.unionAll, parts).collect()
        for row in sorted(rows, key=lambda each: (each["n"], bytes(each["order"]))):
            found[row["n"]].append(json.loads(row["text"]))
    return found


def _outputs(spark: SparkSession, trial: Trial, way: str) -> DataFrame:
    """The outputs as text, and where they stand in their order."""
    if way == "events":
        events = [trial.events[place] for place in trial.by_time]
        made = job_of_events(spark, trial.library, events, trial.end).outputs()
        return made.select("order", _text(sf.col("event")))
    draw = Random(trial.seed)
    # Partitions are cut at random places, and keep the order of rows.
    rows = frame_of(spark, trial.events, trial.library).coalesce(draw.choice([1, 2]))
    frame = correlate(
        rows,
        trial.library,
        until=None if trial.end is None else datetime_of(trial.end),
        order=way != "fast",
        whole_events=way == "bytes",
        partitions=draw.choice([1, 2, 3]),
    )
    names = [name for name in frame.columns if name not in ("order", "event")]
    row = sf.to_json(sf.struct(*names), {"ignoreNullFields": "false"})
    order = sf.lit(b"") if way == "fast" else sf.col("order")
    return frame.select(order.alias("order"), _text(sf.col("event") if way == "bytes" else row))


def _text(column: Column) -> Column:
    return column.cast("string").alias("text")

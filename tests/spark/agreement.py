"""Whether Spark agrees with the oracles, for many trials in one job.

In come trials; out goes, for each way of running, what differs. There are three ways: `bytes`
(rows become events in Python, whole events come out), `columns` (SQL reads the rows, and outputs
have an order) and `fast` (SQL and the batch engine, outputs in any order).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from random import Random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.events.times import datetime_of
from ensue.spark import correlate

from .trials import Trial, as_text, frame_of

WAYS = ("bytes", "columns", "fast")


def observed(spark: SparkSession, trials: Sequence[Trial], way: str) -> list[list[str]]:
    """The outputs of each trial as text, all of them from one job."""
    parts = []
    for number, trial in enumerate(trials):
        until = None if trial.end is None else datetime_of(trial.end)
        random = Random(trial.seed)
        # Partitions are cut at random places, and keep the order of rows.
        events = frame_of(spark, trial.events, trial.library).coalesce(random.choice([1, 2]))
        frame = correlate(
            events,
            trial.library,
            until=until,
            order=way != "fast",
            whole_events=way == "bytes",
            partitions=random.choice([1, 2, 3]),
        )
        names = [name for name in frame.columns if name not in ("order", "event")]
        row = sf.to_json(sf.struct(*names), {"ignoreNullFields": "false"})
        text = sf.col("event") if way == "bytes" else row
        order = sf.lit(b"").alias("order") if way == "fast" else sf.col("order")
        parts.append(frame.select(sf.lit(number).alias("n"), order, text.alias("text")))
    found: list[list[str]] = [[] for _ in trials]
    for each in reduce(DataFrame.unionAll, parts).orderBy("n", "order").collect():
        found[each["n"]].append(each["text"])
    return found


def differences(spark: SparkSession, trials: Sequence[Trial], way: str) -> list[str]:
    wrong = []
    for trial, given in zip(trials, observed(spark, trials, way), strict=True):
        got = [json.loads(text) for text in given]
        for each in trial.judged(trial.by_time, trial.end):
            outputs = each.outputs if way == "bytes" else trial.as_rows(each.outputs)
            wanted = [as_text(output) for output in outputs]
            mine = [as_text(output) for output in got if output["correlation"] in each.rules]
            if way == "fast":
                wanted, mine = sorted(wanted), sorted(mine)
            if wanted != mine:
                lines = "\n".join(["oracle:", *wanted, "spark:", *mine])
                wrong.append(f"{way}: {trial}\n{each.text}\n{lines}")
    return wrong

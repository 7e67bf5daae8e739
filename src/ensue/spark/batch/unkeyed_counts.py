"""How many events had no key, where the outputs are written by executors and not seen here.

In comes a job; out go its outputs, and counts by rule. Where Python reads the events, workers count
on the way, and their counts are taken out of the rows while those are written. Where SQL reads
them, rows without a key never reach a worker: such rows alone are then read a second time, in which
a Parquet file that says it has no nulls is passed over.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf

from ensue.engine.counts import Counts
from ensue.spark.batch.job import Job
from ensue.spark.plan import Group
from ensue.spark.sql.scan import Reading
from ensue.spark.worker.tasks import COUNTED


class CountedOutputs:
    """The outputs of a job that counts, as `rows`; once they are written, `add_to` has the counts.

    What is counted on the way is told by Spark when the rows have been written, and by nothing
    else: `add_to` would wait for it.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._in_sql: list[Group] = []
        self._on_the_way: list[str] = []
        for group in job.plan.groups:
            if not (group.is_keyed and _is_asked_for(group, job)):
                continue
            if isinstance(job.readings[group.number], Reading):
                self._in_sql.append(group)
            else:
                self._on_the_way += [rule.name for rule in group.rules]
        self._observation = Observation() if self._on_the_way else None
        self.rows = self._without_counts(job.outputs())

    def _without_counts(self, made: DataFrame) -> DataFrame:
        if self._observation is None:
            return made
        sums = [_sum_for(name).alias(str(n)) for n, name in enumerate(self._on_the_way)]
        counted = made.observe(self._observation, *sums)
        return counted.filter(sf.col("correlation") != COUNTED)

    def add_to(self, counts: Counts) -> None:
        if self._observation is not None:
            told = self._observation.get
            for number, name in enumerate(self._on_the_way):
                counts.without_key[name] += told[str(number)] or 0
        for group in self._in_sql:
            for row in _counted_again(self._job, group).collect():
                counts.without_key[row["source"]] += int(row["id"])


def _is_asked_for(group: Group, job: Job) -> bool:
    return any(rule.name in job.plan.selected for rule in group.rules)


def _sum_for(name: str) -> Column:
    is_count = (sf.col("correlation") == COUNTED) & (sf.col("source") == name)
    return sf.sum(sf.when(is_count, sf.col("id").cast("bigint")))


def _counted_again(job: Job, group: Group) -> DataFrame:
    """The counts of a group, from those rows that lack a part of its key."""
    reading = job.readings[group.number]
    assert isinstance(reading, Reading)
    columns = dict(reading.travelling)
    lacks = reduce(Column.__or__, (columns[name].isNull() for name, _ in reading.keys))
    of_a_type = columns["type"].isin(*reading.types)
    alone = replace(
        job,
        events=job.events.filter(of_a_type & lacks),
        plan=replace(job.plan, selected=tuple(rule.name for rule in group.rules)),
        # Python reads what SQL would pass over.
        readings={each.number: "events without a key are counted" for each in job.plan.groups},
    )
    return alone.outputs().filter(sf.col("correlation") == COUNTED)

"""Counts of events without a key, where executors write the outputs.

In comes a job; out go its outputs, and counts by rule. Where Python reads the events, workers
count, and Spark observes their counts while the outputs are written. Where SQL reads them, rows
without a key never reach a worker: only these rows are then read a second time, and Spark skips
Parquet files whose statistics say that they have no nulls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf

from ensue.engine.counts import Counts
from ensue.spark.batch.job import Job
from ensue.spark.failures import FAILURES
from ensue.spark.plan import RuleGroup
from ensue.spark.sql.scan import Scan
from ensue.spark.worker.tasks import UNKEYED_COUNT


class CountedOutputs:
    """The outputs of a job as `rows`; `add_to` adds the counts after the rows have been written.

    Spark reports observed counts when the query has ended; before that `add_to` would wait.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._in_sql: list[RuleGroup] = []
        self._by_workers: list[str] = []
        for group in job.plan.groups:
            if not (group.is_keyed and _is_selected(group, job)):
                continue
            if isinstance(job.scans[group.number], Scan):
                self._in_sql.append(group)
            else:
                self._by_workers += [rule.name for rule in group.rules]
        self._observation = Observation() if self._by_workers else None
        self.rows = self._without_counts(job.outputs_and_counts())

    def _without_counts(self, made: DataFrame) -> DataFrame:
        if self._observation is None:
            return made
        sums = [_sum_for(name).alias(str(n)) for n, name in enumerate(self._by_workers)]
        counted = made.observe(self._observation, *sums)
        return counted.filter(sf.col("correlation") != UNKEYED_COUNT)

    def add_to(self, counts: Counts) -> None:
        if self._observation is not None:
            told: Mapping[str, int | None] = {}
            try:
                told = self._observation.get
            except FAILURES:
                # Of a query that turns out to have no rows, Spark may leave out what observes.
                if counts.outputs:
                    raise
            for number, name in enumerate(self._by_workers):
                counts.without_key[name] += told.get(str(number)) or 0
        for group in self._in_sql:
            for row in _counts_of_group(self._job, group).collect():
                counts.without_key[row["source"]] += int(row["id"])


def _is_selected(group: RuleGroup, job: Job) -> bool:
    return any(rule.name in job.plan.selected for rule in group.rules)


def _sum_for(name: str) -> Column:
    is_count = (sf.col("correlation") == UNKEYED_COUNT) & (sf.col("source") == name)
    return sf.sum(sf.when(is_count, sf.col("id").cast("bigint")))


def _counts_of_group(job: Job, group: RuleGroup) -> DataFrame:
    """The counts of a group, from the rows that lack a part of its key."""
    scan = job.scans[group.number]
    assert isinstance(scan, Scan)
    # Of rows without a key alone the clock would go elsewhere.
    job = job.within_reach()
    columns = dict(scan.shuffled)
    lacks = reduce(Column.__or__, (~each.is_there(columns) for each in scan.keys))
    of_a_type = columns["type"].isin(*scan.types)
    alone = replace(
        job,
        events=job.events.filter(of_a_type & lacks),
        plan=replace(job.plan, selected=tuple(rule.name for rule in group.rules)),
        # Python reads these rows, since the scan in SQL drops them.
        scans={each.number: "events without a key are counted" for each in job.plan.groups},
    )
    return alone.outputs_and_counts().filter(sf.col("correlation") == UNKEYED_COUNT)

"""`ensue bench spark` at tiny sizes: it runs, and what is compared has the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ensue.errors import UsageError
from ensue_bench.effort import Effort
from ensue_bench.measuring import measure
from ensue_bench.report import Report
from ensue_bench.spark import flink
from ensue_bench.spark.jobs import MANY, correlated, events, write_events


@pytest.fixture(scope="module")
def report(spark: SparkSession) -> Report:
    return measure("spark", Effort(quick=True, repeats=1))


def test_batch_streams_and_curves_are_measured_on_the_session_at_hand(
    report: Report, spark: SparkSession
) -> None:
    """Each figure of the benchmark of Spark is a job, or a stream, of its own."""
    names = [figure.name for figure in report.figures]

    assert {name.partition(":")[0].partition(",")[0] for name in names} == {
        "batch", "files", "stream",
    }  # fmt: skip
    assert sorted(set(names)) == sorted(names)
    assert all(figure.median > 0 for figure in report.figures)
    assert spark.range(3).count() == 3


def test_cost_is_told_against_events_keys_partitions_rules_and_keys_that_have_passed(
    report: Report,
) -> None:
    assert {curve.plot for curve in report.curves} == {
        "events-spark", "keys-spark", "partitions-spark", "rules-spark",
        "micro-batch-stream", "state-stream", "held-stream",
    }  # fmt: skip
    assert all(len(curve.points) == 2 for curve in report.curves)


def test_many_rules_find_what_the_one_that_they_are_compared_with_does_and_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame: Any = spark.read.parquet(write_events(tmp_path / "events", events(30_000, 20), files=2))

    for text in MANY.values():
        alone = correlated(frame, text(1))
        assert alone > 0
        assert correlated(frame, text(20)) > alone


def test_without_maven_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(UsageError, match="there is no `java`, `mvn`; install Java 17 and Maven"):
        flink.prepare()

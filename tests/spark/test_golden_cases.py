"""Golden cases give on Spark what they give everywhere."""

from __future__ import annotations

from itertools import islice

from pyspark.sql import SparkSession

from tests.agreement.golden import cases_together, golden_trials
from tests.agreement.spark.jobs import differences

EVERY = 5
"""Each worker reads the whole library: of all cases together it would take minutes."""


def test_golden_cases_give_on_spark_what_they_give_everywhere(spark: SparkSession) -> None:
    """Some two hundred cases in one job, nearly all of them in one library: half a minute."""
    trials = cases_together(islice(golden_trials(), 0, None, EVERY))

    assert len(trials) < 10
    assert "\n".join(differences(spark, trials, "events")) == ""

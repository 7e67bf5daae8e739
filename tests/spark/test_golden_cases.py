"""Golden cases give on Spark what they give everywhere."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.agreement.golden import golden_together
from tests.agreement.spark.jobs import differences

EVERY = 5
"""Each worker reads the whole library: of all cases together it would take minutes."""


def test_golden_cases_give_on_spark_what_they_give_everywhere(spark: SparkSession) -> None:
    """Some two hundred cases in one job, nearly all of them in one library: half a minute."""
    trials = golden_together(EVERY)

    assert len(trials) < 10
    assert "\n".join(differences(spark, trials, "events")) == ""

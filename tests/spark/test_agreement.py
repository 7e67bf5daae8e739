"""Spark puts out what the definitions say, in every way that it can run a library."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from .agreement import WAYS, differences
from .trials import TRIALS

SEEDS = {"usual": range(20, 24), "rare": range(2), "related": range(4)}


@pytest.mark.parametrize("way", WAYS)
def test_random_libraries_and_streams_give_what_the_oracles_give(
    spark: SparkSession, way: str
) -> None:
    trials = [TRIALS[kind](seed) for kind, seeds in SEEDS.items() for seed in seeds]

    assert "\n".join(differences(spark, trials, way)) == ""

"""Spark puts out what the definitions say, in every way that it can run a library."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from .agreement import WAYS, differences
from .trials import together, trial

SEEDS = {"usual": range(20, 33), "rare": range(9), "related": range(25), "together": range(3)}


@pytest.mark.parametrize("way", WAYS)
def test_random_libraries_and_streams_give_what_the_oracles_give(
    spark: SparkSession, way: str
) -> None:
    trials = [trial(kind, seeds[0]) for kind, seeds in SEEDS.items()]
    trials += [together(kind, seeds[1:]) for kind, seeds in SEEDS.items()]

    assert "\n".join(differences(spark, trials, way)) == ""

"""A stream puts out what the definitions say, however it is cut and wherever it is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.trials import TRIALS

from .agreement import simulated, streamed

SEEDS = {"usual": range(6), "rare": range(2), "related": range(6), "together": range(1)}


@pytest.mark.parametrize("form", ["columns", "events"])
def test_random_libraries_and_cuts_give_what_the_oracles_give(
    spark: SparkSession, form: str
) -> None:
    found = [
        simulated(spark, TRIALS[kind](seed), seed + 1, form == "events")
        for kind, seeds in SEEDS.items()
        for seed in seeds
    ]

    assert "\n".join(each for each in found if each) == ""


def test_a_stream_that_is_stopped_on_the_way_gives_what_the_oracle_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert streamed(spark, TRIALS["together"](3), 3, tmp_path) is None

"""A stream puts out what the definitions say, however it is cut and wherever it is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.trials import together, trial

from .agreement import simulated, streamed

SEEDS = {"usual": range(16), "rare": range(8), "related": range(24), "together": range(2)}


@pytest.mark.parametrize("form", ["columns", "events"])
def test_random_libraries_and_cuts_give_what_the_oracles_give(
    spark: SparkSession, form: str
) -> None:
    trials = [trial(kind, seeds[0]) for kind, seeds in SEEDS.items()]
    trials += [together(kind, seeds[1:]) for kind, seeds in SEEDS.items()]
    found = [simulated(spark, each, each.seed + 1, form == "events") for each in trials]

    assert "\n".join(each for each in found if each) == ""


def test_a_stream_that_is_stopped_on_the_way_gives_what_the_oracle_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert streamed(spark, trial("together", 3), 3, tmp_path) is None


def test_many_libraries_in_one_stream_that_is_stopped_give_what_the_oracle_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert streamed(spark, together("related", range(100, 120)), 5, tmp_path) is None

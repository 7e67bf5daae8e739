"""Spark puts out what the definitions say, in every way that it can run a library."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.oracle.generator import scenario

from .agreement import WAYS, differences


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", [20])
def test_random_libraries_and_streams_give_what_the_oracle_gives(
    spark: SparkSession, way: str, first: int
) -> None:
    scenarios = [scenario(seed) for seed in range(first, first + 10)]

    assert "\n".join(differences(spark, scenarios, way)) == ""

"""A stream puts out what the definitions say, however it is cut."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.oracle.generator import scenario

from .agreement import difference


@pytest.mark.parametrize("form", ["columns", "events"])
def test_random_libraries_and_cuts_give_what_the_oracle_gives(
    spark: SparkSession, form: str
) -> None:
    found = [difference(spark, scenario(seed), seed + 1, form) for seed in range(12)]

    assert "\n".join(each for each in found if each) == ""

"""Some rounds of the hunt for files that are read differently: those that once were."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.file_campaign import answer_of, differences, drawn


@pytest.mark.parametrize("seed", [6, 7, 10, 14, 16, 37, 1010, 1015, 1061, 2019, 3017])
def test_every_engine_reads_the_files_of_a_round_as_step_does(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """Some ten files in each round, read by four engines, one of them Spark."""
    files = drawn(seed, tmp_path)
    expected = answer_of(files, "step")

    for engine in ("reference", "batch", "spark"):
        assert not differences(answer_of(files, engine), expected), engine

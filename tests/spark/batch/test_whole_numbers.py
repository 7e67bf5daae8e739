"""Integers of 64 bits are exact on Spark, which has no unsigned ones and takes them as decimals."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import ensue
from ensue.spark import correlate
from tests.events.test_whole_decimals import LIBRARY, VALUES, decimals, table


def test_files_with_unsigned_integers_and_decimals_give_every_value(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(table(pa.array(VALUES, pa.uint64())), tmp_path / "unsigned.parquet")
    pq.write_table(table(decimals(VALUES)), tmp_path / "decimals.parquet")

    for name in ("unsigned", "decimals"):
        made = correlate(spark.read.parquet(str(tmp_path / f"{name}.parquet")), LIBRARY)
        assert sorted(int(row["n"]) for row in made.collect()) == VALUES[2:]


def test_outputs_that_spark_has_written_are_read_back_in_one_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(table(decimals(VALUES)), tmp_path / "numbers.parquet")
    made = correlate(spark.read.parquet(str(tmp_path / "numbers.parquet")), LIBRARY)
    made.coalesce(1).write.parquet(str(tmp_path / "made"))
    again = LIBRARY.replace("(A a", "(Out a").replace("eventtype A", "eventtype Other")

    read_back = ensue.correlate(pq.read_table(tmp_path / "made"), again)

    assert sorted(read_back.column("n").to_pylist()) == VALUES[2:]

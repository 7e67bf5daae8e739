"""Which columns of a DataFrame become events, and which are left out or refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.spark import correlate, rejected

LIBRARY = """
eventtype Reading { attribute string k; attribute double v; };
eventtype Rise { attribute string k; attribute double by; };
Rise correlation Jump (Reading low where v < 10.0, Reading high where v >= 10.0) low ; high by k {
    case true: push new Rise { k = high.k, by = high.v - low.v };
}
"""
ROWS = [
    ("1", "Reading", 1, "x", 1.0),
    ("2", "Reading", 2, "x", 12.0),
    (None, "Reading", 3, "x", 1.0),
]


def readings(spark: SparkSession) -> DataFrame:
    made = spark.createDataFrame(ROWS, "id string, type string, second bigint, k string, v double")
    return made.withColumn("time", sf.timestamp_seconds("second")).drop("second")


def causes(events: DataFrame, whole_events: bool = False) -> list[str]:
    return [
        row["causes"] for row in correlate(events, LIBRARY, whole_events=whole_events).collect()
    ]


@contextmanager
def minding_case(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def with_foreign_columns(spark: SparkSession) -> DataFrame:
    return (
        readings(spark)
        .withColumn("with.dot", sf.lit(1))
        .withColumn("bytes", sf.lit(b"ab"))
        .withColumn("wait", sf.expr("interval 3 days"))
        .withColumn("several", sf.array(sf.struct(sf.lit(b"ab").alias("bytes"))))
        .withColumn("anything", sf.parse_json(sf.lit("{}")))
    )


@pytest.mark.parametrize("whole_events", [False, True])
def test_columns_that_no_event_can_hold_are_left_out(
    spark: SparkSession, whole_events: bool
) -> None:
    assert causes(with_foreign_columns(spark), whole_events) == ["1,2"]


def test_rows_that_are_no_events_are_told_beside_columns_that_none_can_hold(
    spark: SparkSession,
) -> None:
    found = rejected(with_foreign_columns(spark), LIBRARY).collect()
    assert [row["problems"] for row in found] == [
        ["`id` must be a non-empty string; it is missing"]
    ]
    assert '"with.dot":1' in found[0]["row"].replace(" ", "")


def test_fields_of_the_data_that_no_event_can_hold_are_left_out(spark: SparkSession) -> None:
    data = sf.struct("k", "v", sf.lit(b"ab").alias("bytes")).alias("data")
    events = readings(spark).select("id", "type", "time", data)
    assert causes(events) == ["1,2"]
    assert causes(events, whole_events=True) == ["1,2"]


def test_data_of_bytes_is_refused_before_anything_runs(spark: SparkSession) -> None:
    events = readings(spark).withColumn("data", sf.lit(b"{}"))
    with pytest.raises(UsageError, match="`data`, which is to be the data of events, is `binary`"):
        correlate(events, LIBRARY)


def test_two_columns_of_one_name_are_refused(spark: SparkSession) -> None:
    others = spark.createDataFrame([("x",)], "k string")
    events = readings(spark)
    with pytest.raises(UsageError, match="two columns `k`: rename or drop one"):
        correlate(events.join(others, events.k == others.k), LIBRARY)


def test_columns_that_differ_in_case_are_told_apart_where_spark_does(spark: SparkSession) -> None:
    events = readings(spark).select("*", sf.lit("other").alias("K"))
    with pytest.raises(UsageError, match="two columns `k` and `K`, which differ only in case"):
        correlate(events, LIBRARY)
    with minding_case(spark):
        assert causes(events) == ["1,2"]


def test_fields_that_differ_in_case_are_refused(spark: SparkSession) -> None:
    data = sf.struct("k", "v", sf.lit("other").alias("K")).alias("data")
    with pytest.raises(UsageError, match="`data` has two fields `k` and `K`"):
        correlate(readings(spark).select("id", "type", "time", data), LIBRARY)

"""Types travel as numbers beside arrivals, and come out as they were."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from ensue.spark import correlate
from ensue.spark.worker.packed_types import (
    PACKED_TYPES,
    can_be_packed,
    pack_type,
    unpack_arrivals,
    unpack_types,
)

LARGEST_ARRIVAL = (2**24 - 1 << 33) + 2**33 - 1
"""The last row of the last task for which there is room."""


def packed(spark: SparkSession, rows: list[tuple[int, str]], types: list[str]) -> pa.ChunkedArray:
    frame = spark.createDataFrame(rows, "arrival bigint, type string").coalesce(1)
    column = pack_type(sf.col("arrival"), sf.col("type"), types).alias("packed")
    return pa.chunked_array([[row.packed for row in frame.select(column).collect()]])


def test_arrivals_and_types_come_out_as_they_went_in(spark: SparkSession) -> None:
    types = [f"T{number}" for number in range(PACKED_TYPES)]
    rows = [(0, "T0"), (7, types[-1]), (LARGEST_ARRIVAL, "T1"), (LARGEST_ARRIVAL - 1, types[-1])]

    found = packed(spark, rows, types)

    decoded = unpack_types(found, types).to_pylist()
    assert list(zip(unpack_arrivals(found).to_pylist(), decoded, strict=True)) == rows


def test_a_type_whose_name_begins_another_is_not_taken_for_it(spark: SparkSession) -> None:
    found = packed(spark, [(1, "A"), (2, "AB"), (3, "B")], ["AB", "A", "B"])

    assert unpack_types(found, ["AB", "A", "B"]).to_pylist() == ["A", "AB", "B"]


@pytest.mark.parametrize("count", [PACKED_TYPES, PACKED_TYPES + 1])
def test_a_rule_over_more_types_than_fit_finds_the_same(spark: SparkSession, count: int) -> None:
    below = "".join(f"eventtype T{number} : Any {{ }};\n" for number in range(count - 1))
    library = (
        "eventtype Any { attribute long K; };\neventtype Out { attribute string Last; };\n"
        f"{below}Out correlation Two (Any a, Any b) a ; b by K"
        " { case true: push new Out { Last = b.type }; }"
    )
    rows = [(str(n), f"T{n * 7 % (count - 1)}", n, n % 2) for n in range(8)]
    events = spark.createDataFrame(rows, "id string, type string, seconds int, K int")
    events = events.select("id", "type", sf.timestamp_seconds("seconds").alias("time"), "K")

    found = correlate(events, library, partitions=2).select("trigger", "Last").collect()

    expected = [(str(n), f"T{n * 7 % (count - 1)}") for n in (2, 3, 6, 7)]
    assert sorted(map(tuple, found)) == expected


def test_types_of_which_the_same_is_asked_are_asked_once(spark: SparkSession) -> None:
    library = """
    eventtype Any { attribute double V; };
    eventtype A : Any { }; eventtype B : Any { };
    Any correlation Two (A a, B b) a ; b { case true: push b; }
    """
    events = spark.createDataFrame([], "id string, type string, time timestamp, V double")

    plan = correlate(events, library)._jdf.queryExecution().optimizedPlan().toString()

    assert plan.count("abs(V#") == 1


def test_a_type_whose_name_has_a_comma_is_not_packed() -> None:
    assert can_be_packed(["A", "com.github.push"])
    assert not can_be_packed(["A", "a,b"])
    assert not can_be_packed([f"T{n}" for n in range(PACKED_TYPES + 1)])

"""Columns, paths, expressions, a constant type, units and zones of times, on DataFrames."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.spark import correlate, explain, rejected
from ensue.spark.batch.job import Job

LIBRARY = """
eventtype Login { attribute string user; };
eventtype Alarm { attribute string user; };
Alarm correlation Twice (Login a, Login b) l:(a ; b) by user {
    case l: push new Alarm { user = b.user };
}
"""
START = 1_714_978_800


def logs(spark: SparkSession, times: list[Any], type_: str) -> DataFrame:
    rows = [(str(n), time, (("Ann", "x"),)) for n, time in enumerate(times)]
    return spark.createDataFrame(
        rows, f"uuid string, ts {type_}, actor struct<who: struct<name: string, mail: string>>"
    )


def triggers(outputs: DataFrame) -> list[tuple[str, str, int]]:
    rows = outputs.select("trigger", "user", sf.unix_seconds("time").alias("s")).collect()
    return sorted((row["trigger"], row["user"], row["s"]) for row in rows)


@pytest.mark.parametrize(
    ("times", "type_", "origin"),
    [
        ([START, START + 1], "bigint", "ts:s"),
        ([START * 1000, START * 1000 + 1000], "bigint", "ts:ms"),
        ([START * 10**6, (START + 1) * 10**6], "bigint", "ts:us"),
        ([START * 10**9, (START + 1) * 10**9], "bigint", "ts:ns"),
        ([float(START), START + 1.0], "double", "ts:s"),
        ([str(START), f"{START + 1}.0"], "string", "ts:s"),
        (["2024-05-06T07:00:00Z", "2024-05-06 09:00:01+02:00"], "string", "ts"),
    ],
)
def test_times_of_any_unit_and_paths_into_structs(
    spark: SparkSession, times: list[Any], type_: str, origin: str
) -> None:
    columns = {"time": origin, "id": "uuid", "user": "actor.who.name"}

    outputs = correlate(logs(spark, times, type_), LIBRARY, columns, type="Login")

    assert triggers(outputs) == [("1", "Ann", START + 1)]


def test_any_expression_may_stand_for_an_attribute(spark: SparkSession) -> None:
    events = logs(spark, [START, START + 1], "bigint")
    columns: dict[str, str | Column] = {
        "time": sf.timestamp_seconds("ts"),
        "id": sf.concat(sf.lit("e"), "uuid"),
        "user": sf.lower("actor.who.name"),
        "type": sf.lit("Login"),
    }

    assert triggers(correlate(events, LIBRARY, columns)) == [("e1", "ann", START + 1)]


@pytest.mark.parametrize("type_", ["string", "timestamp_ntz"])
def test_times_without_an_offset_are_in_the_zone_that_is_given(
    spark: SparkSession, type_: str
) -> None:
    texts = ["2024-05-06T09:00:00", "2024-05-06T09:00:01", "2024-03-31T02:30:00"]
    events = logs(spark, texts, "string").withColumn("ts", sf.col("ts").cast(type_))
    columns = {"time": "ts", "id": "uuid", "user": "actor.who.name"}
    given: dict[str, Any] = {"type": "Login", "timezone": "Europe/Berlin"}

    assert triggers(correlate(events, LIBRARY, columns, **given)) == [("1", "Ann", START + 1)]
    (refused,) = rejected(events, LIBRARY, columns, **given).collect()
    assert "never show this time" in refused["problems"][0]


def test_what_is_refused_is_said_in_the_words_of_the_column(spark: SparkSession) -> None:
    events = logs(spark, ["2024-05-06T07:00:00", "yesterday", "2024-05-06T07:00:00Z"], "string")
    columns = {"time": "ts", "id": "uuid", "user": "actor.who.name"}

    problems = [
        row["problems"][0] for row in rejected(events, LIBRARY, columns, type="Login").collect()
    ]

    assert len(problems) == 2
    assert "the offset is missing" in problems[0]
    assert "`yesterday` is no RFC 3339 time" in problems[1]


def test_times_in_text_are_read_in_sql(spark: SparkSession) -> None:
    columns = {"time": "ts", "id": "uuid", "user": "actor.who.name"}
    job = Job.of(logs(spark, ["x"], "string").withColumn("type", sf.lit("Login")), LIBRARY, columns)

    assert job.python_reasons == ()
    assert "in SQL" in explain(
        job.events, LIBRARY, columns, type="Login", until="2024-05-06T07:00:00Z"
    )


@pytest.mark.parametrize(
    ("columns", "type_", "message"),
    [
        ({"time": "tz"}, "Login", "`time` is in the column `tz`, and the DataFrame has none"),
        ({"time": "actor.when"}, "Login", "`time` is in the column `actor.when`"),
        ({"time": "ts:ms"}, "Login", "no number since 1970: leave out the unit `ms`"),
        ({"type": "ts"}, "Login", "the type is said twice"),
        ({"type": sf.lit}, "Login", "`columns` says of `type`"),
        ({"time": "ts"}, None, "no column `type`"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    spark: SparkSession, columns: dict[str, Any], type_: str | None, message: str
) -> None:
    events = logs(spark, [datetime(2024, 5, 6)], "timestamp")
    columns = {"time": "ts", "id": "uuid", "user": "actor.who.name"} | columns

    with pytest.raises(UsageError, match=message):
        correlate(events, LIBRARY, columns, type=type_)


def test_an_expression_for_a_type_that_is_constant_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="the type is said twice"):
        correlate(logs(spark, [1], "bigint"), LIBRARY, {"type": sf.lit("x")}, type="Login")


def test_a_key_that_is_a_struct_is_said_before_anything_runs(spark: SparkSession) -> None:
    events = logs(spark, [START], "bigint")
    library = LIBRARY.replace("by user", "by actor")
    columns = {"time": "ts:s", "id": "uuid", "user": "actor.who.name"}

    with pytest.warns(UserWarning, match="`Twice` is `by actor`, which is a struct of `who`"):
        correlate(events, library, columns, type="Login")

"""`correlate` over streams: what a user of streaming DataFrames sees."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from ensue.errors import UsageError
from ensue.spark import correlate, explain, rejected
from ensue.spark.streaming import split
from ensue.spark.streaming.job import StreamJob

from .cutting import collected, cut, stream_of, write_pieces
from .sensors import LIBRARY, arriving, expected, found, heartbeat, readings, table


def test_a_stream_that_is_cut_in_any_way_puts_out_what_the_reference_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = readings(60, Random(1))
    wanted = expected(rows)
    assert {name for name, *_ in wanted} == {"Jump", "Silence", "Extremes"}

    for seed in range(4):
        random = Random(seed)
        folder = tmp_path / str(seed)
        pieces = cut(arriving(rows, random), random, most=4)
        write_pieces(folder / "events", [table(piece) for piece in pieces])
        stream = stream_of(spark, folder / "events")
        made = correlate(stream, LIBRARY, lateness="2 s", buckets=random.choice([1, 3]))

        got = collected(made, folder / "checkpoint")

        assert found(got) == wanted, f"cut with seed {seed}"


def test_late_events_are_put_out_once_as_they_came_and_are_not_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = readings(20, Random(2))
    late = rows[0] | {"id": "late", "Value": 0.5}
    pieces = [rows, [late, heartbeat(rows[-1]["time"] + 30_000_000)]]
    write_pieces(tmp_path / "events", [table(piece) for piece in pieces])
    made = correlate(stream_of(spark, tmp_path / "events"), LIBRARY, lateness="2 s", buckets=2)

    got = collected(made, tmp_path / "checkpoint")

    assert found([row for row in got if row["ensue_kind"] == "output"]) == expected(rows)
    (put_aside,) = [row for row in got if row["ensue_kind"] == "late"]
    assert (put_aside["id"], put_aside["type"]) == ("late", "Reading")
    kept = json.loads(put_aside["ensue_left_out"])
    assert kept["data"] == {"Sensor": late["Sensor"], "Value": 0.5}
    assert put_aside["ensue_problems"] == [
        "it came late: the order of events was settled up to 2023-11-14T22:13:21.6Z before it"
    ]


def test_events_that_are_not_settled_wait_for_the_clock(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = readings(20, Random(3))
    write_pieces(tmp_path / "events", [table(rows)])
    made = correlate(stream_of(spark, tmp_path / "events"), LIBRARY, lateness="1 h", buckets=1)

    assert collected(made, tmp_path / "checkpoint") == []


def test_split_gives_outputs_with_the_columns_of_a_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_pieces(tmp_path / "events", [table(readings(4, Random(4)))])
    stream = correlate(stream_of(spark, tmp_path / "events"), LIBRARY)
    batch = correlate(spark.read.parquet(str(tmp_path / "events")), LIBRARY)

    outputs, left_out = split(stream)

    assert outputs.dtypes == batch.dtypes
    assert left_out.columns == ["id", "source", "type", "time", "kind", "event", "problems"]


@pytest.mark.parametrize("whole_events", [False, True])
def test_rows_that_are_no_events_are_put_out_with_their_problems_and_touch_nothing(
    spark: SparkSession, tmp_path: Path, whole_events: bool
) -> None:
    rows = readings(20, Random(5))
    far_ahead = rows[-1]["time"] + 10**10
    bad = [
        rows[3] | {"id": None, "time": far_ahead},
        rows[3] | {"id": "", "time": far_ahead},
        rows[3] | {"id": "x", "type": None, "time": far_ahead},
        rows[3] | {"id": "nan", "Value": float("nan"), "time": far_ahead},
    ]
    end = heartbeat(rows[-1]["time"] + 30_000_000)
    pieces = [[*bad[:2], *rows[:9]], [bad[2]], [*rows[9:], bad[3]], [end]]
    write_pieces(tmp_path / "events", [table(piece) for piece in pieces])
    stream = stream_of(spark, tmp_path / "events")
    made = correlate(stream, LIBRARY, lateness="2 s", buckets=2, whole_events=whole_events)

    got = collected(made, tmp_path / "checkpoint")
    alone = collected(rejected(stream, LIBRARY), tmp_path / "checkpoint of rejected")

    assert found([row for row in got if row["ensue_kind"] == "output"]) == expected(rows)
    left_out = [row for row in got if row["ensue_kind"] != "output"]
    assert {row["ensue_kind"] for row in left_out} == {"rejected"}
    assert sorted(row["ensue_problems"] for row in left_out) == [
        ['`id` must be a non-empty string; given is ""'],
        ["`id` must be a non-empty string; it is missing"],
        ["`type` must be a non-empty string; it is missing"],
        ["attribute `Value` of `Reading`: nan was given, a `double` (a finite number) is needed"],
    ]
    assert sorted((row["row"], row["problems"]) for row in alone) == sorted(
        (row["ensue_left_out"], row["ensue_problems"]) for row in left_out
    )


def test_explain_tells_which_rules_share_their_state_and_shows_the_plan_of_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_pieces(tmp_path / "events", [table(readings(4, Random(4)))])
    stream = stream_of(spark, tmp_path / "events")

    text = explain(stream, LIBRARY, lateness="2 s", buckets=3, spark_plan=True)

    assert text.startswith("3 rules in one shuffle and one state, whatever their keys\n")
    assert "\nlateness: 2 s; events wait in the state for as long\n" in text
    assert "state 1: by `Sensor`, 3 buckets\n  rules: Jump, Silence\n" in text
    assert "state 2: together, one bucket\n  rules: Extremes\n  cost: " in text
    assert text.count("\n(") > 3
    assert text.count("hashpartitioning(group") == 1


def test_explain_tells_what_very_many_stores_of_state_cost(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_pieces(tmp_path / "events", [table(readings(4, Random(4)))])
    stream = stream_of(spark, tmp_path / "events")
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)

    assert "setting" not in explain(stream, LIBRARY, idle="1 min")
    spark.conf.set(name, "200")
    try:
        assert f"setting: with `{name}` at 200, a micro-batch" in explain(stream, LIBRARY)
    finally:
        spark.conf.set(name, str(before))


def test_explain_takes_what_correlate_takes() -> None:
    taken = set(signature(explain).parameters) - {"spark_plan"}

    assert taken == set(signature(correlate).parameters)


def test_what_has_no_meaning_for_a_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_pieces(tmp_path / "events", [table(readings(4, Random(4)))])
    stream = stream_of(spark, tmp_path / "events")

    with pytest.raises(UsageError, match="`until`"):
        correlate(stream, LIBRARY, until="2024-01-01T00:00:00Z")
    with pytest.raises(UsageError, match="`order`"):
        correlate(stream, LIBRARY, order=True)
    with pytest.raises(UsageError, match="`buckets` is 0"):
        correlate(stream, LIBRARY, buckets=0)


def test_what_the_stream_cannot_give_is_said_before_it_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_pieces(tmp_path / "events", [table(readings(4, Random(4)))])
    stream = stream_of(spark, tmp_path / "events")
    as_text = stream.withColumn("Value", stream["Value"].cast("string"))

    with pytest.raises(UsageError, match=r"`\w+` reads .* `Reading`.*`Value`.*has no column"):
        correlate(stream.drop("Value"), LIBRARY)
    with pytest.raises(UsageError, match=r"`\w+` reads.*`Value`.*the column `Value` is `string`"):
        correlate(as_text, LIBRARY)
    with pytest.raises(UsageError, match="`Value`, which is to tell the order of arrival"):
        correlate(stream, LIBRARY, arrival="Value")
    with pytest.raises(UsageError, match=r"no column `Sensr`.*`Sensor`"):
        correlate(stream, LIBRARY, arrival="Sensr")


def test_what_has_no_meaning_for_a_bounded_input_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_pieces(tmp_path / "events", [table(readings(4, Random(4)))])

    with pytest.raises(UsageError, match="`lateness` and `buckets` are for streams"):
        correlate(spark.read.parquet(str(tmp_path / "events")), LIBRARY, lateness="1 s")


def test_a_stream_that_correlate_has_made_is_refused_before_it_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_pieces(tmp_path / "events", [table(readings(2, Random(1)))])
    outputs, _ = split(correlate(stream_of(spark, tmp_path / "events"), LIBRARY, buckets=1))
    over = "eventtype Alarm { attribute long Sensor; }; Alarm ecl Any (Alarm a) { a }"

    with pytest.raises(UsageError, match=r"made by `correlate` already.*into the same library"):
        correlate(outputs, over, buckets=1)


def test_no_column_for_workers_is_nested(spark: SparkSession, tmp_path: Path) -> None:
    """While the bytes of a batch are limited, Spark visits every nested field at every row."""
    write_pieces(tmp_path, [table(readings(3, Random(1)))])
    rows = StreamJob.of(stream_of(spark, tmp_path), LIBRARY).rows()

    assert not [each.name for each in rows.schema if "<" in each.dataType.simpleString()]

"""`correlate`: what a user of DataFrames sees."""

from __future__ import annotations

import contextlib
import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import ensue
from ensue.errors import LibraryError, UsageError
from ensue.spark import correlate, explain, rejected
from ensue.spark.batch.job import BatchOptions, Job

LIBRARY = """
eventtype Reading { attribute long Sensor; attribute double Value; attribute string Note; };
eventtype Alarm { attribute long Sensor; attribute double Rise; };
Alarm correlation Jump (Reading low where Value < 10.0, Reading high where Value >= 10.0)
    low ; high within 1 min by Sensor
{ case true: push new Alarm { Sensor = high.Sensor, Rise = high.Value - low.Value }; }
"""
SCHEMA = "id string, type string, time timestamp, Sensor int, Value double, Note string"
START = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def reading(number: int, sensor: int | None, value: float | None, **other: Any) -> tuple[Any, ...]:
    row = {
        "id": f"e{number}",
        "type": "Reading",
        "time": START + timedelta(seconds=number),
        "Sensor": sensor,
        "Value": value,
        "Note": "n",
    } | other
    return tuple(row.values())


def frame(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), SCHEMA)


def found(outputs: DataFrame) -> list[tuple[Any, ...]]:
    rows = outputs.select("trigger", "causes", "partitionkey", "Sensor", "Rise").collect()
    return sorted(tuple(row) for row in rows)


def test_outputs_have_typed_columns_and_say_where_they_come_from(spark: SparkSession) -> None:
    outputs = correlate(frame(spark, reading(1, 7, 2.5), reading(2, 7, 12.0)), LIBRARY)

    assert found(outputs) == [("e2", "e1,e2", "7", 7, 9.5)]
    assert dict(outputs.dtypes) == {
        **dict.fromkeys(["id", "source", "type", "correlation", "trigger", "labels"], "string"),
        **dict.fromkeys(["causes", "partitionkey"], "string"),
        "time": "timestamp",
        "Sensor": "int",
        "Rise": "double",
    }


def test_columns_may_have_other_names(spark: SparkSession) -> None:
    events = frame(spark, reading(1, 7, 2.5), reading(2, 7, 12.0))
    names = {"type": "event_name", "time": "ts", "id": "uuid", "Value": "celsius"}
    renamed = events.withColumnsRenamed(names)

    assert found(correlate(renamed, LIBRARY, names)) == [("e2", "e1,e2", "7", 7, 9.5)]


def test_data_may_be_a_struct_or_json(spark: SparkSession) -> None:
    events = frame(spark, reading(1, 7, 2.5), reading(2, 7, 12.0), reading(3, 7, None))
    data = sf.struct("Sensor", "Value", "Note")
    whole = events.select("id", "type", "time", data.alias("data"))
    text = events.select("id", "type", "time", sf.to_json(data).alias("data"))

    assert found(correlate(whole, LIBRARY)) == [("e2", "e1,e2", "7", 7, 9.5)]
    assert found(correlate(text, LIBRARY)) == [("e2", "e1,e2", "7", 7, 9.5)]
    # In JSON the third event lacks `Value`, where a struct has it as null.
    assert rejected(whole, LIBRARY).count() == 0
    assert rejected(text, LIBRARY).count() == 1


def test_an_empty_frame_and_a_single_event_put_out_nothing(spark: SparkSession) -> None:
    assert correlate(frame(spark), LIBRARY).count() == 0
    assert correlate(frame(spark, reading(1, 7, 2.5)), LIBRARY).count() == 0


def test_rows_with_nulls_are_kept_apart_with_all_that_is_wrong(spark: SparkSession) -> None:
    events = frame(
        spark,
        reading(1, 7, 2.5),
        reading(2, None, 12.0),
        reading(3, 7, 99.0, time=None),
        reading(4, 7, 99.0, type=None),
        reading(5, 7, 99.0, id=None),
        reading(6, 7, float("nan")),
        reading(7, None, None, Note=None),
        reading(8, 7, 12.0),
    )
    problems = [row["problems"] for row in rejected(events, LIBRARY).collect()]

    assert found(correlate(events, LIBRARY)) == [("e8", "e1,e8", "7", 7, 9.5)]
    assert sorted(problems) == [
        ["`id` must be a non-empty string; it is missing"],
        ["`time` is missing"],
        ["`type` must be a non-empty string; it is missing"],
        [
            "attribute `Value` of `Reading`: nan was given, a `double` (a finite number) is needed",
        ],
    ]


def test_one_key_may_have_nearly_all_events(spark: SparkSession) -> None:
    rows = [reading(n, 7 if n % 50 else 8, float(n % 20)) for n in range(400)]
    events = frame(spark, *rows)

    assert found(correlate(events, LIBRARY, partitions=5)) == found(
        correlate(events, LIBRARY, partitions=1, order=True)
    )


TWO_KEYS = """
eventtype Other { attribute long Sensor; };
eventtype A { attribute long Sensor; };
eventtype B { attribute long Sensor; };
eventtype Found { attribute long Sensor; };
Found correlation ByKey (A a) a by Sensor { case true: push new Found { Sensor = a.Sensor }; }
Found correlation Alone (B b) b { case true: push new Found { Sensor = b.Sensor }; }
Found correlation After (B b, Found f from outside, ByKey, Alone where Sensor = 7) b ; f
{ case true: push new Found { Sensor = 0 }; }
"""


def test_events_of_one_time_keep_their_order_between_rules_of_different_keys(
    spark: SparkSession,
) -> None:
    rows = [
        reading(number, sensor, None, type=name, time=START)
        for number, (name, sensor) in enumerate([("Other", 1), ("B", 1), ("A", 7)])
    ]
    outputs = correlate(frame(spark, *rows).coalesce(1), TWO_KEYS, order=True).orderBy("order")

    assert [(row["correlation"], row["trigger"]) for row in outputs.collect()] == [
        ("Alone", "e1"),
        ("ByKey", "e2"),
        ("After", f"ByKey:e2@{int(START.timestamp()) * 10**6}:7:1"),
    ]


def test_a_partition_that_does_not_fit_is_sorted_on_disk(spark: SparkSession) -> None:
    rows = [reading((n * 37) % 400, n % 3, float((n * 37) % 20)) for n in range(400)]
    events = frame(spark, *rows)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "16")
    try:
        small = Job.of(events, LIBRARY, options=BatchOptions(sort_buffer_bytes=1000)).outputs()

        assert found(small) == found(correlate(events, LIBRARY))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_filters_and_columns_are_pushed_down_to_parquet(
    spark: SparkSession, tmp_path: Path
) -> None:
    library = LIBRARY.replace("Value >= 10.0", "Value >= 20.0 AND Note = 'x'").replace(
        "Value < 10.0", "Value < 10.0 AND Note = 'x'"
    )
    frame(spark, reading(1, 7, 2.5)).withColumn("Unused", sf.lit("u")).write.parquet(
        str(tmp_path / "events")
    )
    plan = plan_text(correlate(spark.read.parquet(str(tmp_path / "events")), library))

    pushed = re.search(r"PushedFilters: \[(.*)\]", plan)
    read = re.search(r"ReadSchema: (.*)", plan)
    assert pushed is not None
    assert read is not None
    for part in (
        "EqualTo(type,Reading)",
        "EqualTo(Note,x)",
        "IsNotNull(Sensor)",
        "LessThan(Value,10.0)",
    ):
        assert part in pushed[1]
    assert "Unused" not in read[1]
    assert len(re.findall(r"^\(\d+\) Exchange", plan, re.MULTILINE)) == 1


def test_columns_that_no_rule_needs_are_not_even_read(spark: SparkSession, tmp_path: Path) -> None:
    frame(spark, reading(1, 7, 2.5)).write.parquet(str(tmp_path / "events"))
    plan = plan_text(correlate(spark.read.parquet(str(tmp_path / "events")), LIBRARY))

    assert "Note" not in plan


def plan_text(outputs: DataFrame) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        outputs.explain("formatted")
    return printed.getvalue()


def test_rules_that_share_a_key_share_a_shuffle(spark: SparkSession) -> None:
    first = LIBRARY.index("Alarm correlation")
    second = LIBRARY[first:].replace("Jump", "Jump2").replace("1 min", "2 min")
    third = LIBRARY[first:].replace("Jump", "Jump3").replace("by Sensor", "")
    events = frame(spark, reading(1, 7, 2.5))
    text = explain(events, LIBRARY + second + third, partitions=4)

    assert text.startswith("3 rules in 2 shuffles\n")
    assert "by `Sensor`, 4 partitions\n  rules: Jump, Jump2\n" in text
    assert "no key, one partition\n  rules: Jump3\n" in text


def test_explain_tells_which_predicates_run_in_python(spark: SparkSession) -> None:
    library = LIBRARY.replace("Value < 10.0", "Value < 10.0 AND UPPER(Note) = 'X'")
    text = explain(frame(spark), library)

    assert "asked in the worker: `UPPER(Note) = 'X'` of port `low` of `Jump`" in text


def test_a_missing_column_is_said_before_anything_runs(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"`Jump` reads events of type `Reading`.*`Value`"):
        correlate(frame(spark).drop("Value"), LIBRARY)
    with pytest.raises(UsageError, match="no column `id`"):
        correlate(frame(spark).drop("id"), LIBRARY)
    with pytest.raises(UsageError, match="no column `time`"):
        correlate(frame(spark).drop("time"), LIBRARY)
    with pytest.raises(UsageError, match=r"`tyme`.*none of that name"):
        correlate(frame(spark), LIBRARY, {"time": "tyme"})


def test_a_column_of_a_type_that_never_fits_is_said_before_anything_runs(
    spark: SparkSession,
) -> None:
    events = frame(spark).withColumn("Value", sf.lit("warm"))

    with pytest.raises(UsageError, match=r"`Jump`.*`Value`.*the column `Value` is `string`"):
        correlate(events, LIBRARY)


def test_a_library_with_mistakes_is_refused(spark: SparkSession) -> None:
    with pytest.raises(LibraryError, match="there is no port"):
        correlate(frame(spark), LIBRARY.replace("low ; high", "low ; hihg"))
    with pytest.raises(UsageError, match="no correlation `Jumps`"):
        correlate(frame(spark), LIBRARY, correlations=["Jumps"])


CLAUSES = """
eventtype Tick { attribute long Key; attribute double Price; attribute string host.name; };
eventtype Stop { attribute long Key; };
eventtype Fall { attribute long Key; attribute double Sum; attribute string Where; };
Fall correlation Below (Tick a, Tick b) a ; b by Key keep last bind latest
    having b.Price < a.Price * 0.9
{ case true: push new Fall { Key = b.Key, Where = b.host.name }; }
Fall correlation Total (Tick t, Stop s) t ; s within 1 min by Key
    having count(t) > 1 AND sum(t.Price) > 3.0
{ case true: push new Fall { Key = s.Key, Sum = sum(t.Price) }; }
Fall correlation Unbroken (Tick a where host.name = 'x', Tick b where host.name = 'y', Stop s)
    a ; b by Key unless s bind latest
{ case true: push new Fall { Key = b.Key, Sum = b.Price - a.Price }; }
"""


@pytest.mark.parametrize("order", [False, True])
def test_conditions_over_several_events_read_the_columns_that_they_name(
    spark: SparkSession, order: bool
) -> None:
    random = Random(4)
    table = pa.table(
        {
            "id": [f"e{n}" for n in range(300)],
            "type": random.choices(["Tick", "Tick", "Stop"], k=300),
            "time": pa.array(range(0, 300_000_000, 1_000_000), pa.timestamp("us", "UTC")),
            "Key": pa.array(random.choices(range(3), k=300), pa.int32()),
            "Price": [random.random() * 5 for _ in range(300)],
            "host.name": random.choices(["x", "y", None], k=300),
        }
    )

    found = correlate(spark.createDataFrame(table), CLAUSES, order=order)
    wanted = ensue.correlate(table, CLAUSES)

    assert found.drop("order").columns == wanted.schema.names
    names = ("id", "correlation", "causes", "Sum", "Where")
    rows = [
        tuple(row[n] for n in names)
        for row in (found.orderBy("order") if order else found).collect()
    ]
    expected = [tuple(row[n] for n in names) for row in wanted.to_pylist()]
    assert len(expected) > 50
    assert {each[1] for each in expected} == {"Below", "Total", "Unbroken"}
    assert (rows if order else sorted(rows, key=str)) == (
        expected if order else sorted(expected, key=str)
    )


TIMED = """
eventtype Reading { attribute long Sensor; attribute double Value; attribute string Note; };
eventtype Alarm { attribute long Sensor; attribute double Rise; };
Alarm correlation Quiet (Reading r, every 1 s t) t by Sensor { case true: push new Alarm {}; }
Alarm correlation Low (Reading r where Value < 10.0) r
{ case true: push new Alarm { Sensor = r.Sensor }; }
"""


@pytest.mark.parametrize("whole_events", [False, True])
@pytest.mark.parametrize("order", [False, True])
def test_events_of_the_far_future_are_rejected_and_move_no_clock(
    spark: SparkSession, whole_events: bool, order: bool
) -> None:
    far = datetime(9990, 1, 1, tzinfo=UTC)
    rows = [reading(n, n % 3, 1.0) for n in range(6)]
    rows += [reading(7, 1, 1.0, time=far), reading(8, 9, 1.0, time=far + timedelta(days=1))]
    events = frame(spark, *rows)
    outputs = correlate(events, TIMED, whole_events=whole_events, order=order)
    near = correlate(frame(spark, *rows[:6]), TIMED, whole_events=whole_events, order=order)

    # Positions have to do with how rows were given.
    assert sorted(outputs.drop("order").collect()) == sorted(near.drop("order").collect())
    left_out = rejected(events, TIMED).collect()
    assert sorted(json.loads(row["row"])["id"] for row in left_out) == ["e7", "e8"]
    assert all("too far ahead" in row["problems"][0] for row in left_out)


def test_the_largest_jump_can_be_set_and_lifted(spark: SparkSession) -> None:
    events = frame(spark, reading(1, 7, 2.5), reading(2, 7, 2.5), reading(40, 7, 12.0))

    assert found(correlate(events, LIBRARY, max_jump="10 s")) == []
    assert len(found(correlate(events, LIBRARY, max_jump="none"))) == 1
    assert len(found(correlate(events, LIBRARY, max_jump="1 min"))) == 1

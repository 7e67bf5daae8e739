"""Clocks that disagree, gaps that fire very many timers, and states that are signed."""

from __future__ import annotations

from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

import ensue
from ensue.errors import SnapshotError, UsageError
from ensue.spark import correlate
from ensue.spark.dispatch import rejected
from ensue.spark.streaming.bucket import run_bucket
from ensue.spark.streaming.chunks import from_bytes, pack_events
from ensue.spark.streaming.column_chunks import pack_columns
from ensue.spark.streaming.config import parse_config
from ensue.spark.streaming.job import StreamJob, StreamOptions
from tests.spark.streaming.sensors import START, table
from tests.spark.streaming.simulation import SimulatedStream, State

RULES = """
eventtype Reading { attribute long Sensor; attribute double Value; };
eventtype Alarm {};
Alarm correlation Gone (Reading r, deadline 10 s gone) gone by Sensor
{ case true: push new Alarm {}; }
Alarm correlation Pair (Reading r) r{2} by Sensor { case true: push new Alarm {}; }
"""
SECOND = 1_000_000
KEY = b"a key of sixteen bytes or more"


def reading(number: int, time: int, sensor: int = 1) -> dict[str, Any]:
    return {"id": f"e{number}", "type": "Reading", "time": time, "Sensor": sensor, "Value": 1.0}


def of_2023(count: int, first: int = 100) -> list[dict[str, Any]]:
    return [reading(first + n, START + (first + n) * SECOND) for n in range(count)]


def job(spark: SparkSession, rows: list[dict[str, Any]], **options: Any) -> StreamJob:
    frame = spark.createDataFrame(table(rows)).coalesce(1)
    chosen = StreamOptions(**({"buckets": 2} | options))
    return StreamJob.of(frame, ensue.parse(RULES), options=chosen)


def read(
    spark: SparkSession, batches: list[list[dict[str, Any]]], **options: Any
) -> list[list[dict[str, Any]]]:
    stream: SimulatedStream | None = None
    found = []
    for rows in batches:
        made = job(spark, rows, **options)
        states = stream.states if stream else {}
        stream = SimulatedStream(made.task)
        stream.states = states
        found.append(stream.read([made.rows().toArrow()]))
    return found


@pytest.mark.parametrize("whole_events", [False, True])
def test_a_stream_that_begins_in_1970_goes_on_where_most_events_are(
    spark: SparkSession, whole_events: bool
) -> None:
    batches = [[reading(1, 0), reading(2, SECOND)], of_2023(2), of_2023(2, 102), of_2023(10, 104)]
    first, second, third, fourth = read(spark, batches, whole_events=whole_events)

    assert [row["correlation"] for row in first] == ["Pair"]
    assert {row["ensue_kind"] for row in second} == {"rejected"}
    # The clock begins anew with the third event that agrees, and so with all of its micro-batch.
    assert [row["correlation"] for row in third] == ["Pair"]
    assert {row["ensue_kind"] for row in third} == {"output"}
    assert [row["correlation"] for row in fourth].count("Pair") == 5
    assert {row["ensue_kind"] for row in fourth} == {"output"}


def test_one_micro_batch_is_read_from_where_most_of_its_events_are(spark: SparkSession) -> None:
    year_9999 = reading(9, 253_370_764_800 * SECOND)
    [made] = read(spark, [[reading(1, 0), *of_2023(10), year_9999]])

    assert sorted(row["ensue_kind"] for row in made) == ["output"] * 5 + ["rejected"]
    assert [row["correlation"] for row in made if row["ensue_kind"] == "output"] == ["Pair"] * 5


def test_events_of_9999_move_no_clock_however_many_they_are(spark: SparkSession) -> None:
    far = [reading(1000 + n, 253_370_764_800 * SECOND + n) for n in range(300)]
    first, second, third = read(spark, [of_2023(2), far, of_2023(2, 102)])

    assert len(first) == 1
    assert [row["ensue_kind"] for row in second] == ["rejected"] * 300
    assert [row["ensue_kind"] for row in third] == ["output"]


def test_a_bounded_input_is_read_where_most_events_are(spark: SparkSession) -> None:
    rows = [reading(1, 0), reading(2, SECOND), *of_2023(10), reading(9, 253_370_764_800 * SECOND)]
    frame = spark.createDataFrame(table(rows)).coalesce(2)
    expected = ensue.correlate(table(of_2023(10)), ensue.parse(RULES))
    made = correlate(frame, RULES).collect()
    left_out = rejected(frame, RULES).collect()

    assert len(made) == len(expected) == 5
    assert sum("too far behind" in row["problems"][0] for row in left_out) == 2
    assert sum("too far ahead" in row["problems"][0] for row in left_out) == 1


@pytest.mark.parametrize("whole_events", [False, True])
def test_memory_does_not_grow_with_a_gap(spark: SparkSession, whole_events: bool) -> None:
    """Outputs go to Spark as they are made, and rows without anything push them on."""
    keys, hours = 40, 6
    begun = [reading(n, START, n) for n in range(keys)]
    later = [reading(1000, START + hours * 3600 * SECOND)]
    task = job(spark, begun, buckets=1, whole_events=whole_events).task._replace(
        rows_held=100, bytes_held=100_000
    )
    states: dict[Any, State] = {}
    count = largest = 0
    empty = 0
    for rows in (begun, later):
        frame = job(spark, rows, buckets=1, whole_events=whole_events).rows().toArrow()
        pack = pack_columns if task.form == "columns" else pack_events
        packed = [
            row
            for batch in pack(tuple(task), iter(frame.to_batches()))
            for row in batch.to_pylist()
        ]
        for key in sorted({(row["group"], row["bucket"]) for row in packed}):
            own = pd.DataFrame([row for row in packed if (row["group"], row["bucket"]) == key])
            held = states.setdefault(key, State()).states
            for made in run_bucket(tuple(task), key, iter([own]), held):
                for chunk in made["chunk"]:
                    if chunk is None:
                        empty += 1
                    else:
                        rows_made = from_bytes(chunk).num_rows
                        count += rows_made
                        largest = max(largest, rows_made)

    assert count == keys * hours * 360 + 1
    assert largest <= 2 * max(8192, 1 << 17)
    assert largest < count or not whole_events
    assert empty >= 100


def test_a_signed_state_goes_on_only_with_its_key(spark: SparkSession) -> None:
    assert len(read(spark, [of_2023(1), of_2023(1, 101)], key=KEY)[1]) == 1

    for first, second, match in (
        (KEY, None, "is signed"),
        (None, KEY, "is not signed"),
        (KEY, KEY + b"!", "not signed with this `key`"),
    ):
        stream = SimulatedStream(job(spark, of_2023(1), key=first).task)
        stream.read([job(spark, of_2023(1)).rows().toArrow()])
        other = SimulatedStream(job(spark, of_2023(1), key=second).task)
        other.states = stream.states
        with pytest.raises(SnapshotError, match=match):
            other.read([job(spark, of_2023(1, 101)).rows().toArrow()])


def test_a_signed_state_stays_in_its_bucket_and_as_it_is(spark: SparkSession) -> None:
    rows = [reading(n, START, n) for n in range(40)]
    made = job(spark, rows, key=KEY)
    stream = SimulatedStream(made.task)
    stream.read([made.rows().toArrow()])
    one, other = (stream.states[name] for name in sorted(stream.states)[:2])
    for own, foreign in ((one.head, other.head), (one.parts, other.parts)):
        right = own[0]

        own[0] = foreign[0]
        with pytest.raises(SnapshotError, match="was changed"):
            stream.read([made.rows().toArrow()])

        own[0] = right[:-1] + bytes([right[-1] ^ 1])
        with pytest.raises(SnapshotError, match="was changed"):
            stream.read([made.rows().toArrow()])
        own[0] = right


CONFIG = """
[source]
format = "parquet"
path = "events/"
schema = "id string, type string, time timestamp, Sensor int"
[stream]
checkpoint = "checkpoint/"
key = "%s"
[sink]
format = "parquet"
path = "matches/"
"""


def test_a_file_refers_to_the_key(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAM_KEY", KEY.decode())
    (tmp_path / "key").write_bytes(KEY + b"\n")
    for reference in ("${env:STREAM_KEY}", f"${{file:{tmp_path / 'key'}}}"):
        assert parse_config(CONFIG % reference).stream.signing_key == KEY

    monkeypatch.setenv("SHORT", "abc")
    for given, match in (
        ("a secret that was written here", r"\$\{env:NAME\}"),
        ("${env:NOT_THERE}", "no variable `NOT_THERE`"),
        ("${env:SHORT}", "16 bytes or more"),
        ("${file:/not/there}", "cannot be read"),
    ):
        with pytest.raises(UsageError, match=match) as error:
            parse_config(CONFIG % given)
        assert "secret" not in str(error.value)

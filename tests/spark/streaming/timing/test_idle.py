"""An idle time: the wall clock moves timers once nothing comes, the same way after a restart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import ensue
from ensue.errors import UsageError
from ensue.spark import correlate
from ensue.spark.streaming.chunks import StreamTask
from tests.spark.streaming.cutting import write_pieces
from tests.spark.streaming.sensors import LIBRARY, START, table
from tests.spark.streaming.simulation import SimulatedStream

IDLE = 10_000_000
WALL = START + 3_600_000_000
"""The wall clock, an hour after the times of the events."""
SECOND = 1_000_000


def reading(number: int, second: float) -> dict[str, Any]:
    at = START + int(second * SECOND)
    return {"id": f"e{number}", "type": "Reading", "time": at, "Sensor": 7, "Value": 5.0}


def rows_of(rows: Sequence[dict[str, Any]]) -> list[pa.Table]:
    batch = table(rows).combine_chunks().to_batches()
    return [pa.table({"row": batch[0].to_struct_array()})] if batch else []


@pytest.fixture
def stream() -> SimulatedStream:
    library = str(ensue.parse(LIBRARY))
    return SimulatedStream(StreamTask(library, ("Silence",), 0, 2, "events", idle=IDLE))


def triggers(made: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(row["trigger"], row["time"].second) for row in made if row["ensue_kind"] == "output"]


def test_timers_fire_after_the_idle_time_and_not_before(stream: SimulatedStream) -> None:
    assert stream.read(rows_of([reading(1, 0)]), tick=WALL) == []
    assert stream.read([], tick=WALL + IDLE - 1) == []

    made = stream.read([], tick=WALL + IDLE)

    assert triggers(made) == [("timer", 23)]
    assert stream.read([], tick=WALL + 2 * IDLE) == []


def test_while_events_come_old_ones_too_the_wall_clock_moves_nothing(
    stream: SimulatedStream,
) -> None:
    for number in range(5):
        assert stream.read(rows_of([reading(number, number)]), tick=WALL + 4 * number * IDLE) == []


def test_an_event_from_before_the_time_of_silence_is_late(stream: SimulatedStream) -> None:
    stream.read(rows_of([reading(1, 0)]), tick=WALL)
    stream.read([], tick=WALL + IDLE)

    (late,) = stream.read(rows_of([reading(2, 100)]), tick=WALL + IDLE + SECOND)

    assert (late["id"], late["ensue_kind"]) == ("e2", "late")


def test_silence_before_any_event_is_nothing(stream: SimulatedStream) -> None:
    assert stream.read([], tick=WALL) == []
    assert stream.read([], tick=WALL + 5 * IDLE) == []
    assert not any(state.size for state in stream.states.values())


def test_a_micro_batch_that_is_repeated_gives_the_same(stream: SimulatedStream) -> None:
    stream.read(rows_of([reading(1, 0)]), tick=WALL)
    before = deepcopy(stream.states)
    made = stream.read([], tick=WALL + IDLE)
    after = deepcopy(stream.states)

    stream.states = before

    assert stream.read([], tick=WALL + IDLE) == made
    assert stream.states == after


def opened(spark: SparkSession, folder: Path) -> DataFrame:
    write_pieces(folder, [table([reading(1, 0)])])
    schema = "id string, type string, time timestamp, Sensor int, Value double"
    return spark.readStream.schema(schema).parquet(str(folder))


def test_the_ticks_are_a_source_of_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    events = opened(spark, tmp_path / "events")
    made = correlate(events, LIBRARY, correlations=["Silence"], buckets=1, idle="1 s")
    query = made.writeStream.format("memory").queryName("idle").start()
    try:
        end = time.monotonic() + 120
        while not spark.table("idle").count() and time.monotonic() < end:
            time.sleep(1)
        found = [(row["trigger"], row["Sensor"]) for row in spark.table("idle").collect()]
    finally:
        query.stop()

    assert found == [("timer", 7)]


def test_an_idle_time_below_a_tick_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    events = opened(spark, tmp_path / "events")

    with pytest.raises(UsageError, match="at least a second"):
        correlate(events, LIBRARY, correlations=["Silence"], idle="10 ms")

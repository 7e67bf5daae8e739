"""The parts of a bucket: which of them a micro-batch needs, and that outputs do not show them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ensue
from ensue.engine.batch.input.column import attribute_column
from ensue.engine.batch.input.key_hashes import bucket_of, hashes_of_columns, hashes_of_keys
from ensue.engine.ports import key_value
from ensue.spark.streaming.job import StreamJob, StreamOptions
from ensue.spark.streaming.parts import SPLITS_OF_OTHERS, parts_of

from .sensors import LIBRARY, found, readings, table
from .simulation import SimulatedStream
from .test_bucket import JUMP, SILENCE, TYPES, reading

SMALL = 2000
"""So few bytes a part that it has a few keys."""


class Stream:
    """A simulated stream with small parts."""

    def __init__(self, spark: SparkSession, part_bytes: int = SMALL, **options: Any) -> None:
        self._spark, self._part_bytes = spark, part_bytes
        self._options = {"buckets": 1} | options
        self._states: dict[Any, Any] = {}

    def read(self, rows: Sequence[dict[str, Any]], library: str) -> list[dict[str, Any]]:
        frame = self._spark.createDataFrame(table(rows)).coalesce(1)
        options = StreamOptions(**self._options)
        job = StreamJob.of(frame, ensue.parse(library), options=options)
        stream = SimulatedStream(job.task._replace(part_bytes=self._part_bytes))
        stream.states = self._states
        made = stream.read([job.rows().toArrow()])
        self.measures = stream.measures
        return made

    @property
    def slices(self) -> set[int]:
        return {number for state in self._states.values() for number in state.slices}


def begun(keys: int) -> list[dict[str, Any]]:
    return [reading(key, 0.0002 * key, key, 1.0) for key in range(keys)]


@pytest.mark.parametrize("whole_events", [False, True])
def test_a_micro_batch_needs_the_parts_of_its_events(
    spark: SparkSession, whole_events: bool
) -> None:
    stream = Stream(spark, whole_events=whole_events)
    stream.read(begun(1500), TYPES + JUMP)
    assert stream.measures.parts > 5

    made = stream.read([reading(2000, 1, 7, 15.0), reading(2001, 1, 8, 15.0)], TYPES + JUMP)

    assert sorted(row["causes"] for row in made) == ["e7,e2000", "e8,e2001"]
    assert stream.measures.parts_read <= 2 + SPLITS_OF_OTHERS
    assert stream.measures.parts_written <= 2 + 2 * SPLITS_OF_OTHERS

    for number in range(8):
        stream.read([reading(2002 + number, 2, 7, 1.0)], TYPES + JUMP)
    assert stream.measures.parts_read <= 1 + SPLITS_OF_OTHERS < stream.measures.parts


@pytest.mark.parametrize("whole_events", [False, True])
def test_timers_are_due_in_parts_to_which_no_event_comes(
    spark: SparkSession, whole_events: bool
) -> None:
    stream = Stream(spark, whole_events=whole_events)
    stream.read(begun(1500), TYPES + SILENCE)
    for number in range(8):
        stream.read([reading(2000 + number, 2, 5000, 1.0)], TYPES + SILENCE)
    assert stream.measures.parts_read <= 1 + SPLITS_OF_OTHERS < stream.measures.parts

    made = stream.read([reading(2008, 2.5, 5000, 1.0), reading(2009, 3.1, 0, 1.0)], TYPES + SILENCE)
    assert len(made) == 501
    made += stream.read([reading(2010, 14, 0, 1.0)], TYPES + SILENCE)

    assert len({(row["Sensor"], row["time"]) for row in made}) == 1500 + 2


@pytest.mark.parametrize("whole_events", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_outputs_do_not_show_how_many_parts_there_are(
    spark: SparkSession, whole_events: bool, seed: int
) -> None:
    """Parts split between micro-batches, and events wait for the lateness in slices."""
    random = Random(seed)
    rows = readings(300, random)
    results = []
    for part_bytes in (1, SMALL, 1 << 20):
        stream = Stream(spark, part_bytes, lateness="3 s", whole_events=whole_events)
        made = []
        for first in range(0, 300, 60):
            made += stream.read(rows[first : first + 60], LIBRARY)
        results.append((found(made), stream.measures.parts))

    outputs, parts = zip(*results, strict=True)
    assert outputs[0] == outputs[1] == outputs[2] != []
    assert parts[0] > parts[2]


def test_a_part_that_was_not_read_loses_what_belongs_to_a_rule_that_was_gone(
    spark: SparkSession,
) -> None:
    stream = Stream(spark)
    stream.read(begun(100), TYPES + JUMP + SILENCE)
    stream.read([reading(500, 1, 5, 5.0)], TYPES + SILENCE)
    made = stream.read([reading(501, 2, 6, 15.0)], TYPES + JUMP + SILENCE)
    assert made == []

    stream.read([reading(502, 3, 7, 1.0)], TYPES + JUMP)
    made = stream.read([reading(503, 4, 7, 15.0), reading(504, 4, 8, 15.0)], TYPES + JUMP)
    assert [row["causes"] for row in made] == ["e502,e503"]


def test_a_part_that_was_not_read_keeps_what_belongs_to_a_rule_that_stayed(
    spark: SparkSession,
) -> None:
    stream = Stream(spark)
    stream.read(begun(100), TYPES + JUMP)
    stream.read([reading(500, 1, 5, 5.0)], TYPES + JUMP + SILENCE)

    made = stream.read([reading(501, 2, 6, 15.0)], TYPES + JUMP)

    assert [row["causes"] for row in made] == ["e6,e501"]


@pytest.mark.parametrize("first", [False, True])
def test_keys_are_found_when_the_form_of_events_changes(spark: SparkSession, first: bool) -> None:
    stream = Stream(spark, buckets=3, whole_events=first)
    stream.read(begun(60), TYPES + JUMP)
    stream._options["whole_events"] = not first

    made = stream.read([reading(100 + key, 1, key, 15.0) for key in range(60)], TYPES + JUMP)

    assert len(made) == 60


def test_events_that_wait_are_appended_and_not_written_again(spark: SparkSession) -> None:
    stream = Stream(spark, lateness="1 min")
    seen: list[set[int]] = []
    for number in range(6):
        stream.read([reading(number, 10 * number, 1, 1.0)], TYPES + JUMP)
        seen.append(stream.slices)
    assert all(before <= after for before, after in pairwise(seen))
    assert len(seen[-1]) == 6

    stream.read([reading(99, 200, 1, 15.0)], TYPES + JUMP)

    assert not stream.slices & seen[-1]


def test_a_part_holds_the_keys_that_are_looked_for_in_it() -> None:
    hashes = hashes_of_keys([(key_value(number),) for number in range(5000)])
    for count in (1, 2, 3, 7, 8, 100):
        parts, more = parts_of(hashes, count), parts_of(hashes, count + 1)
        assert set(parts.tolist()) == set(range(count))
        moved = parts != more
        assert set(more[moved].tolist()) == {count}
        assert len(set(parts[moved].tolist())) == 1


@pytest.mark.parametrize(
    "values",
    [
        ["a", "", "ß∂", "x" * 40],
        [0, -1, 2**63 - 1, -(2**63)],
        [1.0, -5.0, 0.5, 1e300],
        [True, False],
    ],
)
def test_a_key_has_one_hash_in_columns_and_in_saved_states(values: list[Any]) -> None:
    column = attribute_column(pa.array(values))
    assert column is not None
    in_columns = hashes_of_columns([column])

    assert in_columns.tolist() == [bucket_of((key_value(value),)) for value in values]
    assert in_columns.tolist() == hashes_of_keys([(key_value(v),) for v in values]).tolist()
    assert len(np.unique(in_columns)) == len(values)


def test_whole_reals_are_the_keys_of_integers() -> None:
    assert bucket_of((key_value(5.0),)) == bucket_of((key_value(5),))
    assert bucket_of((key_value(float(2**62)),)) == bucket_of((key_value(2**62),))

"""What buckets keep between micro-batches, and what becomes of it when rules change."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import ensue
from ensue.engine.batch import Path
from ensue.errors import SnapshotError
from ensue.spark.streaming import bucket, engines
from ensue.spark.streaming.job import StreamJob, StreamOptions, default_buckets
from tests.engine.forged_snapshots import changed

from .sensors import LIBRARY, START, as_found, event_of, found, readings, table
from .simulation import SimulatedStream

TYPES, JUMP, SILENCE, EXTREMES = (
    LIBRARY[: LIBRARY.index("Alarm correlation")],
    LIBRARY[LIBRARY.index("Alarm correlation") : LIBRARY.index("Alarm ecl")],
    LIBRARY[LIBRARY.index("Alarm ecl") : LIBRARY.index("Alarm correlation Extremes")],
    LIBRARY[LIBRARY.index("Alarm correlation Extremes") :],
)


def reading(number: int, second: float, sensor: int, value: float) -> dict[str, Any]:
    time = START + int(second * 1_000_000)
    return {"id": f"e{number}", "type": "Reading", "time": time, "Sensor": sensor, "Value": value}


class Stream:
    """A simulated stream whose rules, lateness and form may change between micro-batches."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._stream: SimulatedStream | None = None

    def read(
        self, rows: Sequence[dict[str, Any]], library: str, **options: Any
    ) -> list[dict[str, Any]]:
        frame = self._spark.createDataFrame(table(rows)).coalesce(1)
        job = StreamJob.of(
            frame, ensue.parse(library), options=StreamOptions(**({"buckets": 2} | options))
        )
        states = self._stream.states if self._stream else {}
        self._stream = SimulatedStream(job.task)
        self._stream.states = states
        return self._stream.read([job.rows().toArrow()])

    @property
    def size(self) -> int:
        assert self._stream is not None
        return self._stream.size


@pytest.fixture
def stream(spark: SparkSession) -> Stream:
    return Stream(spark)


@pytest.mark.parametrize("whole_events", [False, True])
def test_the_state_does_not_grow_with_keys_that_are_done(
    stream: Stream, whole_events: bool
) -> None:
    sizes = []
    for batch in range(4):
        keys = range(batch * 300, batch * 300 + 300)
        rows = [reading(2 * key, key, key, 1.0) for key in keys]
        rows += [reading(2 * key + 1, key + 0.5, key, 15.0) for key in keys]
        made = stream.read(rows, TYPES + JUMP, whole_events=whole_events)
        assert len(made) == 300
        sizes.append(stream.size)

    assert max(sizes) < sizes[0] + 1000


def test_a_rule_with_timers_that_ran_by_events_goes_on_in_columns(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From where it was, its timers included: so it is with checkpoints of earlier versions."""
    with monkeypatch.context() as patched:
        patched.setattr(engines, "path_on_machine", lambda _: (Path("events"), None))
        stream.read([reading(1, 1, 1, 1.0), reading(2, 2, 2, 1.0)], TYPES + JUMP + SILENCE)
    bucket._context_of.cache_clear()
    made = stream.read([reading(3, 10, 1, 15.0)], TYPES + JUMP + SILENCE)

    assert sorted((each["correlation"], each["trigger"], each["causes"]) for each in made) == [
        ("Jump", "e3", "e1,e3"),
        ("Silence", "timer", ""),
        ("Silence", "timer", ""),
    ]


@pytest.mark.parametrize("whole_events", [False, True])
def test_an_event_of_the_far_future_is_rejected_and_moves_no_clock(
    stream: Stream, whole_events: bool
) -> None:
    """In the first micro-batch, in a later one, and told once, whichever rule would read it."""
    library, far = TYPES + JUMP + SILENCE, 250_000_000_000
    first = [reading(1, 1, 1, 1.0), reading(2, far, 2, 1.0)]
    made = stream.read(first, library, whole_events=whole_events)
    assert [row["ensue_kind"] for row in made] == ["rejected"]
    assert "too far ahead" in made[0]["ensue_problems"][0]
    second = [reading(3, far, 1, 15.0), reading(4, 10, 1, 15.0)]
    made = stream.read(second, library, whole_events=whole_events)

    found = sorted((row["ensue_kind"], row["correlation"], row["trigger"]) for row in made)
    assert found == [
        ("output", "Jump", "e4"),
        ("output", "Silence", "timer"),
        ("rejected", None, None),
    ]


def test_the_largest_jump_of_a_stream_can_be_set_and_lifted(stream: Stream) -> None:
    rows = [reading(1, 1, 1, 1.0), reading(2, 50, 1, 15.0)]
    made = stream.read(rows, TYPES + JUMP, max_jump="10 s")
    assert [row["ensue_kind"] for row in made] == ["rejected"]

    made = stream.read([reading(3, 50, 1, 15.0)], TYPES + JUMP, max_jump="none")
    assert [row["trigger"] for row in made] == ["e3"]


def test_a_checkpoint_of_another_number_of_buckets_is_refused(stream: Stream) -> None:
    stream.read([reading(1, 1, 1, 1.0)], TYPES + JUMP)

    with pytest.raises(SnapshotError, match=r"written with `buckets=2`.*started with 3"):
        stream.read([reading(2, 2, 1, 15.0)], TYPES + JUMP, buckets=3)


def test_a_large_cluster_gets_one_bucket_for_each_partition() -> None:
    assert [default_buckets(partitions) for partitions in (1, 2, 20, 200)] == [2, 4, 40, 200]


def test_an_unchanged_rule_keeps_its_state_when_others_come_and_go(stream: Stream) -> None:
    stream.read([reading(1, 1, 1, 1.0)], TYPES + JUMP + SILENCE)

    made = stream.read([reading(2, 2, 1, 15.0)], TYPES + EXTREMES + JUMP)

    assert [(row["correlation"], row["causes"]) for row in made] == [("Jump", "e1,e2")]


def test_a_replaced_rule_starts_afresh(stream: Stream) -> None:
    stream.read([reading(1, 1, 1, 1.0)], TYPES + JUMP)

    replaced = JUMP.replace("1 min", "2 min")

    assert stream.read([reading(2, 2, 1, 15.0)], TYPES + replaced) == []


def test_a_removed_rule_that_comes_back_starts_afresh(stream: Stream) -> None:
    stream.read([reading(1, 1, 1, 1.0)], TYPES + JUMP + SILENCE)
    stream.read([reading(2, 1, 2, 5.0)], TYPES + SILENCE)

    made = stream.read([reading(3, 2, 1, 15.0)], TYPES + JUMP + SILENCE)

    assert [row["correlation"] for row in made] == []


@pytest.mark.parametrize("first", [False, True])
def test_events_that_wait_are_read_when_the_form_of_events_changes(
    stream: Stream, first: bool
) -> None:
    library = TYPES + JUMP
    rows = [reading(1, 1, 1, 1.0), reading(2, 2, 1, 15.0)]
    assert stream.read(rows, library, lateness="5 s", whole_events=first) == []

    made = stream.read([reading(3, 20, 1, 1.0)], library, lateness="5 s", whole_events=not first)

    assert [(row["trigger"], row["Rise"]) for row in made] == [("e2", 14.0)]


@pytest.mark.parametrize("seed", range(3))
def test_with_an_event_a_micro_batch_the_same_events_are_late_as_everywhere(
    spark: SparkSession, seed: int
) -> None:
    random = Random(seed)
    rows = readings(60, random)
    random.shuffle(rows)
    rows.sort(key=lambda row: row["time"] + random.randrange(4_000_000))
    run = ensue.parse(LIBRARY).start("step", lateness="2 s")
    outputs = [output for row in rows for output in run.push(event_of(row))]
    job = StreamJob.of(
        spark.createDataFrame(table(rows)).coalesce(1),
        LIBRARY,
        options=StreamOptions(lateness="2 s"),
    )
    given = job.rows().toArrow()

    stream = SimulatedStream(job.task)
    made = [row for n in range(len(rows)) for row in stream.read([given.slice(n, 1)])]

    late = [row["id"] for row in made if row["ensue_kind"] == "late"]
    assert late == [event.id for event in run.late]
    assert len(late) > 2
    assert found([row for row in made if row["ensue_kind"] == "output"]) == sorted(
        as_found(output) for output in outputs
    )


@pytest.mark.parametrize("whole_events", [False, True])
def test_a_state_that_was_changed_on_purpose_is_refused_in_our_words_or_goes_on(
    stream: Stream, whole_events: bool
) -> None:
    options: dict[str, Any] = {"whole_events": whole_events, "lateness": "3 s"}
    rows = [reading(n, 0.7 * n, n % 5, float(n * 7 % 23)) for n in range(60)]
    stream.read(rows[:30], LIBRARY, **options)
    assert stream._stream is not None
    simulated = stream._stream
    right = deepcopy(simulated.states)
    frame = stream._spark.createDataFrame(table(rows[30:])).coalesce(1)
    job = StreamJob.of(frame, ensue.parse(LIBRARY), options=StreamOptions(buckets=2, **options))
    more = job.rows().toArrow()
    outcomes = set()
    for seed in range(60):
        random = Random(seed)
        attacked = random.choice(sorted(right))
        simulated.states = deepcopy(right)
        state = simulated.states[attacked]
        held = random.choice([each for each in (state.head, state.parts, state.slices) if each])
        place = random.choice(sorted(held))
        held[place] = changed(held[place], random)
        try:
            simulated.read([more])
            outcomes.add("went on")
        except ensue.EnsueError as error:
            outcomes.add(type(error).__name__)
    assert "SnapshotError" in outcomes

"""Streams of Spark: our rule beside the same one by hand, keys that pass through, and keys held.

By hand means `applyInPandasWithState` grouped by key, as Spark's own documentation has it: a state
for every key, and a loop over its rows in Python. Both read the same files, one or several for each
micro-batch, and throw away what they find, after it has been counted. What is told is the time of
whole micro-batches, planning and commits included, once the first of them have warmed up.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ensue_bench.effort import Effort
from ensue_bench.report import Curve, Figure, cost, rate
from ensue_bench.spark.jobs import CORES, KINDS, event_table, events, one_rule, write_file
from ensue_bench.timing import rates, ratios

TIMES_BY_HAND = 8
TIMES_WHEN_MANY_KEYS_HAVE_PASSED = 1.25
TIMES_WHEN_MANY_KEYS_ARE_HELD = 2
KEYS_HELD = (10_000, 100_000, 1_000_000)
EVENTS_AMONG_KEYS = (100, 10_000)
FILES_A_MICRO_BATCH = (1, 8)
WARMING_UP = 2
COUNTED = "ensue_counted"


@dataclass(frozen=True)
class MicroBatch:
    events: int
    seconds: float
    state_bytes: int
    outputs: int


def streams(effort: Effort, spark: Any, folder: Path) -> Iterator[Figure | Curve]:
    for files in FILES_A_MICRO_BATCH:
        yield from _steady(effort, spark, folder / f"steady-{files}", files)
    yield from _passing(effort, spark, folder / "passing")
    for count in EVENTS_AMONG_KEYS:
        yield from _held(effort, spark, folder / f"held-{count}", effort.size(count, count // 10))


def _held(effort: Effort, spark: Any, folder: Path, count: int) -> Iterator[Figure | Curve]:
    """Many keys are in the middle of a match, and micro-batches have events of few of them."""
    points = []
    sizes = KEYS_HELD[::2] if effort.quick else KEYS_HELD
    for keys in (effort.size(each, each // 100) for each in sizes):
        place = folder / str(keys)
        place.mkdir(parents=True)
        everyone = np.random.default_rng(0).permutation(keys)
        _write_round(place, 0, event_table(np.zeros(keys, int), everyone, np.zeros(keys)), 1)
        rounds = WARMING_UP + effort.times(7)
        for number in range(1, rounds):
            table = events(count, keys, keys + number * count, seed=number)
            _write_round(place, number, table, 1)
        batches = run(correlated(open_stream(spark, place, 1)), folder / f"checkpoint-{keys}")
        points.append((float(keys), tuple(_seconds(batches))))
    first, last = (statistics.median(values) for _, values in (points[0], points[-1]))
    note = f"{int(points[0][0]):,} and {int(points[-1][0]):,} keys"
    yield cost(
        f"stream: micro-batch of {count:,} events, many keys held to few",
        "times",
        [last / first],
        TIMES_WHEN_MANY_KEYS_ARE_HELD,
        note,
    )
    name = f"micro-batch of {count:,}"
    yield Curve("held-stream", name, "keys that are held", "s", tuple(points))


def _steady(effort: Effort, spark: Any, folder: Path, files: int) -> Iterator[Figure]:
    count, keys = effort.size(400_000, 500), effort.size(10_000, 20)
    folder.mkdir(parents=True)
    for number in range(WARMING_UP + effort.times(5)):
        _write_round(folder, number, events(count, keys, number * count, seed=number), files)
    by_hand = run(by_key(open_stream(spark, folder, files)), folder / "checkpoint-by-hand")
    ours = run(correlated(open_stream(spark, folder, files)), folder / "checkpoint")
    found = [sum(each.outputs for each in batches) for batches in (by_hand, ours)]
    if found[0] != found[1]:
        raise RuntimeError(f"the rule by hand found {found[0]} matches, and `correlate` {found[1]}")
    theirs, our_own = _seconds(by_hand), _seconds(ours)
    note = f"{count:,} events a micro-batch, {keys:,} keys"
    how = "one file" if files == 1 else f"{files} files"
    yield rate(f"stream, {how}: one rule", rates(count, our_own), note=note)
    yield rate(f"stream, {how}: the same by hand, by key", rates(count, theirs), note=note)
    name, values = f"stream, {how}: ahead of the rule by hand", tuple(ratios(theirs, our_own))
    yield Figure(name, "times", values, "higher", TIMES_BY_HAND)


def _passing(effort: Effort, spark: Any, folder: Path) -> Iterator[Figure | Curve]:
    """Every key has a beginning in one micro-batch and an end in the next, and is gone."""
    total, rounds = effort.size(10_000_000, 800), effort.size(40, 8)
    keys = total // rounds
    folder.mkdir(parents=True)
    for number in range(rounds):
        _write_round(folder, number, _round(number, keys), CORES)
    batches = run(correlated(open_stream(spark, folder, CORES)), folder / "checkpoint")
    steady = list(enumerate(batches))[WARMING_UP:]
    quarter = max(1, len(steady) // 4)
    first, last = (
        [each.seconds for _, each in part] for part in (steady[:quarter], steady[-quarter:])
    )
    yield cost(
        f"stream: micro-batch, last of {total:,} keys to first",
        "times",
        [statistics.median(last) / statistics.median(first)],
        TIMES_WHEN_MANY_KEYS_HAVE_PASSED,
        f"{len(steady)} micro-batches, {batches[-1].events:,} events each",
    )
    yield rate("stream: while they pass", [each.events / each.seconds for _, each in steady])
    chosen = steady if not effort.quick else [steady[0], steady[-1]]
    for name, unit, values in (
        ("micro-batch", "s", [each.seconds for _, each in chosen]),
        ("state", "MB", [each.state_bytes / 1e6 for _, each in chosen]),
    ):
        passed = [float((number + 1) * keys) for number, _ in chosen]
        points = tuple((size, (value,)) for size, value in zip(passed, values, strict=True))
        yield Curve(f"{name}-stream", name, "keys that have passed", unit, points)


def _write_round(folder: Path, number: int, table: pa.Table, files: int) -> None:
    """One micro-batch, in so many files."""
    for part in range(files):
        first, end = (each * len(table) // files for each in (part, part + 1))
        write_file(folder, number * files + part, table.slice(first, end - first))


def _round(number: int, keys: int) -> pa.Table:
    """New keys begin, with `a` and `b`; those of the round before end, half with `c`."""
    draw = np.random.default_rng(number)
    new = np.arange(number * keys, (number + 1) * keys)
    old = draw.permutation(new - keys) if number else new[:0]
    kinds = np.r_[np.repeat([0, 1], keys), 2 + (old % 2)]
    everyone = np.r_[draw.permutation(new), draw.permutation(new), old]
    return event_table(kinds, everyone, draw.random(len(kinds)), 3 * number * keys)


# --- queries ------------------------------------------------------------------------------------


def open_stream(spark: Any, folder: Path, files: int) -> Any:
    """The files of a folder, so many in a micro-batch."""
    schema = "id string, type string, time timestamp, Key int, Value double"
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", files)
    return reader.parquet(f"{folder}/*.parquet")


def correlated(stream: Any) -> Any:
    from ensue.spark import correlate

    return correlate(stream, one_rule())


def by_key(stream: Any) -> Any:
    """The rule as one would write it with Spark alone: what no rule wants is dropped here too."""
    wanted = stream.filter(stream["type"] != KINDS[-1]).select("id", "type", "time", "Key")
    return wanted.groupBy("Key").applyInPandasWithState(
        step_key, "Key int, trigger string, time timestamp", "stage int", "append", "NoTimeout"
    )


def step_key(key: tuple[int], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    import pandas as pd  # type: ignore[import-untyped]

    stage = state.get[0] if state.exists else 0
    found = []
    rows = pd.concat(list(frames)).sort_values("time")
    for identity, kind, time in zip(rows["id"], rows["type"], rows["time"], strict=True):
        if kind == "D":
            stage = 0
        elif kind == KINDS[stage]:
            stage += 1
            if stage == 3:
                found.append((key[0], identity, time))
                stage = 0
    state.update((stage,))
    if found:
        yield pd.DataFrame(found, columns=["Key", "trigger", "time"])


def run(made: Any, checkpoint: Path) -> list[MicroBatch]:
    """Read all there is, and tell what each micro-batch took."""
    from pyspark.sql import functions as sf

    made = made.observe(COUNTED, sf.count(sf.lit(1)).alias("rows"))
    writer = made.writeStream.format("noop").outputMode("append")
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    return [_micro_batch(each) for each in query.recentProgress if each.numInputRows]


def _micro_batch(progress: Any) -> MicroBatch:
    return MicroBatch(
        progress.numInputRows,
        progress.batchDuration / 1000,
        sum(each.memoryUsedBytes for each in progress.stateOperators),
        progress.observedMetrics[COUNTED]["rows"],
    )


def _seconds(batches: Sequence[MicroBatch]) -> list[float]:
    return [each.seconds for each in batches[WARMING_UP:]]

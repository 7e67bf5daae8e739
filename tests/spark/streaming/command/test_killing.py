"""`ensue stream` as a process: it runs to its end, and survives being killed at any point.

Two streams run side by side, one into Spark's own file sink and one that puts late events into a
sink of their own. Their drivers are killed again and again, until both together have been killed as
often as `ENSUE_KILLS` says: 20 times, unless it says otherwise. `ENSUE_SEED` chooses other events
and other moments.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.streaming.cutting import cut, write_pieces
from tests.spark.streaming.sensors import (
    LATENESS,
    arriving,
    expected,
    found,
    heartbeat,
    readings,
    table,
)

from .processes import committed, kill, log_of, planned, prepare, run_to_the_end, start

KILLS = int(os.environ.get("ENSUE_KILLS", "20"))
SEED = int(os.environ.get("ENSUE_SEED", "1"))
LONGEST_START = 900
FILES_A_LIFE = 3
"""About as many micro-batches as a driver has done when it is killed."""

Row = dict[str, Any]


def stream_with_late_events(random: Random, files: int) -> tuple[list[list[Row]], list[Row]]:
    """A stream as files, a micro-batch each, and the events in it that come too late.

    They are late by two files: where a driver is killed after it has listed a file and before it
    has planned the micro-batch, Spark reads that file and the next one together.
    """
    rows = readings(6 * files, random)
    came = arriving(rows, random)
    size = -(-len(came) // (files - 1))
    pieces = [came[n : n + size] for n in range(0, len(came), size)]
    late: list[Row] = []
    reached = list(accumulate((max(row["time"] for row in piece) for piece in pieces), max))
    for number, piece in enumerate(pieces[2:], 2):
        settled = reached[number - 2] - LATENESS
        if random.random() < 0.3:
            event = rows[0] | {"id": f"late{number}", "time": settled - random.randint(1, 999)}
            late.append(event)
            piece.insert(random.randrange(len(piece) + 1), event)
    return pieces, late


def test_a_driver_that_is_killed_at_random_moments_loses_nothing_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    shares = {"one sink": KILLS - KILLS // 2, "two sinks": KILLS // 2}
    with ThreadPoolExecutor(len(shares)) as lanes:
        running = [
            lanes.submit(check_stream, spark, tmp_path / name, kills, Random(f"{SEED} {name}"))
            for name, kills in shares.items()
        ]
        killed = [each.result() for each in running]

    assert killed == list(shares.values())


def check_stream(spark: SparkSession, folder: Path, kills: int, random: Random) -> int:
    """How often the stream was killed before it came to the right end."""
    pieces, late = stream_with_late_events(random, FILES_A_LIFE * kills + 3)
    files = [table(piece) for piece in pieces]
    bounds = [len(files) * life // (kills + 1) for life in range(kills + 2)]
    two_sinks = folder.name == "two sinks"
    prepare(
        folder, files[: bounds[1]], late_sink=two_sinks, together=not two_sinks, trigger="50 ms"
    )
    for first, end in pairwise(bounds[1:]):
        kill_at_a_random_moment(folder, random)
        # Each life has files of its own: a fast driver would else have nothing left to do.
        write_pieces(folder / "events", files[first:end], first=first)
    assert run_to_the_end(folder) == 0, log_of(folder)

    rows = [row.asDict() for row in spark.read.parquet(str(folder / "sink")).collect()]
    outputs = rows if two_sinks else [row for row in rows if row["ensue_kind"] == "output"]
    if two_sinks:
        aside = spark.read.parquet(str(folder / "late")).collect()
        put_aside = [row["id"] for row in aside]
    else:
        put_aside = [row["id"] for row in rows if row["ensue_kind"] == "late"]
    good = [row for piece in pieces[:-1] for row in piece if row not in late]
    good += [row for row in pieces[-1] if row not in late and row["Sensor"] is not None]
    good.sort(key=lambda row: int(row["id"].removeprefix("e")))
    assert found(outputs) == expected(good)
    assert sorted(put_aside) == sorted(row["id"] for row in late)
    return kills


def kill_at_a_random_moment(folder: Path, random: Random) -> None:
    before = planned(folder), committed(folder)
    process = start(folder)
    if random.random() < 0.8:
        # Most kills strike while micro-batches run, the others anywhere, the start included.
        deadline = time.monotonic() + LONGEST_START
        while (planned(folder), committed(folder)) == before and process.poll() is None:
            assert time.monotonic() < deadline, log_of(folder)
            time.sleep(0.02)
        time.sleep(random.random() * 2)
    else:
        time.sleep(random.random() * 8)
    assert process.poll() is None, log_of(folder)
    kill(process)


@pytest.mark.parametrize("named", [True, False])
def test_late_events_go_to_a_sink_of_their_own_and_progress_is_told(
    spark: SparkSession, tmp_path: Path, named: bool
) -> None:
    rows = readings(20, Random(2))
    late = rows[0] | {"id": "late"}
    last = [late, heartbeat(rows[-1]["time"] + 30_000_000)]
    pieces = [*cut(rows, Random(3), most=2), last]
    prepare(tmp_path, [table(piece) for piece in pieces], late_sink=named)

    assert run_to_the_end(tmp_path) == 0, log_of(tmp_path)

    got = [row.asDict() for row in spark.read.parquet(str(tmp_path / "sink")).collect()]
    put_aside = spark.read.parquet(str(tmp_path / ("late" if named else "sink-late"))).collect()
    lines = [line for line in log_of(tmp_path).splitlines() if line.startswith("batch ")]
    assert found(got) == expected(rows)
    assert [row["id"] for row in put_aside] == ["late"]
    assert len(lines) == len(pieces)
    assert ", 1 late, " in lines[-1]

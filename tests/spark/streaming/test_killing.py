"""`ensue stream` as a process: it runs to its end, and survives being killed at any point.

How often it is killed is in `ENSUE_KILLS`: three times, unless that says otherwise.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from .cutting import cut
from .processes import committed, kill, log_of, planned, prepare, start
from .sensors import arriving, expected, found, heartbeat, readings, table

KILLS = int(os.environ.get("ENSUE_KILLS", "3"))
SEED = int(os.environ.get("ENSUE_SEED", "1"))
LONGEST_START = 120


def test_a_driver_that_is_killed_at_random_moments_loses_nothing_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    random = Random(SEED)
    rows = readings(40 + 20 * KILLS, random)
    came = arriving(rows, random)
    pieces = 3 * KILLS + 2
    size = -(-len(came) // pieces)
    prepare(tmp_path, [table(came[n : n + size]) for n in range(0, len(came), size)])
    kills = 0
    while kills < KILLS:
        process = start(tmp_path)
        if random.random() < 0.8:
            # Most kills strike while micro-batches run, the others anywhere, the start included.
            before = planned(tmp_path), committed(tmp_path)
            deadline = time.monotonic() + LONGEST_START
            while (planned(tmp_path), committed(tmp_path)) == before and process.poll() is None:
                assert time.monotonic() < deadline, log_of(tmp_path)
                time.sleep(0.05)
            time.sleep(random.random() * 3)
        else:
            time.sleep(random.random() * 15)
        assert process.poll() in (None, 0), log_of(tmp_path)
        if process.poll() == 0:
            break
        kill(process)
        kills += 1
    assert kills == KILLS, f"the stream ended after {kills} kills: give it more files"

    assert start(tmp_path).wait(300) == 0, log_of(tmp_path)

    got = [row.asDict() for row in spark.read.parquet(str(tmp_path / "sink")).collect()]
    assert found(got) == expected(rows)


def test_late_events_go_to_a_sink_of_their_own_and_progress_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = readings(20, Random(2))
    late = rows[0] | {"id": "late"}
    last = [late, heartbeat(rows[-1]["time"] + 30_000_000)]
    pieces = [*cut(rows, Random(3), most=2), last]
    prepare(tmp_path, [table(piece) for piece in pieces], late_sink=True)

    assert start(tmp_path).wait(300) == 0, log_of(tmp_path)

    got = [row.asDict() for row in spark.read.parquet(str(tmp_path / "sink")).collect()]
    put_aside = spark.read.parquet(str(tmp_path / "late")).collect()
    lines = [line for line in log_of(tmp_path).splitlines() if line.startswith("batch ")]
    assert found(got) == expected(rows)
    assert [row["id"] for row in put_aside] == ["late"]
    assert len(lines) == len(pieces)
    assert ", 1 late, " in lines[-1]

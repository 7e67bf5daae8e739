"""Figures of a stream: what each micro-batch has read, put out, found late and kept."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from ensue.spark import correlate
from ensue.spark.streaming import Figures, FiguresListener

from .cutting import collected, stream_of, write_pieces
from .sensors import LIBRARY, expected, heartbeat, readings, table


def test_a_listener_is_told_what_every_micro_batch_has_done(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = readings(20, Random(2))
    last = [rows[0] | {"id": "late"}, heartbeat(rows[-1]["time"] + 30_000_000)]
    write_pieces(tmp_path / "events", [table(rows), table(last)])
    told: list[Figures] = []
    listener = FiguresListener(told.append)
    spark.streams.addListener(listener)
    try:
        made = correlate(stream_of(spark, tmp_path / "events"), LIBRARY, lateness="2 s", buckets=2)
        collected(made, tmp_path / "checkpoint")
        deadline = time.monotonic() + 30
        while sum(each.events for each in told) < 22 and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        spark.streams.removeListener(listener)

    wanted = expected(rows)
    assert [each.events for each in told if each.events] == [20, 2]
    assert sum(each.late for each in told) == 1
    for rule in ("Jump", "Silence", "Extremes"):
        count = sum(name == rule for name, *_ in wanted)
        assert sum(each.outputs.get(rule, 0) for each in told) == count
    final = [each for each in told if each.events][-1]
    assert final.state_bytes > 0
    assert final.buckets == 3
    assert final.latest is not None
    assert final.latest.timestamp() == (rows[-1]["time"] + 30_000_000) / 1_000_000
    assert final.lag_seconds is not None
    assert final.lag_seconds > 0

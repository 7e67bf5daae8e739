"""Figures of a stream: what each micro-batch has read, put out, found late and kept."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ensue.spark import correlate
from ensue.spark.streaming import Figures, FiguresListener

from .cutting import collected, stream_of, write_pieces
from .sensors import LIBRARY, expected, heartbeat, readings, table

LONGEST_WAIT = 300


def is_extreme(row: dict[str, Any]) -> bool:
    return not 1.0 <= row["Value"] <= 19.0


@pytest.mark.parametrize("whole_events", [False, True])
def test_a_listener_is_told_what_every_micro_batch_has_done_for_every_rule(
    spark: SparkSession, tmp_path: Path, whole_events: bool
) -> None:
    rows = readings(20, Random(2))
    last = [
        rows[0] | {"id": "late"},
        rows[0] | {"id": "bad", "Value": float("nan")},
        heartbeat(rows[-1]["time"] + 30_000_000),
    ]
    write_pieces(tmp_path / "events", [table(rows), table(last)])
    told: list[Figures] = []
    name = f"figures-{whole_events}"
    # What earlier queries have done is told later than they end.
    listener = FiguresListener(lambda each: told.append(each) if each.query == name else None)
    spark.streams.addListener(listener)
    try:
        stream = stream_of(spark, tmp_path / "events")
        made = correlate(stream, LIBRARY, lateness="2 s", buckets=2, whole_events=whole_events)
        collected(made, tmp_path / "checkpoint", name)
        deadline = time.monotonic() + LONGEST_WAIT
        while sum(each.events for each in told) < 23 and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        spark.streams.removeListener(listener)

    wanted = expected(rows)
    assert [each.events for each in told if each.events] == [20, 3]
    assert sum(each.late for each in told) == 1
    assert [each.rejected for each in told if each.events] == [0, 1]
    extreme = [row for row in rows if not 1.0 <= row["Value"] <= 19.0]
    read = {"Jump": 21, "Silence": 21, "Extremes": len(extreme) + is_extreme(rows[0])}
    late = {"Jump": 1, "Silence": 1, "Extremes": is_extreme(rows[0])}
    for rule in ("Jump", "Silence", "Extremes"):
        count = sum(name == rule for name, *_ in wanted)
        assert sum(each.outputs.get(rule, 0) for each in told) == count
        assert sum(each.rules[rule].events for each in told) == read[rule]
        assert sum(each.rules[rule].late for each in told) == late[rule]
        first = told[0].rules[rule]
        assert first.lag_seconds is not None
        assert first.lag_seconds > 0
    assert told[0].rules["Jump"].state_bytes > 0
    assert told[0].rules["Jump"].latest == told[0].latest
    assert json.loads(json.dumps(told[0].as_dict()))["rules"]["Jump"]["outputs"] >= 0
    final = [each for each in told if each.events][-1]
    assert final.state_bytes > 0
    assert final.buckets == 3
    assert final.latest is not None
    assert final.latest.timestamp() == (rows[-1]["time"] + 30_000_000) / 1_000_000
    assert final.lag_seconds is not None
    assert final.lag_seconds > 0

"""Rules that change while `ensue stream` runs."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from .cutting import write_pieces
from .processes import kill, log_of, prepare, start
from .sensors import LIBRARY, START, heartbeat, table

JUMP = LIBRARY[: LIBRARY.index("Alarm ecl")]
SILENCE = LIBRARY[LIBRARY.index("Alarm ecl") : LIBRARY.index("Alarm correlation Extremes")]
LONGEST_WAIT = 120


def reading(number: int, second: int, value: float) -> dict[str, Any]:
    time_ = START + second * 1_000_000
    return {"id": f"e{number}", "type": "Reading", "time": time_, "Sensor": 1, "Value": value}


def wait_for(folder: Path, text: str) -> None:
    deadline = time.monotonic() + LONGEST_WAIT
    while text not in log_of(folder):
        if time.monotonic() > deadline:
            pytest.fail(f"`{text}` was never said:\n{log_of(folder)}")
        time.sleep(0.1)


def test_changed_rules_take_effect_and_unchanged_ones_keep_their_state(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = [reading(1, 1, 1.0), heartbeat(START + 5_000_000)]
    prepare(tmp_path, [table(first)], library=JUMP, trigger="500 ms")
    process = start(tmp_path)
    try:
        wait_for(tmp_path, "batch 0: 2 events")
        (tmp_path / "rules" / "silence.cor").write_text(SILENCE.replace("repeat", "repaet"))
        wait_for(tmp_path, "those of before go on")
        (tmp_path / "rules" / "silence.cor").write_text(SILENCE)
        wait_for(tmp_path, "the rules have changed: added `Silence`")
        second = [reading(2, 6, 15.0), heartbeat(START + 30_000_000)]
        write_pieces(tmp_path / "events", [table(second)], first=1)
        wait_for(tmp_path, "2 outputs")
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 0, log_of(tmp_path)
    finally:
        if process.poll() is None:
            kill(process)

    rows = spark.read.parquet(str(tmp_path / "sink")).orderBy("time").collect()
    assert [(row["correlation"], row["trigger"], row["causes"]) for row in rows] == [
        ("Jump", "e2", "e1,e2"),
        ("Silence", "timer", ""),
    ]

"""Rules that change while `ensue stream` runs, in a folder and in a table."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.spark.streaming.cutting import write_pieces
from tests.spark.streaming.sensors import LIBRARY, START, heartbeat, table

from .processes import kill, log_of, prepare, start

TYPES = LIBRARY[: LIBRARY.index("Alarm correlation")]
JUMP = LIBRARY[LIBRARY.index("Alarm correlation") : LIBRARY.index("Alarm ecl")]
SILENCE = LIBRARY[LIBRARY.index("Alarm ecl") : LIBRARY.index("Alarm correlation Extremes")]
LONGEST_WAIT = 900


def wait_for(folder: Path, text: str) -> None:
    deadline = time.monotonic() + LONGEST_WAIT
    while text not in log_of(folder):
        if time.monotonic() > deadline:
            pytest.fail(f"`{text}` was never said:\n{log_of(folder)}")
        time.sleep(0.1)


class Stream:
    """A stream over files in a folder, which is fed and looked at from outside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # The first file is there from the beginning, and is empty.
        self._files = 1

    def feed(self, *rows: dict[str, Any]) -> None:
        write_pieces(self.folder / "events", [table(rows)], first=self._files)
        self._files += 1

    def wait_for(self, text: str) -> None:
        wait_for(self.folder, text)

    def feed_and_wait(self, *rows: dict[str, Any]) -> None:
        """Feed a micro-batch, and wait until it has been told of."""
        told = log_of(self.folder).count("\nbatch ")
        self.feed(*rows)
        deadline = time.monotonic() + LONGEST_WAIT
        while log_of(self.folder).count("\nbatch ") == told:
            assert time.monotonic() < deadline, log_of(self.folder)
            time.sleep(0.1)


@contextmanager
def running(folder: Path) -> Iterator[Stream]:
    process = start(folder)
    try:
        yield Stream(folder)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(LONGEST_WAIT) == 0, log_of(folder)
    finally:
        if process.poll() is None:
            kill(process)


def reading(name: str, second: int, value: float) -> dict[str, Any]:
    time_ = START + second * 1_000_000
    return {"id": name, "type": "Reading", "time": time_, "Sensor": 1, "Value": value}


def beat(second: int) -> dict[str, Any]:
    return heartbeat(START + second * 1_000_000)


def found(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    rows = spark.read.parquet(str(folder / "sink")).orderBy("time", "correlation").collect()
    return [(row["correlation"], row["trigger"], row["causes"], row["Rise"]) for row in rows]


def test_rules_of_a_folder_are_added_replaced_and_removed_while_a_stream_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A process of its own starts Spark, and six micro-batches follow on four changes."""
    prepare(tmp_path, [table([])], library=TYPES, trigger="100 ms")
    rules = tmp_path / "rules"
    (rules / "jump.cor").write_text(JUMP)
    with running(tmp_path) as stream:
        stream.feed_and_wait(reading("low", 1, 1.0), beat(5))

        # What is broken is told with its place, and the rules of before go on.
        (rules / "silence.cor").write_text(SILENCE.replace("repeat", "repaet"))
        stream.wait_for("the old rules go on")
        assert re.search(r"silence\.cor:2:\d+: error: .*\n.*repaet.*\n *\| *\^", log_of(tmp_path))

        # What is added takes effect, and an unchanged rule keeps its state.
        (rules / "silence.cor").write_text(SILENCE)
        stream.wait_for("the rules have changed: added `Silence`")
        stream.feed_and_wait(reading("high", 6, 15.0), beat(30))

        # What is replaced starts afresh; the other one keeps its state.
        stream.feed_and_wait(reading("low2", 31, 1.0), beat(33))
        changed = JUMP.replace("high.Value - low.Value", "low.Value - high.Value")
        (rules / "jump.cor").write_text(changed)
        stream.wait_for("the rules have changed: replaced `Jump`")
        stream.feed_and_wait(reading("high2", 40, 15.0), beat(50))
        stream.feed_and_wait(reading("low3", 51, 2.0), reading("high3", 52, 12.0), beat(54))

        # What is removed puts out nothing more.
        (rules / "silence.cor").unlink()
        stream.wait_for("the rules have changed: removed `Silence`")
        stream.feed_and_wait(reading("low4", 55, 3.0), reading("high4", 56, 12.0), beat(90))

    assert found(spark, tmp_path) == [
        ("Jump", "high", "low,high", 14.0),
        ("Silence", "timer", "", None),
        # The one after `low2`, which it had read before the other rule was replaced, and the next.
        ("Silence", "timer", "", None),
        ("Silence", "timer", "", None),
        ("Jump", "high3", "low3,high3", -10.0),
        ("Jump", "high4", "low4,high4", -9.0),
    ]


def write_table(folder: Path, **texts: str) -> None:
    """The table written anew, in one step."""
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"name": list(texts), "text": list(texts.values())}), folder / "_new")
    (folder / "_new").rename(folder / "rules.parquet")


def test_rules_of_a_table_are_looked_at_while_a_stream_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A process of its own starts Spark, and looks at its rules every second."""
    prepare(tmp_path, [table([])], trigger="100 ms", rules_table=True)
    rules = tmp_path / "rules"
    write_table(rules, a_types=TYPES, jump=JUMP)
    with running(tmp_path) as stream:
        stream.feed_and_wait(reading("low", 1, 1.0), beat(5))

        write_table(rules, a_types=TYPES, jump=JUMP, silence=SILENCE.replace("Sensor", "Sensr"))
        # Those of before also go on if the table is read while it is being written.
        stream.wait_for("silence in table")
        stream.wait_for("did you mean `Sensor`")
        stream.wait_for("the old rules go on")

        write_table(rules, a_types=TYPES, jump=JUMP, silence=SILENCE)
        stream.wait_for("the rules have changed: added `Silence`")
        stream.feed_and_wait(reading("high", 6, 15.0), beat(30))

    assert found(spark, tmp_path) == [
        ("Jump", "high", "low,high", 14.0),
        ("Silence", "timer", "", None),
    ]

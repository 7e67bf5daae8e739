"""A micro-batch that was begun is finished with the rules that it was begun with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

import ensue
from ensue.spark.streaming.checkpoint.rules import record_rules, rules_of_planned_batch
from ensue.spark.streaming.config import parse_config
from ensue.spark.streaming.pipeline import start
from tests.spark.streaming.command.processes import CONFIG
from tests.spark.streaming.cutting import write_pieces
from tests.spark.streaming.sensors import LIBRARY, START, heartbeat, table

JUMP = LIBRARY[: LIBRARY.index("Alarm ecl")]
PAIRS = "Alarm correlation Pairs (Reading a, Reading b) a ; b { case true: push new Alarm { }; }"
NO_SESSION = cast(SparkSession, None)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """One in which the second micro-batch was planned and not committed."""
    for name in ("offsets/0", "offsets/1", "commits/0"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("v1")
    return tmp_path


def test_other_rules_than_those_of_a_begun_micro_batch_have_to_wait(checkpoint: Path) -> None:
    first, second = ensue.parse(JUMP), ensue.parse(LIBRARY)
    record_rules(NO_SESSION, str(checkpoint), first)

    found = rules_of_planned_batch(NO_SESSION, str(checkpoint), second)

    assert str(found) == str(first)
    assert rules_of_planned_batch(NO_SESSION, str(checkpoint), first) is None


def test_after_a_micro_batch_that_was_committed_nobody_has_to_wait(checkpoint: Path) -> None:
    record_rules(NO_SESSION, f"file://{checkpoint}", ensue.parse(JUMP))
    (checkpoint / "commits" / "1").write_text("v1")

    assert rules_of_planned_batch(NO_SESSION, str(checkpoint), ensue.parse(LIBRARY)) is None


def test_a_checkpoint_without_a_record_is_gone_on_from(checkpoint: Path) -> None:
    assert rules_of_planned_batch(NO_SESSION, str(checkpoint), ensue.parse(LIBRARY)) is None


def reading(name: str, second: int, value: float) -> dict[str, Any]:
    time = START + second * 1_000_000
    return {"id": name, "type": "Reading", "time": time, "Sensor": 1, "Value": value}


def test_a_new_rule_reads_nothing_of_a_micro_batch_that_was_begun_without_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = CONFIG.replace('"spark.sql.shuffle.partitions" = 1', "")
    config = parse_config(text.format(folder=tmp_path))
    pieces = [[reading("low", 1, 1.0)], [reading("high", 6, 15.0), heartbeat(START + 30_000_000)]]
    write_pieces(tmp_path / "events", [table(piece) for piece in pieces])
    start(spark, ensue.parse(JUMP), config).awaitTermination()
    # As if the driver had been killed after the second one was written, and before it was done.
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()

    more = [reading("a", 31, 2.0), reading("b", 32, 3.0), heartbeat(START + 60_000_000)]
    write_pieces(tmp_path / "events", [table(more)], first=2)
    start(spark, ensue.parse(JUMP + PAIRS), config).awaitTermination()

    rows = spark.read.parquet(str(tmp_path / "sink")).orderBy("time").collect()
    assert [(row["correlation"], row["trigger"]) for row in rows] == [
        ("Jump", "high"),
        ("Pairs", "b"),
    ]

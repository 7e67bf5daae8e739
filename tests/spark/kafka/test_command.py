"""`ensue stream` as a process over topics: killed at any point, and with rules that change.

How often it is killed is in `ENSUE_KAFKA_KILLS`: once, unless that says otherwise. What it left is
read to the end in the session of these tests; that the command itself goes on after a kill is told
over files, in `streaming/test_killing.py`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import ensue
from ensue.spark.streaming import pipeline
from ensue.spark.streaming.config import load_config
from tests.spark.streaming.command.processes import committed, kill, log_of, planned, start
from tests.spark.streaming.command.test_changing_rules import (
    JUMP,
    SILENCE,
    TYPES,
    reading,
    wait_for,
)
from tests.spark.streaming.sensors import (
    LIBRARY,
    START,
    arriving,
    expected,
    found,
    heartbeat,
    readings,
)

from .readings import record
from .topics import Kafka, Plain

Topic = Callable[[str], str]

KILLS = int(os.environ.get("ENSUE_KAFKA_KILLS", "1"))
SEED = int(os.environ.get("ENSUE_SEED", "1"))
LONGEST_RUN = 1200
CONFIG = """
[source]
format = "kafka"
servers = "{servers}"
topics = ["{source}"]
options = {{ maxOffsetsPerTrigger = 12 }}

[stream]
checkpoint = "{folder}/checkpoint"
lateness = "2 s"
buckets = 2
trigger = "{trigger}"

[spark]
"spark.sql.shuffle.partitions" = 1

[late]
format = "parquet"
path = "{folder}/late"

[rejected]
format = "parquet"
path = "{folder}/rejected"
"""
FILES = """
[sink]
format = "parquet"
path = "{folder}/sink"
"""
TOPIC = """
[sink]
format = "kafka"
topic = "{sink}"
"""


def prepare(
    folder: Path, kafka: Kafka, topic: Topic, sink: str, library: str, trigger: str
) -> None:
    (folder / "rules").mkdir()
    (folder / "rules" / "rules.cor").write_text(library)
    text = (CONFIG + sink).format(
        servers=kafka.servers,
        source=topic("in"),
        sink=topic("out"),
        folder=folder,
        trigger=trigger,
    )
    (folder / "stream.toml").write_text(text)


def test_a_driver_that_is_killed_loses_no_record_and_writes_none_twice_into_files(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    """A driver of Spark starts for each life, which takes ten seconds."""
    random = Random(SEED)
    rows = readings(40 + 20 * KILLS, random)
    came = [
        record(row, random.choice(["binary", "structured"]), 0) for row in arriving(rows, random)
    ]
    broken = [Plain(f"broken {number}".encode(), partition=1) for number in range(20)]
    kafka.write(topic("in"), [*came, *broken])
    prepare(tmp_path, kafka, topic, FILES, LIBRARY, "50 ms")
    for _ in range(KILLS):
        before = planned(tmp_path), committed(tmp_path)
        process = start(tmp_path)
        deadline = time.monotonic() + LONGEST_RUN
        while (planned(tmp_path), committed(tmp_path)) == before and process.poll() is None:
            assert time.monotonic() < deadline, log_of(tmp_path)
            time.sleep(0.05)
        time.sleep(random.random() * 2)
        assert process.poll() is None, log_of(tmp_path)
        kill(process)

    place = tmp_path / "stream.toml"
    place.write_text(place.read_text().replace('"50 ms"', '"available now"'))
    config = load_config(place)
    # A session of its own, for the configuration has settings of Spark.
    pipeline.start(kafka.spark.newSession(), ensue.parse(LIBRARY), config).awaitTermination()

    read = kafka.spark.read
    got = [row.asDict() for row in read.parquet(str(tmp_path / "sink")).collect()]
    assert found(got) == expected(rows)
    rejected = read.parquet(str(tmp_path / "rejected")).collect()
    assert sorted((row["partition"], row["offset"]) for row in rejected) == [
        (1, number) for number in range(20)
    ]
    assert read.parquet(str(tmp_path / "late")).count() == 0


def test_rules_that_change_take_effect_while_a_topic_is_read(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    """A process of its own starts Spark, and looks at its rules every second."""
    prepare(tmp_path, kafka, topic, TOPIC, TYPES + JUMP, "500 ms")
    first = [reading("e1", 1, 1.0), heartbeat(START + 5_000_000)]
    kafka.write(topic("in"), [record(row, "binary", 0) for row in first])
    process = start(tmp_path)
    try:
        wait_for(tmp_path, "batch 0: 2 events")
        (tmp_path / "rules" / "silence.cor").write_text(SILENCE)
        wait_for(tmp_path, "the rules have changed: added `Silence`")
        second = [reading("e2", 6, 15.0), heartbeat(START + 30_000_000)]
        kafka.write(topic("in"), [record(row, "binary", 0) for row in second])
        wait_for(tmp_path, "2 outputs")
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(LONGEST_RUN) == 0, log_of(tmp_path)
    finally:
        if process.poll() is None:
            kill(process)

    events = [json.loads(each.value or b"") for each in kafka.read(topic("out"))]
    assert sorted((event["correlation"], event["trigger"]) for event in events) == [
        ("Jump", "e2"),
        ("Silence", "timer"),
    ]

"""From topics to topics and files, as a configuration says."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import ensue
from ensue.errors import UsageError
from ensue.spark.streaming import pipeline
from ensue.spark.streaming.config import PipelineConfig, parse_config
from ensue.spark.streaming.sources import without_topics
from tests.spark.streaming.sensors import LIBRARY, expected, found, heartbeat, readings

from .readings import record
from .topics import Kafka, Plain

Topic = Callable[[str], str]

CONFIG = """
[source]
format = "kafka"
servers = "{servers}"
topics = ["{readings}"]

[stream]
checkpoint = "{folder}/checkpoint"
lateness = "2 s"
buckets = 1
"""
TO_TOPICS = """
[sink]
format = "kafka"
topic = "{matches}"
mode = "binary"
[late]
format = "kafka"
topic = "{late}"
[rejected]
format = "kafka"
topic = "{rejected}"
"""
TO_FILES = """
[sink]
format = "parquet"
path = "{folder}/matches"
[late]
format = "parquet"
path = "{folder}/late"
[rejected]
format = "parquet"
path = "{folder}/rejected"
"""
TO_ONE_SINK = """
[sink]
format = "parquet"
path = "{folder}/all"
together = true
"""


def config_of(text: str, kafka: Kafka, topic: Topic, folder: Path) -> PipelineConfig:
    names = {name: topic(name) for name in ("readings", "matches", "late", "rejected")}
    return parse_config((CONFIG + text).format(servers=kafka.servers, folder=folder, **names))


def run(kafka: Kafka, config: PipelineConfig) -> None:
    query = pipeline.start(kafka.spark, ensue.parse(LIBRARY), config)
    query.awaitTermination()


def test_outputs_late_events_and_refused_records_go_to_topics_of_their_own(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    config = config_of(TO_TOPICS, kafka, topic, tmp_path)
    rows = readings(20, Random(2))
    kafka.write(topic("readings"), [record(row, "binary", 0) for row in rows])
    run(kafka, config)
    late = record(rows[0] | {"id": "late"}, "binary", 0)
    end = record(heartbeat(rows[-1]["time"] + 30_000_000), "structured", 0)
    kafka.write(topic("readings"), [late, Plain(b"hello", b"k", (("trace", b"17"),), 0), end])
    run(kafka, config)

    matches = kafka.read(topic("matches"))
    (put_aside,) = kafka.read(topic("late"))
    (rejected,) = kafka.read(topic("rejected"))

    ids = sorted(identity for _, identity, *_ in expected(rows))
    assert sorted(each.header["ce_id"] for each in matches) == ids
    event = json.loads(put_aside.value or b"")
    assert (event["id"], event["kafkaoffset"]) == ("late", 20)
    assert event["data"] == {"Sensor": rows[0]["Sensor"], "Value": rows[0]["Value"]}
    assert (rejected.key, rejected.value) == (b"k", b"hello")
    assert rejected.header["trace"] == "17"
    assert rejected.header["ensue_topic"] == topic("readings")
    assert (rejected.header["ensue_partition"], rejected.header["ensue_offset"]) == ("0", "21")
    assert "no JSON" in rejected.header["ensue_problems"]


def test_a_pattern_that_no_topic_matches_is_said(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    text = CONFIG.replace('topics = ["{readings}"]', 'pattern = "none-of-.*"') + TO_ONE_SINK
    config = parse_config(text.format(servers=kafka.servers, folder=tmp_path))
    query = pipeline.start(kafka.spark, ensue.parse(LIBRARY), config)
    query.awaitTermination()

    said = [without_topics(config.source, each) for each in query.recentProgress]

    assert "no topic on" in (said[0] or "")
    assert "`none-of-.*`" in (said[0] or "")


def test_files_of_another_checkpoint_are_not_replaced(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    config = config_of(TO_FILES, kafka, topic, tmp_path)
    rows = readings(20, Random(2))
    end = heartbeat(rows[-1]["time"] + 30_000_000)
    kafka.write(topic("readings"), [record(row, "binary", 0) for row in [*rows, end]])
    run(kafka, config)

    got = kafka.spark.read.parquet(str(tmp_path / "matches")).collect()
    assert found([row.asDict() for row in got]) == expected(rows)
    assert kafka.spark.read.parquet(str(tmp_path / "rejected")).count() == 0
    (tmp_path / "checkpoint").rename(tmp_path / "lost")
    with pytest.raises(UsageError, match="micro-batches of another checkpoint"):
        run(kafka, config)


def test_with_one_sink_late_events_and_refused_records_are_among_its_rows(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    config = config_of(TO_ONE_SINK, kafka, topic, tmp_path)
    rows = readings(20, Random(2))
    end = record(heartbeat(rows[-1]["time"] + 30_000_000), "structured", 0)
    sent = [record(row, "binary", 0) for row in rows]
    kafka.write(topic("readings"), [*sent, Plain(b"hello", partition=0), end])

    run(kafka, config)

    got = [row.asDict() for row in kafka.spark.read.parquet(str(tmp_path / "all")).collect()]
    assert found([row for row in got if row["ensue_kind"] == "output"]) == expected(rows)
    (refused,) = [row for row in got if row["ensue_kind"] == "rejected"]
    assert json.loads(refused["ensue_left_out"])["offset"] == 20


def test_servers_that_do_not_answer_are_told_before_the_stream_starts(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        # It is taken, so that nobody else can be given it, and nobody listens.
        wrong = f"127.0.0.1:{unused.getsockname()[1]}"
        config = config_of(TO_FILES, Kafka(kafka.spark, wrong), topic, tmp_path)

        with pytest.raises(UsageError, match=f"no Kafka server answers.*{wrong}"):
            pipeline.start(kafka.spark, ensue.parse(LIBRARY), config)


def test_a_setting_that_cannot_be_changed_any_more_is_told(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    text = TO_FILES + '[spark]\n"spark.driver.memory" = "1g"\n'

    with pytest.raises(UsageError, match=r"`spark.driver.memory`.*spark-submit --conf"):
        pipeline.start(kafka.spark, ensue.parse(LIBRARY), config_of(text, kafka, topic, tmp_path))

"""What becomes of a stream whose broker dies, or whose topic is deleted, while it is read.

The broker is one of these tests' own, since the others would miss theirs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import ensue
from ensue.errors import UsageError
from ensue.spark.failures import FAILURES, reason_with_advice
from ensue.spark.kafka.broker import TrialBroker
from ensue.spark.streaming import pipeline
from ensue.spark.streaming.config import PipelineConfig, parse_config
from tests.spark.streaming.command.processes import committed
from tests.spark.streaming.sensors import LIBRARY, expected, found, heartbeat, readings

from .readings import record
from .topics import Kafka

LONGEST_WAIT = 900
CONFIG = """
[source]
format = "kafka"
servers = "{servers}"
topics = ["{topic}"]
options = {{ maxOffsetsPerTrigger = 10 }}

[stream]
checkpoint = "{folder}/checkpoint"
lateness = "2 s"
buckets = 1
trigger = "{trigger}"

[sink]
format = "parquet"
path = "{folder}/sink"
"""


@pytest.fixture(scope="module")
def broker(kafka: Kafka) -> Iterator[TrialBroker]:
    """Where the other one could be started, this one can be."""
    with TrialBroker(partitions=1) as broker:
        yield broker


def config_of(broker: TrialBroker, topic: str, folder: Path, trigger: str) -> PipelineConfig:
    text = CONFIG.format(servers=broker.servers, topic=topic, folder=folder, trigger=trigger)
    return parse_config(text)


def wait_until_committed(folder: Path, query: Any, count: int) -> None:
    deadline = time.monotonic() + LONGEST_WAIT
    while committed(folder) < count and query.isActive:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_broker_that_dies_and_comes_back_costs_no_record_and_doubles_none(
    kafka: Kafka, broker: TrialBroker, tmp_path: Path
) -> None:
    """A broker starts three times, and clients notice only after seconds that it is back."""
    topics = Kafka(kafka.spark, broker.servers)
    rows = readings(40, Random(4))
    end = heartbeat(rows[-1]["time"] + 30_000_000)
    topics.write("dying", [record(row, "binary", 0) for row in rows[:30]])
    library = ensue.parse(LIBRARY)
    query = pipeline.start(
        kafka.spark, library, config_of(broker, "dying", tmp_path, trigger="50 ms")
    )
    try:
        wait_until_committed(tmp_path, query, 1)
        broker.die()
        with pytest.raises(UsageError, match=r"no Kafka server answers"):
            pipeline.start(kafka.spark, library, config_of(broker, "dying", tmp_path / "b", "1 s"))
        broker.revive()
        topics.write("dying", [record(row, "binary", 0) for row in [*rows[30:], end]])
    finally:
        # It may have waited for the broker, or given up: it goes on from its checkpoint.
        query.stop()
    config = config_of(broker, "dying", tmp_path, trigger="available now")
    pipeline.start(kafka.spark, library, config).awaitTermination()

    got = [row.asDict() for row in kafka.spark.read.parquet(str(tmp_path / "sink")).collect()]
    assert found(got) == expected(rows)


def test_a_topic_that_is_deleted_while_it_is_read_ends_the_stream_with_words(
    kafka: Kafka, broker: TrialBroker, tmp_path: Path
) -> None:
    topics = Kafka(kafka.spark, broker.servers)
    rows = readings(20, Random(4))
    topics.write("deleted", [record(row, "binary", 0) for row in rows])
    config = config_of(broker, "deleted", tmp_path, trigger="50 ms")
    query = pipeline.start(kafka.spark, ensue.parse(LIBRARY), config)
    try:
        wait_until_committed(tmp_path, query, 2)
        delete_topic(kafka, broker.servers, "deleted")
        with pytest.raises(FAILURES) as raised:
            query.awaitTermination(LONGEST_WAIT)
    finally:
        query.stop()

    assert reason_with_advice(raised.value, config.stream.checkpoint).startswith(
        "a topic of `[source]` is not on its servers: look"
    )


def delete_topic(kafka: Kafka, servers: str, topic: str) -> None:
    """With Kafka's own client, which is in the session with the connector."""
    session: Any = kafka.spark
    gateway = session.sparkContext._gateway
    java = gateway.jvm.java
    loader = session._jsparkSession.sharedState().jarClassLoader()
    thread = java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    # The client looks for parts of itself there.
    thread.setContextClassLoader(loader)
    try:
        kinds = gateway.new_array(java.lang.Class, 1)
        kinds[0] = java.lang.Class.forName("java.util.Map")
        given = gateway.new_array(java.lang.Object, 1)
        given[0] = java.util.HashMap()
        given[0].put("bootstrap.servers", servers)
        admin = loader.loadClass("org.apache.kafka.clients.admin.Admin")
        client = admin.getMethod("create", kinds).invoke(None, given)
        client.deleteTopics(java.util.List.of(topic)).all().get()
        client.close()
    finally:
        thread.setContextClassLoader(before)

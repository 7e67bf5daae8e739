"""Rules over records of Kafka: what a user of `correlate_kafka` sees."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame

from ensue.errors import UsageError
from ensue.spark.streaming import split
from ensue.spark.streaming.kafka import correlate_kafka, records_of, refused
from ensue.spark.streaming.sinks import IN_FLIGHT
from tests.spark.streaming.cutting import collected
from tests.spark.streaming.sensors import (
    LIBRARY,
    START,
    arriving,
    expected,
    found,
    heartbeat,
    readings,
)

from .readings import record, records
from .topics import Kafka, Plain

Topic = Callable[[str], str]


def of_kind(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["ensue_kind"] == kind]


@pytest.mark.parametrize("most", [1000, 23])
def test_events_in_both_modes_put_out_what_the_reference_does_however_the_topic_is_cut(
    kafka: Kafka, topic: Topic, tmp_path: Path, most: int
) -> None:
    random = Random(5)
    rows = readings(60, random)
    *came, end = arriving(rows, random)
    kafka.write(topic("readings"), records(came, random))
    stream = kafka.stream(topic("readings"), maxOffsetsPerTrigger=most)
    # Longer than the partitions can be ahead of each other.
    made = correlate_kafka(stream, LIBRARY, lateness="20 s", buckets=2)

    got = collected(made, tmp_path)
    kafka.write(topic("readings"), records([end], random))
    got += collected(made, tmp_path)

    assert of_kind(got, "late") == []
    assert found(got) == expected(rows)


def test_records_that_are_no_events_are_put_out_with_the_reason_and_their_place(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    rows = readings(20, Random(6))
    good = [record(row, "binary", 0) for row in rows]
    misfit = rows[3] | {"id": "misfit", "Value": "warm"}
    future = rows[3] | {"id": "future", "time": START + 10**12, "Sensor": 2**40}
    bad = [
        Plain(b"hello", b"k", (("trace", b"17"),), 0),
        record(misfit, "structured", 0),
        record(future, "binary", 0),
    ]
    end = record(heartbeat(rows[-1]["time"] + 30_000_000), "structured", 0)
    kafka.write(topic("mixed"), [*good[:5], *bad, *good[5:], end])
    made = correlate_kafka(kafka.stream(topic("mixed")), LIBRARY, lateness="2 s", buckets=2)

    parts: list[Any] = []

    def keep(batch: DataFrame, number: int) -> None:
        batch.persist()
        parts.append([row.asDict() for row in split(batch)[0].collect()])
        parts.append([row.asDict(recursive=True) for row in refused(batch).collect()])

    query = made.writeStream.foreachBatch(keep).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path)).start().awaitTermination()

    outputs, put_aside = parts
    assert found(outputs) == expected(rows)
    put_aside.sort(key=lambda row: row["offset"])
    assert [(row["topic"], row["partition"], row["offset"]) for row in put_aside] == [
        (topic("mixed"), 0, 5),
        (topic("mixed"), 0, 6),
        (topic("mixed"), 0, 7),
    ]
    hello, warm, large = put_aside
    assert (hello["key"], hello["value"]) == (b"k", b"hello")
    assert hello["headers"] == [{"key": "trace", "value": b"17"}]
    assert "no JSON" in hello["problems"][0]
    assert "`Value` of `Reading`" in warm["problems"][0]
    assert "`Sensor` of `Reading`" in large["problems"][0]


PLACES = """
eventtype Reading { attribute long Sensor; attribute double Value; };
eventtype Pair { attribute string Key; attribute long long Between; };
Pair correlation Twice (Reading a where kafkapartition = 0, Reading b where kafkapartition = 0)
    a ; b by kafkakey bind first
{ case true: push new Pair { Key = b.kafkakey, Between = b.kafkaoffset - a.kafkaoffset }; }
"""


def test_rules_can_ask_for_the_key_the_partition_and_the_offset(
    kafka: Kafka, topic: Topic, tmp_path: Path
) -> None:
    rows = [{"id": f"e{n}", "type": "Reading", "Value": 1.0} for n in range(4)]
    sent = [
        record(row | {"time": START + n, "Sensor": sensor}, "binary", partition)
        for n, (row, sensor, partition) in enumerate(
            zip(rows, (7, 8, 7, 8), (0, 0, 0, 1), strict=True)
        )
    ]
    kafka.write(topic("places"), sent)

    made = correlate_kafka(kafka.stream(topic("places")), PLACES, buckets=1)
    got = collected(made, tmp_path)

    assert [(row["Key"], row["Between"], row["causes"]) for row in got] == [("7", 2, "e0,e2")]


ORDER = """
eventtype Reading { attribute long Sensor; attribute double Value; };
eventtype Found { attribute double First; attribute double Second; };
Found correlation InTurn (Reading a, Reading b) a ; b bind first
{ case true: push new Found { First = a.Value, Second = b.Value }; }
"""


@pytest.mark.parametrize("most", [100, 2])
def test_events_of_one_time_are_in_order_by_partition_and_offset_however_they_are_cut(
    kafka: Kafka, topic: Topic, tmp_path: Path, most: int
) -> None:
    sent = [
        record(
            {"id": f"e{n}", "type": "Reading", "time": START, "Sensor": 1, "Value": float(n)},
            "structured",
            (n + 1) % 2,
        )
        for n in range(6)
    ]
    kafka.write(topic("ties"), sent)
    kafka.write(topic("ties"), [record(heartbeat(START + 10_000_000), "binary", 0)])

    stream = kafka.stream(topic("ties"), maxOffsetsPerTrigger=most)
    got = collected(correlate_kafka(stream, ORDER, lateness="1 s", buckets=1), tmp_path)

    # Partition 0 has 1, 3 and 5, and partition 1 has 0, 2 and 4.
    assert sorted((row["First"], row["Second"]) for row in got) == [
        (1.0, 3.0),
        (2.0, 4.0),
        (5.0, 0.0),
    ]


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_outputs_are_written_as_events_in_the_mode_that_is_asked_for(
    kafka: Kafka, topic: Topic, tmp_path: Path, mode: str
) -> None:
    rows = readings(20, Random(7))
    end = heartbeat(rows[-1]["time"] + 30_000_000)
    kafka.write(topic("in"), [record(row, "binary", 0) for row in [*rows, end]])
    stream = kafka.stream(topic("in"))
    made = correlate_kafka(stream, LIBRARY, lateness="2 s", buckets=1, whole_events=True)
    outputs, _ = split(made)

    query = records_of(outputs, mode).writeStream.format("kafka").outputMode("append")
    query = query.option("kafka.bootstrap.servers", kafka.servers).option("topic", topic("out"))
    query = query.option("includeHeaders", "true").option("checkpointLocation", str(tmp_path))
    query.option(IN_FLIGHT, "1").trigger(availableNow=True).start().awaitTermination()

    written = kafka.read(topic("out"))
    ids = sorted(identity for _, identity, *_ in expected(rows))
    if mode == "binary":
        assert sorted(each.header["ce_id"] for each in written) == ids
        jump = next(each for each in written if each.header["ce_correlation"] == "Jump")
        assert json.loads(jump.value or b"").keys() == {"Sensor", "Rise"}
        assert jump.key == jump.header["ce_partitionkey"].encode()
    else:
        events = [json.loads(each.value or b"") for each in written]
        assert sorted(event["id"] for event in events) == ids
        assert {each.header["content-type"] for each in written} == {
            "application/cloudevents+json; charset=UTF-8"
        }


def test_what_is_no_stream_of_records_is_refused_before_it_runs(kafka: Kafka, topic: Topic) -> None:
    stream = kafka.stream(topic("any"))

    with pytest.raises(UsageError, match="includeHeaders"):
        correlate_kafka(stream.drop("headers"), LIBRARY)
    with pytest.raises(UsageError, match="`offset`"):
        correlate_kafka(stream.drop("offset"), LIBRARY)
    with pytest.raises(UsageError, match="readStream"):
        correlate_kafka(kafka.spark.range(1).toDF("key"), LIBRARY)
    with pytest.raises(UsageError, match="`buckets` is 0"):
        correlate_kafka(stream, LIBRARY, buckets=0)
    with pytest.raises(UsageError, match="whole_events=True"):
        records_of(split(correlate_kafka(stream, LIBRARY))[0])

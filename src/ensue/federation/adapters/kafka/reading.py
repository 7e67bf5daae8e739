"""Records from Kafka, in threads: what has come, where partitions end, the latest of a topic."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ensue.federation.adapters.base import driver

kafka: Any = driver("confluent_kafka", "kafka")

RECALLED = 2000
"""Records of a partition that a look back shows."""
SECONDS_TO_ANSWER = 10.0
_MOST_AT_ONCE = 1000
_SECONDS_TO_WAIT = 0.1

Place = tuple[str, int]
"""A topic and a partition."""


def consumed(consumer: Any) -> tuple[list[Any], list[Place]]:
    """The records that have come, and the partitions whose ends were reached, if that is asked."""
    first = consumer.poll(_SECONDS_TO_WAIT)
    if first is None:
        return [], []
    found, ended = [], []
    # To ask for many at once would wait for many; what is there already is taken along.
    for each in (first, *consumer.consume(_MOST_AT_ONCE, 0)):
        if each.error() is None:
            found.append(each)
        elif each.error().code() == kafka.KafkaError._PARTITION_EOF:
            ended.append((each.topic(), each.partition()))
        elif not each.error().retriable() and each.error().code() not in _PASSING:
            raise kafka.KafkaException(each.error())
    return found, ended


def ends_of(consumer: Any, topics: Sequence[str]) -> list[Any]:
    """The ends of all partitions. A topic that was just made has no leader for a moment."""
    until = time.monotonic() + SECONDS_TO_ANSWER
    while True:
        try:
            return _ends_now(consumer, topics)
        except kafka.KafkaException as error:
            if error.args[0].code() not in _NOT_YET or time.monotonic() > until:
                raise
            time.sleep(0.05)


def _ends_now(consumer: Any, topics: Sequence[str]) -> list[Any]:
    found = []
    for topic in topics:
        described = consumer.list_topics(topic, timeout=SECONDS_TO_ANSWER).topics[topic]
        if described.error is not None:
            raise kafka.KafkaException(described.error)
        for partition in described.partitions:
            place = kafka.TopicPartition(topic, partition)
            _, high = consumer.get_watermark_offsets(place, timeout=SECONDS_TO_ANSWER)
            found.append(kafka.TopicPartition(topic, partition, high))
    return found


def latest(
    settings: dict[str, Any], topics: Sequence[str], begins: Mapping[Place, int] | None = None
) -> list[Any]:
    """The last records of topics, all of them: an event that is missed here is published twice.

    With `begins`, all from an offset of each partition on.
    """
    reading = {"enable.auto.commit": "false", "enable.partition.eof": "true"}
    reader = kafka.Consumer(settings | reading)
    try:
        begin, left = [], {}
        for each in ends_of(reader, topics):
            low, high = reader.get_watermark_offsets(each, timeout=SECONDS_TO_ANSWER)
            if low < high:
                left[each.topic, each.partition] = high
                place = each.topic, each.partition
                start = max(low, high - RECALLED if begins is None else begins.get(place, high))
                if start >= high:
                    del left[place]
                    continue
                begin.append(kafka.TopicPartition(each.topic, each.partition, start))
        reader.assign(begin)
        return _read_up_to(reader, left)
    finally:
        reader.close()


def _read_up_to(reader: Any, left: dict[Place, int]) -> list[Any]:
    """Records of partitions up to an offset of each, or to its end: offsets may have gaps."""
    records: list[Any] = []
    until = time.monotonic() + SECONDS_TO_ANSWER
    while left:
        if time.monotonic() > until:
            raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
        found, ended = consumed(reader)
        records += found
        ended += [
            (each.topic(), each.partition())
            for each in found
            if each.offset() + 1 >= left.get((each.topic(), each.partition()), 0)
        ]
        for place in ended:
            left.pop(place, None)
    return records


_NOT_YET = (
    kafka.KafkaError.NOT_LEADER_FOR_PARTITION,
    kafka.KafkaError.LEADER_NOT_AVAILABLE,
    kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
    kafka.KafkaError._UNKNOWN_PARTITION,
    kafka.KafkaError._UNKNOWN_TOPIC,
)
_PASSING = (
    kafka.KafkaError._TRANSPORT,
    kafka.KafkaError._ALL_BROKERS_DOWN,
    kafka.KafkaError._TIMED_OUT,
)
"""Errors that the client library mends by itself, or tells in another way."""

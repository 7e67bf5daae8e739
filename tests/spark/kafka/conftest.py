"""The broker, and the session of the other tests with Kafka's source and sink added to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from pyspark.sql import SparkSession

from ensue.spark.kafka.connector import with_kafka
from tests.servers.kafka import kafka_servers

from .topics import Kafka

__all__ = ["kafka_servers"]


@pytest.fixture(scope="session")
def kafka(spark: SparkSession, kafka_servers: str) -> Kafka:
    return Kafka(with_kafka(spark), kafka_servers)


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return count(1)


@pytest.fixture
def topic(numbers: Iterator[int]) -> Callable[[str], str]:
    """Names of topics that no other test has."""
    number = next(numbers)
    return lambda name: f"{name}-{number}"

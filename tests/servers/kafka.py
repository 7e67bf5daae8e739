"""One Kafka broker for all tests that ask for it. With CI=true, that it is missing is a failure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ensue.errors import EnsueError
from tests.servers.programs import skip_as_missing


@pytest.fixture(scope="session")
def kafka_servers() -> Iterator[str]:
    """The address of the broker. A topic comes into being when it is first written to."""
    pytest.importorskip("pyspark", reason="the `spark` extra is not installed")
    from ensue.spark.kafka.broker import TrialBroker

    broker = TrialBroker(partitions=2)
    try:
        broker.start()
    except EnsueError as error:
        skip_as_missing(f"there is no Kafka broker: {error}")
    yield broker.servers
    broker.stop()

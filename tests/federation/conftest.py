"""Servers for the whole session, started when a test first asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from ensue.federation.limits import limited
from tests.servers.kafka import kafka_servers
from tests.servers.messaging import SERVERS, Broker
from tests.servers.programs import MissingServerError, skip_as_missing

__all__ = ["kafka_servers"]

StartServer = Callable[[str], Broker]


@pytest.fixture(scope="session")
def server() -> Iterator[StartServer]:
    """`server("mqtt")` is the running server of a kind. With CI=true a missing one is a failure."""
    started: dict[str, Broker] = {}

    def start(kind: str) -> Broker:
        if kind not in started:
            made = SERVERS[kind]()
            try:
                made.start()
            except MissingServerError as error:
                skip_as_missing(f"there is no server for `{kind}`: {error}")
            started[kind] = made
        if started[kind].process is None:
            started[kind].resume()
        return started[kind]

    yield start
    for each in started.values():
        each.stop()


@pytest.fixture
def limit() -> Iterator[Callable[..., None]]:
    """`limit(largest_body=1_000)`: other limits of gateways, until the end of the test."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(limited(**changes))

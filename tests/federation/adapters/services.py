"""Services for the shared suite: of each kind one that is new to every test."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from ensue.federation.adapters import adapter_class
from ensue.federation.adapters.base import Adapter, Service
from tests.federation.conftest import StartServer
from tests.servers.programs import free_port

KINDS = (
    "memory",
    "mqtt",
    "mqtt-binary",
    "redis",
    "redis-pubsub",
    "nats",
    "nats-binary",
    "nats-jetstream",
    "kafka",
    "kafka-binary",
    "amqp",
    "amqp-binary",
    "channel",
    "broker",
    "proximity",
    "zenoh",
    "zenoh-binary",
)

SERVER_OF = {"redis-pubsub": "redis", "nats-jetstream": "nats"}
OPTIONS: dict[str, dict[str, Any]] = {"amqp": {"exchange": "fanout"}}
_numbers = count(1)

MakeAdapter = Callable[..., Adapter]


def service_of(
    kind: str, server: StartServer, request: pytest.FixtureRequest, gateway: str = "g1"
) -> Service:
    """A service of a kind at an address that no other test has."""
    base = kind.removesuffix("-binary")
    mode = "binary" if kind.endswith("-binary") else "structured"
    number = f"{os.getpid()}x{next(_numbers)}"
    return Service(
        name=f"s{number}",
        kind=base,
        url=url_of(base, server, request, number),
        address=f"suite.{number}",
        encoding=mode,  # type: ignore[arg-type]
        gateway=gateway,
        options=OPTIONS.get(base) and adapter_class(base).options_type(**OPTIONS[base]),
    )


def url_of(kind: str, server: StartServer, request: pytest.FixtureRequest, number: str) -> str:
    if kind == "memory":
        return f"memory:{number}"
    if kind in ("channel", "broker"):
        return f"{kind}:{number}"
    if kind == "proximity":
        return server("redis").url
    if kind == "zenoh":
        return f"zenoh://127.0.0.1:{free_port()}"
    if kind == "kafka":
        servers: str = request.getfixturevalue("kafka_servers")
        return f"kafka://{servers}"
    return server(SERVER_OF.get(kind, kind)).url

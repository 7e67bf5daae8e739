"""Adapters: one folder a kind of service, each with `adapter.py`, found here by its kind.

A client library is imported when a gateway first needs it, never before. `KINDS` is in the order of
the documentation.
"""

from __future__ import annotations

import importlib

from ensue.errors import UsageError
from ensue.federation.adapters.base import Adapter
from ensue.lang.diagnostics import did_you_mean

KINDS: dict[str, tuple[str, str]] = {
    "memory": ("memory", "MemoryAdapter"),
    "mqtt": ("mqtt", "MqttAdapter"),
    "nats": ("nats", "NatsAdapter"),
    "nats-jetstream": ("nats", "JetStreamAdapter"),
    "kafka": ("kafka", "KafkaAdapter"),
    "amqp": ("amqp", "AmqpAdapter"),
    "http": ("http", "HttpAdapter"),
    "redis": ("redis", "StreamAdapter"),
    "redis-pubsub": ("redis", "PubSubAdapter"),
    "zenoh": ("zenoh", "ZenohAdapter"),
    "channel": ("channel", "ChannelAdapter"),
    "broker": ("broker", "BrokerAdapter"),
    "proximity": ("proximity", "ProximityAdapter"),
}
"""The folder and the class of each kind."""


def adapter_class(kind: str) -> type[Adapter]:
    """The class of a kind. Raises `UsageError` for an unknown kind and for a missing driver."""
    if kind not in KINDS:
        known = ", ".join(f"`{each}`" for each in KINDS)
        raise UsageError(f"there is no kind `{kind}`{did_you_mean(kind, KINDS)}; kinds are {known}")
    folder, name = KINDS[kind]
    module = importlib.import_module(f"ensue.federation.adapters.{folder}.adapter")
    found: type[Adapter] = getattr(module, name)
    return found

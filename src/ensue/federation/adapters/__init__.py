"""Adapters: one folder a kind of service, each with `adapter.py`, found here by its kind.

A client library is imported when a gateway first needs it, never before. `KINDS` is in the order of
the documentation.
"""

from __future__ import annotations

import importlib

from ensue.errors import UsageError
from ensue.federation.adapters.base import Adapter
from ensue.lang.diagnostics import did_you_mean

KINDS: dict[str, tuple[str, str, str]] = {
    "memory": ("memory", "adapter", "MemoryAdapter"),
    "mqtt": ("mqtt", "adapter", "MqttAdapter"),
    "nats": ("nats", "adapter", "NatsAdapter"),
    "nats-jetstream": ("nats", "jetstream", "JetStreamAdapter"),
    "kafka": ("kafka", "adapter", "KafkaAdapter"),
    "amqp": ("amqp", "adapter", "AmqpAdapter"),
    "http": ("http", "adapter", "HttpAdapter"),
    "redis": ("redis", "streams", "StreamAdapter"),
    "redis-pubsub": ("redis", "pubsub", "PubSubAdapter"),
    "zenoh": ("zenoh", "adapter", "ZenohAdapter"),
    "channel": ("channel", "adapter", "ChannelAdapter"),
    "broker": ("broker", "adapter", "BrokerAdapter"),
    "proximity": ("proximity", "adapter", "ProximityAdapter"),
}
"""The folder, the module and the class of each kind."""


def adapter_class(kind: str) -> type[Adapter]:
    """The class of a kind. Raises `UsageError` for an unknown kind and for a missing driver."""
    if kind not in KINDS:
        known = ", ".join(f"`{each}`" for each in KINDS)
        raise UsageError(f"there is no kind `{kind}`{did_you_mean(kind, KINDS)}; kinds are {known}")
    folder, module_name, name = KINDS[kind]
    module = importlib.import_module(f"ensue.federation.adapters.{folder}.{module_name}")
    found: type[Adapter] = getattr(module, name)
    return found

"""Adapters: one folder a kind of service, each with `adapter.py`, found here by its kind.

Other packages bring kinds of their own, by entry points of the group `ensue.adapters`; what they
need to write one stands here, too. A client library is imported when a gateway first needs it,
never before, and a package of others likewise. `KINDS` is in the order of the documentation.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from ensue.errors import UsageError
from ensue.federation.adapters.base import (
    ANYTHING,
    Adapter,
    Capabilities,
    Incoming,
    Options,
    Outgoing,
    ProtectedOptions,
    RefusedError,
    Service,
    broken,
    driver,
    incoming_of,
)
from ensue.federation.adapters.inbox import ControlInbox, Inbox
from ensue.federation.messages.bindings import Message, NameBinding, read_structured
from ensue.lang.diagnostics import did_you_mean

__all__ = [
    "ANYTHING",
    "KINDS",
    "Adapter",
    "Capabilities",
    "ControlInbox",
    "Inbox",
    "Incoming",
    "Message",
    "NameBinding",
    "Options",
    "Outgoing",
    "ProtectedOptions",
    "RefusedError",
    "Service",
    "adapter_class",
    "broken",
    "driver",
    "incoming_of",
    "kind_of_scheme",
    "kinds",
    "read_structured",
]

GROUP = "ensue.adapters"
"""The entry points by which other packages bring adapters: the kind, and its class."""

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


def kinds() -> tuple[str, ...]:
    """Every kind that there is: those of Ensue, then those of other packages."""
    return (*KINDS, *sorted(_of_others()))


def adapter_class(kind: str) -> type[Adapter]:
    """The class of a kind. Raises `UsageError` for an unknown kind and for a missing driver."""
    if kind in KINDS:
        folder, module_name, name = KINDS[kind]
        module = importlib.import_module(f"ensue.federation.adapters.{folder}.{module_name}")
        found: type[Adapter] = getattr(module, name)
        return found
    others = _of_others()
    if kind not in others:
        raise UsageError(f"there is no kind `{kind}`: {did_you_mean(kind, kinds())}")
    return _loaded(others[kind])


def kind_of_scheme(scheme: str) -> str | None:
    """The kind of another package whose addresses begin with a scheme."""
    for kind, entry in sorted(_of_others().items()):
        if scheme in _loaded(entry).schemes:
            return kind
    return None


def _of_others() -> Mapping[str, EntryPoint]:
    """Kinds of other packages. A name that Ensue has itself is Ensue's."""
    return {each.name: each for each in entry_points(group=GROUP) if each.name not in KINDS}


def _loaded(entry: EntryPoint) -> type[Adapter]:
    package = entry.dist.name if entry.dist is not None else entry.value
    try:
        found = entry.load()
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"the kind `{entry.name}` comes with the package `{package}`, which cannot be loaded:"
            f" {error}"
        ) from None
    if not (isinstance(found, type) and issubclass(found, Adapter)):
        raise UsageError(
            f"the kind `{entry.name}` comes with the package `{package}`: `{entry.value}` is no"
            " subclass of `ensue.federation.adapters.Adapter`"
        )
    return found

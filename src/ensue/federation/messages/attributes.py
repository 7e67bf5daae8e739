"""Attributes that are kept hop by hop: what each means, and what stands for one that is missing.

An adapter applies the attributes that its service knows (MQTT expires messages, AMQP orders them by
priority, Kafka places them by key), passes on all others as they are, and takes the default given
here where its service needs a value. Gateways write the route of an event (`ensuepath`), the kind
of the service that it came from (`ensuekind`), and that it came without a time (`ensuetime`).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from ensue.events.event import Event
from ensue.events.expiry import EXPIRY
from ensue.federation.messages.bindings import CONTENT_TYPE, TIMED, is_plain

PRIORITY, PROXIMITY, KEY = "priority", "proximity", "partitionkey"
KNOWN = (PRIORITY, EXPIRY, PROXIMITY, KEY)
"""Attributes that a service may know and apply; the page on federation says what each means."""
PATH, KIND, ORIGIN = "ensuepath", "ensuekind", "ensueorigin"
# JSON has integers of any size, and content of a program may be of any type.
_encoded = msgspec.json.Encoder(enc_hook=repr).encode
# What gateways write, and the type of the data, which messages may leave unsaid where it is JSON.
_NOT_OWN = frozenset({PATH, KIND, ORIGIN, TIMED, CONTENT_TYPE})

LOWEST_PRIORITY, USUAL_PRIORITY, HIGHEST_PRIORITY = 0, 4, 9


def priority_of(event: Event) -> int:
    """The priority, moved into the allowed range; the default if there is none."""
    given = event.extensions.get(PRIORITY)
    if isinstance(given, str) and given.strip().lstrip("+-").isdecimal():
        given = int(given)
    if not isinstance(given, int) or isinstance(given, bool):
        return USUAL_PRIORITY
    return min(max(given, LOWEST_PRIORITY), HIGHEST_PRIORITY)


def path_of(event: Event) -> tuple[str, ...]:
    """The services that gateways have brought the event from, in order; the first is its origin."""
    given = event.extensions.get(PATH)
    return tuple(given.split(",")) if isinstance(given, str) and given else ()


def at_service(event: Event, name: str, kind: str) -> Event:
    """The event as it stands at a service: with its origin, which is here unless it came a way."""
    path = path_of(event)
    added: dict[str, Any] = {ORIGIN: path[0] if path else name}
    if not path:
        added |= {PATH: name, KIND: kind}
    elif name not in path:
        added[PATH] = ",".join((*path, name))
    return msgspec.structs.replace(event, extensions={**event.extensions, **added})


def for_sending(event: Event) -> Event:
    """The event as it goes out: the origin is the first of its path, and need not be said twice."""
    if ORIGIN not in event.extensions:
        return event
    kept = {name: value for name, value in event.extensions.items() if name != ORIGIN}
    return msgspec.structs.replace(event, extensions=kept)


def identity_of(event: Event) -> int:
    """A number that tells events apart by what their publisher gave them, not by their route.

    It is the same in every process, so that a gateway knows events again after it was away.
    """
    # As text, since headers carry an extension's value and not its type.
    own = [
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in sorted(event.extensions.items())
        if name not in _NOT_OWN
    ]
    # A time that a gateway gave is another one each time that the event is read.
    time = None if TIMED in event.extensions else event.time
    # Services hand out such data as text or as octets, and a message without any as either of both.
    data = event.data.encode() if is_plain(event) else event.data
    data = None if data == b"" else data
    content = _encoded((event.source, event.id, event.type, time, own, data))
    return int.from_bytes(blake2b(content, digest_size=8).digest())

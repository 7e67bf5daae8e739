"""Control events: what gateways say to each other, and requests of clients to gateways.

Each is a CloudEvent of a type `ensue.control.*`, so that any client of a service can send one. The
requests are those of the paper: subscribe, unsubscribe, announce, unannounce and publish; `done`
answers them. Between gateways, `hello` is repeated and says where the sender stands in the tree,
`stated` says what is wanted from its side, `known` which events are at a service that cannot be
asked itself, `carried` which of its events are done with, and `asked` asks for all of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, get_args
from uuid import uuid4

import msgspec

from ensue.errors import EnsueError, EventError
from ensue.events.cloudevents import decode, encode
from ensue.events.event import Event
from ensue.subscriptions import Filter

PREFIX = "ensue.control."

MOST_HOPS = 64
"""Gateways that pass a request on, one after the other; by then it goes round."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
"""The name of a gateway, service or request; bounded, since names from outside are kept."""
MOST_GRANTS = 1_000
MOST_KNOWN = 3_000
"""Events that a gateway tells another of, which has been away."""
_DIGITS = 16
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

Verb = Literal["subscribe", "unsubscribe", "announce", "unannounce", "announced", "publish"]
VERBS: tuple[Verb, ...] = get_args(Verb)


class GatewayHello(msgspec.Struct, frozen=True, tag="hello", omit_defaults=True):
    """Where a gateway stands in the tree, and which statement of it holds.

    `follows` is the vector (root, cost, name) of the gateway that the sender leaves this service
    to. It is said only once everything that the sender had on its way is where it belongs. `turn`
    asks for a turn at the service, and `grants` answers other gateways that ask (`routing.turns`).
    `carries` tells that the sender is to bring events of the service on.
    """

    gateway: Name
    instance: Name
    root: Name
    cost: Count
    beat: Count
    digest: Annotated[str, msgspec.Meta(max_length=256)] = ""
    follows: tuple[Name, Count, Name] | None = None
    turn: Count = 0
    grants: Annotated[dict[Name, Count], msgspec.Meta(max_length=MOST_GRANTS)] = {}
    carries: bool = False


class Stated(msgspec.Struct, frozen=True, tag="stated", omit_defaults=True):
    """What clients of this service want, as the gateway knows, and what is wanted behind it."""

    gateway: Name
    instance: Name
    digest: Annotated[str, msgspec.Meta(max_length=256)]
    wants: tuple[str, ...] = ()
    interest: tuple[str, ...] = ()


class KnownEvents(msgspec.Struct, frozen=True, tag="known", omit_defaults=True):
    """The latest events that are at this service, by their identities, as hexadecimal digits."""

    gateway: Name
    instance: Name
    events: Annotated[str, msgspec.Meta(max_length=_DIGITS * MOST_KNOWN, pattern="^[0-9a-f]*$")]

    @property
    def identities(self) -> list[int]:
        return identities_in(self.events)


class CarriedEvents(msgspec.Struct, frozen=True, tag="carried", omit_defaults=True):
    """Events of this service that the gateway is done with: all who want them have them, or
    another gateway brings them on."""

    gateway: Name
    instance: Name
    events: Annotated[str, msgspec.Meta(max_length=_DIGITS * MOST_KNOWN, pattern="^[0-9a-f]*$")]

    @property
    def identities(self) -> list[int]:
        return identities_in(self.events)


class HelloAsked(msgspec.Struct, frozen=True, tag="asked", omit_defaults=True):
    """Asks every gateway at this service to say hello, what it wants, and which events it knows."""

    gateway: Name
    instance: Name


class Request(msgspec.Struct, frozen=True, tag="request", omit_defaults=True):
    """`at` is the service that asks; `services` is the distribution list.

    For `publish`, the event goes to the services of the list. `id` is what makes a request be
    applied once, whatever ways it takes; `hops` ends one that goes round.
    """

    id: Name
    verb: Verb
    at: str = ""
    services: tuple[str, ...] = ()
    where: str = "TRUE"
    event: str = ""
    hops: Count = 0


class Announcement(msgspec.Struct, frozen=True, omit_defaults=True):
    """Events that match `where` are to come from a service; `carried` if the service itself says
    so to its clients."""

    service: Name
    where: str
    carried: bool = False


class RequestDone(msgspec.Struct, frozen=True, tag="done", omit_defaults=True):
    """A gateway has applied a request, or says why not.

    `carried` has the services that carry an announcement themselves; `announced`, in the answer to
    `announced`, what stands of the services of the gateway.
    """

    id: Name
    request: Name
    gateway: Name
    services: tuple[str, ...] = ()
    problem: str = ""
    carried: tuple[str, ...] = ()
    announced: tuple[Announcement, ...] = ()
    hops: Count = 0


Neighbourly = GatewayHello | Stated | KnownEvents | CarriedEvents | HelloAsked
"""What gateways say to the gateways at the same service."""
Control = Neighbourly | Request | RequestDone


def write(control: Control) -> bytes:
    """The message of a control event."""
    members = msgspec.to_builtins(control)
    kind = members.pop("type")
    name = control.verb if isinstance(control, Request) else kind
    source = getattr(control, "gateway", "request")
    event = Event(
        str(uuid4()),
        f"ensue/{source}",
        PREFIX + name,
        time.time_ns() // 1000,
        members | {"is": kind},
    )
    return encode(event)


def read(message: bytes) -> Control:
    """Raises `EventError` for what is no control event."""
    event = decode(message)
    if not event.type.startswith(PREFIX) or not isinstance(event.data, Mapping):
        raise EventError([f"`{event.type}` is no control event"])
    members = dict(event.data)
    members["type"] = members.pop("is", "request")
    try:
        found: Control = msgspec.convert(members, Control)
        return found
    except msgspec.ValidationError as error:
        raise EventError([f"the control event `{event.id}`: {error}"]) from None


def identities_in(digits: str) -> list[int]:
    """The identities of events that `digits_of` has written."""
    places = range(0, len(digits), _DIGITS)
    return [int(digits[place : place + _DIGITS], 16) for place in places]


def digits_of(identities: Iterable[int]) -> str:
    return "".join(f"{each:0{_DIGITS}x}" for each in identities)


def new_id() -> str:
    return uuid4().hex


def filter_of(text: str) -> Filter | None:
    """The filter that a peer has written; None if it is one that this version cannot read."""
    try:
        return Filter.parse(text)
    except EnsueError:
        return None

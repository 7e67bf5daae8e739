"""A site as plain data: what its snapshot holds.

The state of a rule at its home is that of a snapshot of one machine (`engine.core.saved_rules`),
together with what waits before its gates. Here are also the events that wait at outposts, what has
gone over each link and what is known there, and how far all sites have come. Each part of a running
site says its own (`saved`), and is put back by `restore`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from ensue.engine.core.saved_rules import SavedRule
from ensue.engine.timing.agreeing import Dissent
from ensue.errors import SnapshotError
from ensue.events.event import Event
from ensue.federation.placement.parcels import CarriedReading, Hold, Parcel, Reset
from ensue.federation.placement.places import Place, Since
from ensue.machine.records import MachineRecord

FORMAT = "ensue-site"
VERSION = 2
"""Raised with every change of what is written. A snapshot of any other version is refused."""


class SavedStarts(msgspec.Struct, array_like=True, frozen=True):
    """Starts as (place, event, numbers of those before it), and the numbers that ports keep."""

    table: list[tuple[Place, Place | None, list[int]]]
    ports: list[list[int]]


class SavedFollowing(msgspec.Struct, array_like=True, frozen=True):
    starts: SavedStarts
    since: Since


class SavedReading(msgspec.Struct, array_like=True, frozen=True):
    place: Place
    ports: frozenset[str]
    event: Event


class SavedHeld(msgspec.Struct, array_like=True, frozen=True):
    """What waits at an outpost under one key; `floor` and `read` are of a part that runs."""

    key: str
    following: SavedFollowing
    waiting: list[SavedReading]
    last_void: Place | None
    floor: Place
    read: list[tuple[Place, frozenset[str]]]


class SavedSleeping(msgspec.Struct, array_like=True, frozen=True):
    """What an outpost holds back under one key because its home has said so."""

    key: str
    ports: frozenset[str]
    waiting: list[SavedReading]
    spared: int


class SavedSleep(msgspec.Struct, array_like=True, frozen=True):
    """What a home knows of that under one key, by site."""

    asleep: dict[str, frozenset[str]]
    wasted: dict[str, int]


class SavedGate(msgspec.Struct, array_like=True, frozen=True):
    followings: dict[str, SavedFollowing]
    waiting: list[SavedReading]


class SavedArrived(msgspec.Struct, array_like=True, frozen=True):
    site: str
    place: Place
    releases: Place
    number: int
    ports: frozenset[str]
    event: Event


class SavedHome(msgspec.Struct, frozen=True):
    """`gates`, `sleeps` and `fired` are of the keys of `rule`, in its order."""

    machine: MachineRecord | None
    rule: SavedRule
    gates: list[SavedGate | None]
    sleeps: list[SavedSleep]
    unanswered: dict[str, tuple[int, Place]]
    patience: dict[str, int]
    fired: list[tuple[int, int]]
    arrived: list[SavedArrived]
    last: tuple[Place | None, int]
    count: int


class SavedOutgoing(msgspec.Struct, frozen=True):
    loads: list[tuple[Place, Event, list[CarriedReading]]]
    resets: list[Reset]
    holds: list[Hold]
    answers: int | None
    spared: dict[str, int]
    number: int
    marks: tuple[Place, dict[str, Place], dict[str, Place]] | None
    known: list[tuple[Place, frozenset[str] | None]]


class SavedReceived(msgspec.Struct, frozen=True):
    instance: str
    number: int
    early: list[Parcel]
    known: list[tuple[Place, Event]]


class SavedQueued(msgspec.Struct, array_like=True, frozen=True):
    place: Place
    number: int
    event: Event
    ports: list[str]


class SavedSite(msgspec.Struct, frozen=True):
    instance: str
    mark: Place
    time: int | None
    events: int
    numbers: int
    outgoing: dict[str, SavedOutgoing]
    received: dict[str, SavedReceived]
    outposts: dict[str, list[SavedHeld]]
    sleeping: dict[str, list[SavedSleeping]]
    homes: dict[str, SavedHome]
    queued: dict[str, list[SavedQueued]]
    marks: dict[str, tuple[Place, dict[str, Place]]]
    done: dict[str, Place]
    busy: list[int]
    sent: list[tuple[str, str, int]]


class Attached(msgspec.Struct, frozen=True):
    """A site at a gateway: what has still to be put in order, and what the gateway has still to
    pass on, with the number of the first. `placement` tells by a digest of what it is."""

    placement: str
    site: SavedSite
    latest: int | None
    waiting: list[Event]
    given: list[Event]
    first_given: int
    events_read: int
    dissent: Dissent


def write(attached: Attached) -> bytes:
    """Raises `SnapshotError` if an event holds something that cannot be saved."""
    try:
        body = msgspec.msgpack.encode(attached, enc_hook=plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SnapshotError(f"an event holds something that cannot be saved: {error}") from None
    return msgspec.msgpack.encode((FORMAT, VERSION, hashlib.sha256(body).digest(), body))


def read(data: bytes) -> Attached:
    """Raises `SnapshotError` for what is no snapshot of a site, damaged, or of another version."""
    try:
        envelope = msgspec.msgpack.decode(data, type=tuple[str, int, bytes, bytes])
        kind, version, digest, body = envelope
        if kind != FORMAT:
            raise SnapshotError("the bytes are no snapshot of a site")
        if version != VERSION:
            raise SnapshotError(
                f"the snapshot of the site has version {version}, and this version of ensue reads"
                f" version {VERSION}: use the version of ensue that wrote it"
            )
        if hashlib.sha256(body).digest() != digest:
            raise SnapshotError("the snapshot of the site is damaged: its checksum does not fit")
        return msgspec.msgpack.decode(body, type=Attached)
    except msgspec.MsgspecError as error:
        raise SnapshotError(f"the snapshot of the site is damaged: {error}") from None


def plain(value: Any) -> Any:
    """Mappings of any kind, as they are in events, can be written as dictionaries."""
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be saved")

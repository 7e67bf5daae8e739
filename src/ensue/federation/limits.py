"""What a gateway bounds: memory, time and numbers that strangers and slow peers could ask for.

Each bound stands here, with what happens past it; code asks for `limits()` where it decides. What a
gateway keeps of each service, which follows from how many events are on their way, is in
`links.bounds`. `with limited(largest_body=1_000):` changes bounds for the whole process, so that a
trial reaches them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Limits:
    """Times are in seconds, sizes in bytes, where nothing else is said."""

    largest_message: int = 16 * 1024 * 1024
    """What is read of a service at a time: a larger message is no event, and is counted."""
    waiting_bytes: int = 64 * 1024 * 1024
    """What messages of one service may take while they wait for the gateway."""
    without_waiting: int = 50_000
    """Messages that may wait where a driver cannot be told to stop; then the connection is given
    up."""
    recalled_bytes: int = 256 * 1024 * 1024
    """What a look back at the latest events of a service may take."""
    redis_bytes_at_once: int = 16 * 1024 * 1024
    """The bytes after which a script of Redis hands over no more."""
    seconds_to_drain: float = 5.0
    """How long a gateway that stops waits for what is on its way."""

    requests_at_work: int = 1_000
    """Requests that are being applied; further ones are let go, and their clients ask again."""
    requests_known: int = 10_000
    """Requests by which one that comes another way is told."""
    requests: int = 100_000
    """Requests at one service; each is a filter that every event is asked by."""
    stating: int = 1_000
    """Neighbours at one service whose statements are known."""
    stated: int = 128 * 1024 * 1024
    """Characters of all that neighbours at one service have stated."""

    connections: int = 1_000
    """Callers over HTTP at a time."""
    seconds_to_ask: float = 10.0
    """For the head of the first request, the handshake of TLS left aside."""
    seconds_for_a_body: float = 30.0
    """For a small body; a larger one gets more, by a least speed."""
    largest_body: int = 64 * 1024 * 1024
    bodies: int = 256 * 1024 * 1024
    """Bytes of bodies that are being read or passed on at a time."""
    largest_on_a_socket: int = 4 * 1024 * 1024
    """A message over a WebSocket; a larger event is refused."""
    seconds_to_read: float = 10.0
    """How long the reader of a WebSocket may take for one message."""

    inputs_before_a_snapshot: int = 10_000
    """Inputs of a site that are read again after a restart."""
    early_parcels: int = 10_000
    """Parcels of a site that may come before one that is still on its way."""
    steps_at_once: int = 4096
    """Readings and firings of a site after which the gateway has its turn."""
    microseconds_to_gather: int = 2_000_000
    """How long a site that is back waits for the events that its services have kept for it."""
    seconds_for_a_site: float = 10.0
    """How long the gateway waits for a site that is behind. Then it hands on all the same: what two
    sites have for each other may wait at both of them."""


_in_use = Limits()


def limits() -> Limits:
    """The limits in use."""
    return _in_use


@contextmanager
def limited(**changes: Any) -> Iterator[None]:
    """A block with other limits, for the whole process."""
    global _in_use
    before, _in_use = _in_use, replace(_in_use, **changes)
    try:
        yield
    finally:
        _in_use = before

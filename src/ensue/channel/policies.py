"""Quality of service of a consumer: priority, queue, overflow policy, deadlines.

These are plain values, chosen when a consumer connects and applied in `delivery`. An event that
does not reach its consumer is counted under one of the `Reason`s; none is lost in another way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from ensue.channel.timing.clock import DurationLike, microseconds_in
from ensue.errors import UsageError
from ensue.events.event import Event

log = logging.getLogger("ensue.channel")


class Reason(StrEnum):
    """Why an event did not reach a consumer that wanted it, or a linked channel."""

    OLDEST = "oldest"  # made room for a newer event in a full queue
    NEWEST = "newest"  # came to a full queue
    BLOCKED = "blocked"  # its supplier waited for room until the deadline
    DISCONNECTED = "disconnected"  # its consumer was disconnected
    SUSPENDED = "suspended"  # its consumer had failed too often
    EXPIRED = "expired"  # its time to live was over before its turn came
    CONFLATED = "conflated"  # a newer event of the same conflation key replaced it
    DISCARDED = "discarded"  # the channel closed without draining, or its deadline passed
    FAILED = "failed"  # the consumer raised an exception
    LATE = "late"  # came later than the lateness of the correlation that would have read it
    AHEAD = "ahead"  # its time lies further in the future than a correlation accepts
    MALFORMED = "malformed"  # does not fit the type that the correlation's library declares
    UNSENT = "unsent"  # a link could neither send it nor keep it
    UNROUTED = "unrouted"  # there is no route to a channel that wants it
    UNCONFIRMED = "unconfirmed"  # a link sent it and ended unacknowledged: it may have arrived


@dataclass(frozen=True, slots=True)
class Block:
    """Make the supplier wait for room, up to a time; then drop the event."""

    within: DurationLike = "1 s"

    def __post_init__(self) -> None:
        microseconds_in(self.within)

    @property
    def seconds(self) -> float:
        return microseconds_in(self.within) / 1_000_000


@dataclass(frozen=True, slots=True)
class DropOldest:
    """Make room by dropping the oldest event of the lowest event priority."""


@dataclass(frozen=True, slots=True)
class DropNewest:
    """Drop the event that comes to a full queue."""


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Disconnect a consumer whose queue is full."""


Overflow = Block | DropOldest | DropNewest | Disconnect

OVERFLOW_NAMES = {
    "block": Block,
    "drop oldest": DropOldest,
    "drop newest": DropNewest,
    "disconnect": Disconnect,
}

ConflationKey = bool | str | Callable[[Event], object]


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of service of a consumer.

    `priority`, then `sub_priority`, order consumers: the larger first. `capacity` bounds the queue,
    and `overflow` is the policy for a full queue. With a `deadline`, laxity is measured: the time
    left of the deadline when the consumer is done. `time_to_live` bounds how long an event may
    wait. `conflate` keeps only the latest waiting event of each key: type and source (`True`), an
    attribute of the data, or the result of a function. After `failures` exceptions in a row the
    consumer is suspended; `None` means never.
    """

    priority: int = 0
    sub_priority: int = 0
    capacity: int = 10_000
    overflow: Overflow = Block()
    deadline: DurationLike | None = None
    time_to_live: DurationLike | None = None
    conflate: ConflationKey = False
    failures: int | None = 3

    def __post_init__(self) -> None:
        for name in ("priority", "sub_priority", "capacity"):
            if type(given := getattr(self, name)) is not int:
                raise UsageError(f"`{name}` is an integer; given is `{given!r}`")
        if not isinstance(self.overflow, Overflow):
            raise UsageError(
                "`overflow` is one of `Block(within)`, `DropOldest()`, `DropNewest()` and"
                f" `Disconnect()`; given is `{self.overflow!r}`"
            )
        if self.capacity < 1:
            raise UsageError(
                f"a queue holds at least one event; given is a capacity of {self.capacity}"
            )
        if self.failures is not None and self.failures < 1:
            raise UsageError(
                "a consumer is suspended after one failure or more, or never (`None`);"
                f" given is {self.failures}"
            )
        for duration in (self.deadline, self.time_to_live):
            if duration is not None:
                microseconds_in(duration, at_least=1)

    def changed(self, **given: object) -> Quality:
        """A copy with some fields replaced. Unknown names are refused with the known ones."""
        unknown = sorted(given.keys() - set(Quality.__dataclass_fields__))
        if unknown:
            known = ", ".join(f"`{name}`" for name in Quality.__dataclass_fields__)
            raise UsageError(f"a consumer has no option `{unknown[0]}`; its options are {known}")
        return replace(self, **given)  # type: ignore[arg-type]


def conflation_key(key: ConflationKey) -> Callable[[Event], object] | None:
    """The function from an event to its conflation key, or None if nothing is conflated."""
    if key is False:
        return None
    if key is True:
        return lambda event: (event.type, event.source)
    if isinstance(key, str):
        name = key
        return lambda event: (event.type, _hashable(event.attributes.get(name)))
    return _key_by_function(key)


def _key_by_function(key: Callable[[Event], object]) -> Callable[[Event], object]:
    """The key by a user's function. If the function fails, the event is not conflated."""

    def key_of(event: Event) -> object:
        try:
            return _hashable(key(event))
        except Exception as error:
            log.error("`conflate` failed on the event `%s`: %r", event.id, error)
            return None

    return key_of


def _hashable(value: object) -> object:
    """The value itself, or its `repr` if it cannot be a key of a dictionary."""
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value

"""Closing a channel: waiting until all queues are empty, and disconnecting consumers.

Whether a channel drains or discards its queues is decided in `channel`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ensue.channel.consumers import Consumer
from ensue.channel.policies import Reason
from ensue.channel.timing.clock import DurationLike, microseconds_in

PAUSE_SECONDS = 0.0005
"""The pause between two checks whether all queues are empty."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The result of closing: whether all queues were emptied, and how many events were lost."""

    drained: bool
    discarded: int


def are_idle(consumers: Iterable[Consumer]) -> bool:
    """Whether no event waits and no call runs. Events that are pulled may wait."""

    def busy() -> tuple[bool, int]:
        called = [each.receiver for each in consumers if each.receiver.call is not None]
        return any(each.is_busy for each in called), sum(each.wanted for each in called)

    first = busy()
    # Checked twice, since a push may happen between the checks of two consumers.
    return not first[0] and busy() == first


def wait_until(is_so: Callable[[], bool], within: DurationLike) -> bool:
    """Poll a condition. False if it did not hold in time."""
    deadline = time.monotonic() + microseconds_in(within) / 1_000_000
    while not is_so():
        if time.monotonic() >= deadline:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def disconnect_all(consumers: Iterable[Consumer], drains: bool) -> int:
    """Disconnect all consumers; returns how many events were discarded.

    If the channel drains, events that wait to be pulled can still be pulled.
    """
    discarded = 0
    for consumer in consumers:
        if drains and consumer.receiver.call is None:
            consumer.receiver.finish()
        else:
            discarded += consumer.receiver.disconnect(Reason.DISCARDED)
    return discarded

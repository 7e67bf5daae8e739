"""The end of a channel: waiting until nothing is to be done, and letting its consumers go.

Whether a channel drains or discards, and what else of it ends, is decided in `channel`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ensue.channel.consumers import Consumer
from ensue.channel.policies import Reason
from ensue.channel.timing.clock import DurationLike, microseconds_in

PAUSE_SECONDS = 0.0005
"""How long to look away while waiting for all queues to become empty."""


@dataclass(frozen=True, slots=True)
class Closing:
    """How a channel ended: whether every queue was emptied, and what was discarded if not."""

    drained: bool
    discarded: int


def are_idle(consumers: Iterable[Consumer]) -> bool:
    """Whether nothing waits or runs. Events that are pulled wait for whoever pulls."""

    def busy() -> tuple[bool, int]:
        called = [each.receiver for each in consumers if each.receiver.call is not None]
        return any(each.is_busy for each in called), sum(each.wanted for each in called)

    first = busy()
    # Asked twice: one consumer's push may fall between looking at two others.
    return not first[0] and busy() == first


def wait_until(is_so: Callable[[], bool], within: DurationLike) -> bool:
    """Look again and again, up to a time. False if it ran out."""
    deadline = time.monotonic() + microseconds_in(within) / 1_000_000
    while not is_so():
        if time.monotonic() >= deadline:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def let_go(consumers: Iterable[Consumer], drains: bool) -> int:
    """Disconnect all. What is pulled may still be had if the channel drains; how many are lost."""
    discarded = 0
    for consumer in consumers:
        if drains and consumer.receiver.call is None:
            consumer.receiver.finish()
        else:
            discarded += consumer.receiver.disconnect(Reason.DISCARDED)
    return discarded

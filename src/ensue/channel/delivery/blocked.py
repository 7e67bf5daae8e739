"""Events that wait for room, at the full queue of a consumer or at a full link.

With the overflow policy `Block` the supplier waits: a thread waits here, a coroutine in
`async_waiting`. If there is no room in time, the event is dropped and counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from ensue.channel.delivery.receiver import Receiver
from ensue.channel.delivery.waiters import Wake
from ensue.events.event import Event


class Blocked(Protocol):
    """One event that waits for room in one queue or on one link."""

    @property
    def block_seconds(self) -> float:
        """How long the overflow policy makes the supplier wait."""

    def retry(self) -> bool:
        """Queue the event if there is room. False if it still has to wait."""

    def wait(self, seconds: float) -> bool:
        """Block the thread until the event is queued. False if it was dropped instead."""

    def give_up(self) -> None:
        """Drop the event and count it."""

    def when_room(self, wake: Wake) -> None:
        """Call `wake` once when there may be room."""

    def cancel_wake(self, wake: Wake) -> None: ...


class BlockedOffer:
    """An event that waits for room in the queue of a consumer."""

    __slots__ = ("_event", "_receiver")

    def __init__(self, receiver: Receiver, event: Event) -> None:
        self._receiver = receiver
        self._event = event

    @property
    def block_seconds(self) -> float:
        return self._receiver.block_seconds

    def retry(self) -> bool:
        return self._receiver.offer(self._event)

    def wait(self, seconds: float) -> bool:
        return self._receiver.offer_within(self._event, seconds)

    def give_up(self) -> None:
        self._receiver.drop_blocked(self._event)

    def when_room(self, wake: Wake) -> None:
        self._receiver.when_room(wake)

    def cancel_wake(self, wake: Wake) -> None:
        self._receiver.cancel_wake(wake)


def blocked_offers(event: Event, full: Iterable[Receiver]) -> list[Blocked]:
    """The offers of one event to receivers that are full."""
    return [BlockedOffer(receiver, event) for receiver in full]


def wait_each(blocked: Iterable[Blocked], may_wait: bool = True) -> None:
    """Block the thread until each event has room, or the time of its overflow policy is over.

    With `may_wait` false, events without room are dropped at once.
    """
    left = deque(blocked)
    try:
        while left:
            one = left.popleft()
            one.wait(one.block_seconds if may_wait else 0.0)
    except BaseException:
        for each in left:
            each.give_up()
        raise

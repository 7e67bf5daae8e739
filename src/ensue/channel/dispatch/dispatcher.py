"""The interface of dispatching strategies: `reactive`, `pool`, `asyncio_loop`, and those of users.

A receiver is a consumer's queue. `offered` puts an event into queues; a receiver that has work is
scheduled once, until its turns are over: `turn` runs one and says whether there is more to do, and
then the strategy schedules it again. `schedule_key` orders receivers by urgency, the smallest
first (`ready_queue` has them in that order). `ensue.testing.dispatching` has what every strategy
promises, as tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ensue.channel.delivery.mailbox import FULL, READY
from ensue.channel.delivery.receiver import ChannelContext, Receiver
from ensue.errors import UsageError
from ensue.events.event import Event


@runtime_checkable
class Dispatcher(Protocol):
    """A strategy decides which receiver gets the next turn, and in which thread.

    A strategy with an attribute `awaits` that is true runs consumers that are coroutine functions,
    by `turn_async`.
    """

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        """Offer an event. Returns the full receivers, for which the supplier has to wait."""

    def ready(self, receiver: Receiver) -> None:
        """Schedule a receiver that has work. It calls again only after its turns are over."""

    def is_in_turn(self) -> bool:
        """Whether the calling thread or task is running a consumer's turn."""

    def may_wait(self) -> bool:
        """Whether the calling thread may wait for room without stopping all turns."""

    def start(self, context: ChannelContext) -> None: ...

    def stop(self, successor: Dispatcher | None) -> None:
        """Give no more turns; pass receivers that are scheduled, now or later, to the successor."""


def offered(
    event: Event, receivers: Sequence[Receiver]
) -> tuple[Sequence[Receiver], list[Receiver]]:
    """Put an event into the queues of receivers. Out go those that have to be scheduled, and those
    that are full."""
    ready, full = [], []
    now = receivers[0].context.clock.now()
    for receiver in receivers:
        answer = receiver.accept(event, now)
        if answer == READY:
            ready.append(receiver)
        elif answer == FULL:
            full.append(receiver)
    return ready, full


def checked_dispatcher(given: Any) -> Dispatcher:
    """A strategy of a user: an object, or a class that is made without arguments."""
    made = given() if isinstance(given, type) else given
    if isinstance(made, Dispatcher):
        return made
    names = [name for name in vars(Dispatcher) if not name.startswith("_")]
    missing = ", ".join(f"`{name}`" for name in names if not hasattr(made, name))
    raise UsageError(
        f"`{type(made).__name__}` is no dispatching strategy: it lacks {missing}"
        " (see `ensue.channel.Dispatcher`)"
    )


def can_await(dispatcher: Dispatcher) -> bool:
    return bool(getattr(dispatcher, "awaits", False))

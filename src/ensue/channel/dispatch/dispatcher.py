"""The interface of dispatching strategies: `reactive`, `pool` and `asyncio_loop`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ensue.channel.delivery.receiver import ChannelContext, Receiver
from ensue.events.event import Event


class Dispatcher(Protocol):
    """A strategy decides which receiver gets the next turn, and in which thread."""

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

"""The interface of dispatching strategies: `reactive`, `pool` and `asyncio_loop`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ensue.channel.delivery.receiver import Receiver, Surroundings
from ensue.events.event import Event


class Dispatcher(Protocol):
    """A strategy: who gives turns to receivers, and in which thread."""

    def spread(self, event: Event, receivers: Sequence[Receiver]) -> list[Receiver]:
        """Offer an event. Returns those that are full and whose supplier has to wait."""

    def ready(self, receiver: Receiver) -> None:
        """A receiver has something to do. It will not be told again until its turns are over."""

    def is_in_turn(self) -> bool:
        """Whether whoever asks is a consumer in its turn."""

    def may_wait(self) -> bool:
        """Whether the thread that asks may wait for room without holding up all turns."""

    def start(self, around: Surroundings) -> None: ...

    def stop(self, successor: Dispatcher | None) -> None:
        """Give no more turns; hand what is ready, now or later, to the successor."""

"""What receivers and dispatching strategies know of each other, and what passes between them.

A strategy gives turns; a receiver takes them. Beside that, here are the events that only a channel
makes: what a timeout tells its consumer, and the tick that tells a step how far the clock has come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ensue.channel.policies import Reason
from ensue.channel.timing.clock import Clock
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.delivery.receiver import Receiver

TIMEOUT = "ensue.channel.timeout"


class Timeout(Event, frozen=True):
    """What a consumer gets when one of its timeouts is due. Its data names the timer."""


class Tick(Event, frozen=True):
    """Tells a step how far the clock has come. Consumers never see it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception in a consumer: by name, on which event, and whether it is suspended now."""

    consumer: str
    event: Event
    error: BaseException
    suspended: bool


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


@dataclass(slots=True)
class Surroundings:
    """What every receiver of a channel shares. `dispatcher` changes when strategies are swapped.

    `is_timed` says that some consumer has asked for something that depends on when an event came.
    """

    clock: Clock
    dispatcher: Dispatcher
    on_failure: Callable[[Failure], None]
    on_drop: Callable[[str, Event, Reason], None] | None
    leave: Callable[[Receiver], None]
    is_timed: bool = False


Call = Callable[[Event], Any]

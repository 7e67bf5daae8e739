"""What a channel is put together from: chosen by `builder`, held together by `channel`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ensue.channel.delivery.receiver import Receiver
from ensue.channel.dispatch.dispatcher import Dispatcher, Failure
from ensue.channel.lookup.wants import Want
from ensue.channel.policies import Quality, Reason
from ensue.channel.timing.clock import Clock
from ensue.events.event import Event
from ensue.events.types import TypeSystem

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import Urgency


class LookUp(Protocol):
    """Who wants what.

    `ready` has those who get an event by its type and source, where that is known beforehand, and
    None where `find` has to look closer. It is another mapping after every change.
    """

    @property
    def ready(self) -> Mapping[str, Mapping[str, Sequence[Receiver] | None]]: ...

    def put(self, target: Receiver, wants: Iterable[Want]) -> None: ...

    def remove(self, target: Receiver) -> None: ...

    def find(self, event: Event) -> Sequence[Receiver]: ...

    def prepare(self, type_: str, source: str) -> None: ...

    def is_wanted(self, type_: str, source: str | None) -> bool: ...


@dataclass(slots=True)
class Parts:
    """A part that was left out says so when it is asked for."""

    name: str
    clock: Clock
    look_up: LookUp
    dispatcher: Dispatcher
    new_dispatcher: Callable[[str, int], Dispatcher]
    types: TypeSystem
    quality: Quality
    has_filtering: bool = True
    has_correlation: bool = True
    has_timeouts: bool = True
    on_failure: Callable[[Failure], None] | None = None
    on_drop: Callable[[str, Event, Reason], None] | None = None
    strategy: str = "reactive"
    urgency: Urgency | None = None

"""What a channel is put together from: chosen by `builder`, held together by `channel`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ensue.channel.delivery.receiver import Failure, Receiver
from ensue.channel.dispatch.dispatcher import Dispatcher
from ensue.channel.lookup.lookup import LookUp
from ensue.channel.policies import Quality, Reason
from ensue.channel.timing.clock import Clock
from ensue.events.event import Event
from ensue.events.types import TypeSystem

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import Urgency


@dataclass(slots=True)
class Parts:
    """A part that was left out says so when it is asked for."""

    name: str
    clock: Clock
    look_up: LookUp[Receiver]
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

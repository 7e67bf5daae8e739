"""The parts of a channel: chosen by `builder`, used by `channel`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ensue.channel.delivery.receiver import Failure, Receiver
from ensue.channel.dispatch.dispatcher import Dispatcher
from ensue.channel.lookup.lookup import Lookup
from ensue.channel.policies import Quality, Reason
from ensue.channel.timing.clock import Clock
from ensue.events.event import Event
from ensue.events.types import TypeSystem

if TYPE_CHECKING:
    from ensue.channel.realtime.threads import RealTimeThreads
    from ensue.channel.scheduling.measured import ChannelSchedule


@dataclass(slots=True)
class ChannelParts:
    """Everything that a channel is assembled from, and which parts it was built with."""

    name: str
    clock: Clock
    lookup: Lookup[Receiver]
    dispatcher: Dispatcher
    new_dispatcher: Callable[[str | Dispatcher | type[Dispatcher], int], Dispatcher]
    new_lookup: Callable[[bool], Lookup[Receiver]]
    types: TypeSystem
    quality: Quality
    has_filtering: bool = True
    has_correlation: bool = True
    has_timeouts: bool = True
    on_failure: Callable[[Failure], None] | None = None
    on_drop: Callable[[str, Event, Reason], None] | None = None
    strategy: str = "reactive"
    real_time: RealTimeThreads | None = None
    schedule: ChannelSchedule | None = None

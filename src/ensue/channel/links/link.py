"""Protocols between a channel, its federation and its links: what each needs of the others.

A federation routes events and wants over `ChannelLink`s; a link asks its `Router` which neighbours
it may accept, and hands received messages to it. The implementations import these protocols and not
each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ensue.channel.delivery.blocked import Blocked
from ensue.channel.links.faults import LinkFault
from ensue.channel.links.messages import Advert, Carried, News
from ensue.channel.policies import Reason

if TYPE_CHECKING:
    from ensue.channel.consumers import ConsumerAdmin
    from ensue.channel.delivery.receiver import Receiver
    from ensue.channel.lookup.lookup import Lookup
    from ensue.channel.lookup.wants import EventWant
    from ensue.channel.realtime.threads import RealTimeThreads
    from ensue.events.event import Event
    from ensue.events.types import TypeSystem


class ChannelLink(Protocol):
    """One end of a link to a neighbour. `queues_news` if `advertise` only queues, so that it can be
    called with a lock held."""

    queues_news: bool

    def send(self, message: Carried) -> Sequence[Blocked]:
        """Give an event its position on the link. Returns the event if it has to wait for room."""

    def advertise(self, advert: Advert) -> None:
        """Tell the neighbour of routes."""

    def transmit(self) -> None:
        """Encode and transmit all events that have a position on the link.

        Called after local consumers have been served.
        """

    @property
    def in_transit(self) -> int:
        """Destinations of all events that are not acknowledged yet, summed over the events."""

    def close(self, seconds: float) -> bool:
        """Send everything, for at most some seconds, and end. Returns whether all was sent."""


class PendingNews(Protocol):
    """News that has not been sent to a neighbour yet; newer news replaces older news."""

    def __bool__(self) -> bool: ...

    def add(self, news: Any) -> None: ...

    def take(self) -> Sequence[News]:
        """The news to send now, in messages of a bounded size."""


class Router(Protocol):
    """What a link needs of its federation, or of the links of a broker."""

    id: str

    def pending_news(self) -> PendingNews:
        """An empty collection of news to send, for a new connection."""

    def admit(self, neighbour: str, link: ChannelLink | None) -> None:
        """Raise `LinkFaultError` to refuse a neighbour on a link; None stands for a new link."""

    @property
    def neighbours(self) -> tuple[str, ...]: ...

    def links_to(self, neighbour: str) -> tuple[ChannelLink, ...]: ...

    def add_link(self, neighbour: str, link: ChannelLink) -> None:
        """Add a link that is up and may bring adverts from now on."""

    def introduce(self, link: ChannelLink) -> None:
        """Tell all routes to the neighbour at the other end of a link."""

    def remove_link(self, neighbour: str, link: ChannelLink) -> None: ...

    def receive(self, message: Carried, neighbour: str) -> Sequence[Blocked]:
        """Accept and forward an event. Returns what the sending link has to wait for."""

    def receive_news(self, news: News, neighbour: str, link: ChannelLink) -> Sequence[Blocked]:
        """Accept news of a neighbour. Returns what the sending link has to wait for."""

    def forward(self, message: Carried) -> Sequence[Blocked]: ...

    def reroute(self, message: Carried, in_doubt: bool) -> Sequence[Blocked]:
        """Send a message that an ended link still kept over another link."""

    def wait_for_room(self, blocked: Sequence[Blocked]) -> None: ...

    def note_lost(self, message: Carried, reason: Reason) -> None:
        """Count an event that will not reach its destinations."""

    def note_repeated(self, count: int) -> None:
        """Count destinations of events that are sent again although they may have arrived."""

    def note_fault(self, fault: LinkFault) -> None:
        """Count why a connection or a session was ended."""


class FederationHost(Protocol):
    """What a federation needs of its own channel."""

    name: str
    types: TypeSystem
    real_time: RealTimeThreads | None

    @property
    def federation(self) -> Router: ...

    @property
    def consumers(self) -> ConsumerAdmin: ...

    @property
    def lookup(self) -> Lookup[Receiver]: ...

    @property
    def runs_rules(self) -> bool:
        """Whether it can run any rule."""

    def has_supplier_of(self, wanted: Sequence[EventWant]) -> bool:
        """Whether a supplier here may publish an event that is wanted."""

    def demand_changed(self) -> None:
        """Tell suppliers that the wants of other channels may have changed."""

    def spread_to(self, event: Event, receivers: Sequence[Receiver]) -> Sequence[Blocked]:
        """Offer an event to consumers. Returns the offers that wait for room."""

    def wait_for_room(self, blocked: Sequence[Blocked]) -> None: ...

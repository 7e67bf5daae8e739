"""Protocols between a channel, its federation and its links: what each needs of the others.

A federation routes events and interests over `ChannelLink`s; a link asks its `Router` whom it may
speak to and hands over what has arrived. Nothing is implemented here, so that none of them imports
another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ensue.channel.delivery.blocked import Blocked
from ensue.channel.links.faults import LinkFault
from ensue.channel.links.messages import Advert, Carried, News
from ensue.channel.policies import Reason

if TYPE_CHECKING:
    from ensue.channel.lookup.wants import EventWant
    from ensue.channel.realtime.threads import RealTimeThreads
    from ensue.events.event import Event
    from ensue.events.types import TypeSystem


class ChannelLink(Protocol):
    """One end of a link to a neighbour."""

    def send(self, message: Carried) -> Sequence[Blocked]:
        """Give an event its position on the link. Returns it if it has to wait for room."""

    def advertise(self, advert: Advert) -> None:
        """Tell the neighbour of routes."""

    def set_off(self) -> None:
        """Encode and transmit what has a position; done after local consumers were served."""

    @property
    def in_transit(self) -> int:
        """How many destinations the events that are not acknowledged yet are for."""

    def close(self, seconds: float) -> bool:
        """Leave for good. Returns whether everything was sent before, within some seconds."""


class PendingNews(Protocol):
    """News that a neighbour has yet to be told, in their newest form."""

    def __bool__(self) -> bool: ...

    def add(self, news: Any) -> None: ...

    def take(self) -> Sequence[News]:
        """What to send now, each of a bounded size."""


class Router(Protocol):
    """What a link needs of its federation, or of the links of a broker."""

    id: str

    def pending_news(self) -> PendingNews:
        """A record of the news that a connection has been sent, empty for a new connection."""

    def admit(self, neighbour: str, link: ChannelLink | None) -> None:
        """Raise `LinkFaultError` to refuse a neighbour, over a link or by a new one."""

    @property
    def neighbours(self) -> tuple[str, ...]: ...

    def links_to(self, neighbour: str) -> tuple[ChannelLink, ...]: ...

    def add_link(self, neighbour: str, link: ChannelLink) -> None:
        """A link is up, and may bring adverts from now on."""

    def introduce(self, link: ChannelLink) -> None:
        """Tell the neighbour at the other end of a link all routes."""

    def remove_link(self, neighbour: str, link: ChannelLink) -> None: ...

    def receive(self, message: Carried, neighbour: str) -> Sequence[Blocked]:
        """Take an event in and forward it. Returns what the bringer has to wait for."""

    def receive_news(self, news: News, neighbour: str, link: ChannelLink) -> Sequence[Blocked]:
        """Take news in. Returns what the bringer has to wait for."""

    def forward(self, message: Carried) -> Sequence[Blocked]: ...

    def reroute(self, message: Carried, in_doubt: bool) -> Sequence[Blocked]:
        """Send a message another way that its link has kept until it ended."""

    def wait_for_room(self, blocked: Sequence[Blocked]) -> None: ...

    def note_lost(self, message: Carried, reason: Reason) -> None:
        """Count an event that will not reach its destinations."""

    def note_repeated(self, count: int) -> None:
        """Count destinations of events that are sent again and may have arrived."""

    def note_fault(self, fault: LinkFault) -> None:
        """Count why a connection or a session was ended."""


class Host(Protocol):
    """What a federation needs of its own channel."""

    name: str
    types: TypeSystem
    real_time: RealTimeThreads | None

    @property
    def federation(self) -> Router: ...

    def local_wants(self) -> Iterable[EventWant]:
        """The wants of this channel's consumers."""

    def demand_changed(self) -> None:
        """Other channels may want something else now."""

    def spread_here(self, event: Event) -> Sequence[Blocked]:
        """Offer an event to this channel's consumers. Returns the offers that wait for room."""

    def wait_for_room(self, blocked: Sequence[Blocked]) -> None: ...

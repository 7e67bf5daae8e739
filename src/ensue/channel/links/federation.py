"""The links of one channel: what other channels want, the way to each, and events on their way.

Every channel tells its neighbours how it reaches each channel and what that one wants (`routes`).
An event leaves its origin with the list of channels that want it; each channel on the way takes
itself off the list, sorts the rest by link, and sends one message over each of these. So no event
goes in circles or arrives twice, no link carries what is wanted nowhere beyond it, and no channel
needs a link to every other.

How a message crosses is decided by the link: `inprocess` or `tcp`. For each destination of each
event: it arrived, it is in transit, or it is counted as lost under a reason.

The module is long because one lock guards links, routes and events in transit together.
"""

from __future__ import annotations

import hashlib
import struct
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ensue.channel.delivery.blocked import Blocked
from ensue.channel.links.duplicates import DuplicateFilter
from ensue.channel.links.faults import LinkCounts, LinkFault, LinkFaultError
from ensue.channel.links.link import ChannelLink, Host
from ensue.channel.links.messages import (
    LONGEST_PATH,
    Advert,
    Carried,
    News,
    RemoteWant,
    Route,
    as_want,
    compacted,
    within_reading,
)
from ensue.channel.links.routes import PendingRoutes, Routes
from ensue.channel.lookup.index import TargetIndex
from ensue.channel.policies import Reason
from ensue.errors import EnsueError
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.links.tcp.links import Listener, TcpLink
    from ensue.channel.links.tcp.loop import LinkLoop

CLOSING_SECONDS = 2.0
"""How long a channel that closes waits for acknowledgements of what it has sent."""
WAYS_KEPT = 1_024

Ways = tuple[tuple[ChannelLink, tuple[str, ...]], ...]
"""Links, each with the channels that a message over it is for."""


class RemoteChannel:
    """Another channel, as a target of the look-up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rank = (0,)


class Departure(NamedTuple):
    """An event that was published: the links it leaves by, and the links without room for it."""

    links: Sequence[ChannelLink]
    blocked: Sequence[Blocked]

    def set_off(self) -> None:
        """Encode and transmit it, now that local consumers have been served."""
        for link in self.links:
            link.set_off()


NO_DEPARTURE = Departure((), ())


class Federation:
    """Created when a channel is first linked: `channel.federation`."""

    def __init__(self, channel: Host, links: LinkLoop | None = None) -> None:
        if links is None:
            from ensue.channel.links.tcp.loop import LINKS

            links = LINKS
        self.id = f"{channel.name}#{links.entropy(6).hex()}"
        self.remote: TargetIndex[RemoteChannel] = TargetIndex(channel.types)
        self.addressed = 0
        self.sent = 0
        self.received = 0
        self.duplicates = 0
        self._channel = channel
        self._only_here = (self.id,)
        self._links = links
        self._lock = threading.RLock()
        self._routes: Routes[ChannelLink] = Routes(self.id)
        self._targets: dict[str, RemoteChannel] = {}
        self._ways: dict[tuple[RemoteChannel, ...], tuple[Ways, Departure, int]] = {}
        self._identities: list[int] = []
        self._identity_key = links.entropy(32)
        self._draws = 0
        self._seen = DuplicateFilter()
        self._counts = LinkCounts()
        self._listeners: list[Listener] = []
        self._dialling: list[TcpLink] = []
        self._is_in_real_time = False
        self._routes.set_wants(self._wants())

    # Making links.

    def link(self, other: Host) -> None:
        """Link to a channel in this process."""
        from ensue.channel.links.inprocess import join

        join(self, other.federation)

    def unlink(self, other: Host) -> None:
        """Remove the link to a channel in this process, on both sides."""
        from ensue.channel.links.inprocess import part

        part(self, other.federation)

    def listen(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> tuple[str, int]:
        """Let channels of other processes link to this one. Returns the address.

        `secret`, or `certificate`, `key` and `authority`, say who may link; beyond loopback one of
        the two is required. `buffer`, `buffer_bytes`, `overflow` and `patience` are those of this
        end of each link, as for `connect`; `sessions` bounds the links.
        """
        from ensue.channel.links.tcp.links import Listener

        self._join_real_time()
        listener = Listener(self, self._links, host, port, **options)
        self._listeners.append(listener)
        return listener.address

    def connect(self, host: str, port: int, **options: Any) -> TcpLink:
        """Link to a channel that listens; tries again, with growing pauses, until it is closed.

        A `reliable` link keeps events until they are acknowledged and sends them again after a
        disconnection of up to `patience`. `buffer` events and `buffer_bytes` bound what it keeps,
        and `overflow` is its policy beyond that; `backoff` and `longest_backoff` bound the pauses.
        Options of protection are those of `listen`.
        """
        from ensue.channel.links.tcp.links import TcpLink

        self._join_real_time()
        link = TcpLink(self, self._links, host, port, **options)
        self._dialling.append(link)
        return link

    def _join_real_time(self) -> None:
        """The thread of the links takes part in a real-time channel's work."""
        real_time = self._channel.real_time
        if real_time is not None and not self._is_in_real_time:
            self._is_in_real_time = True
            self._links.join_real_time(real_time)

    def close(self, deadline: float) -> bool:
        """Send what is still to be sent, up to a time, and leave. Whether all of it was sent.

        Where the other side does not answer, links give up earlier than that.
        """
        for listener in self._listeners:
            listener.close()
        until = min(deadline, time.monotonic() + CLOSING_SECONDS)
        with self._lock:
            links: list[TcpLink | ChannelLink] = [*self._dialling, *self._routes.all_links()]
        was_sent = [each.close(max(0.0, until - time.monotonic())) for each in links]
        if self._is_in_real_time:
            self._is_in_real_time = False
            self._links.leave_real_time()
        return all(was_sent)

    # What is known of links and channels.

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Where this channel listens."""
        return tuple(each.address for each in self._listeners)

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The ids of all channels that this one is linked to."""
        with self._lock:
            return self._routes.neighbours

    @property
    def reachable(self) -> frozenset[str]:
        """The ids of all channels that there is a way to."""
        with self._lock:
            return frozenset(self._routes.best)

    @property
    def in_transit(self) -> int:
        """How many destinations the events that links still keep are for."""
        with self._lock:
            links = self._routes.all_links()
        return sum(each.in_transit for each in links)

    @property
    def faults(self) -> Mapping[LinkFault, int]:
        """Why connections and sessions were ended, and how often."""
        return self._counts.faults()

    @property
    def repeated(self) -> int:
        """Destinations of events that were sent again though they may have arrived."""
        return self._counts.repeated

    def links_to(self, neighbour: str) -> tuple[ChannelLink, ...]:
        """The link to a neighbour that is in use, and the links that stand by."""
        with self._lock:
            return self._routes.links_to(neighbour)

    # Routes.

    def pending_news(self) -> PendingRoutes:
        return PendingRoutes()

    def admit(self, neighbour: str, link: ChannelLink | None) -> None:
        """Every channel that has proved who it is may link, and more than once."""

    def add_link(self, neighbour: str, link: ChannelLink) -> None:
        """A link is up. Its adverts say what can be reached over it."""
        with self._lock:
            self._routes.add_link(neighbour, link)

    def introduce(self, link: ChannelLink) -> None:
        """Tell the neighbour at the other end of a link all routes."""
        with self._lock:
            advert = self._routes.complete()
        link.advertise(advert)
        link.set_off()

    def remove_link(self, neighbour: str, link: ChannelLink) -> None:
        """Take a link that is down out of the routes, and tell the neighbours."""
        with self._lock:
            # Ways are forgotten even where no route changes: they name the link itself.
            self._ways = {}
            changed = self._routes.remove_link(neighbour, link)
            links = self._apply(changed)
            self._seen.keep(self._routes.neighbours)
        self._tell(changed, links)

    def receive_news(self, news: News, neighbour: str, link: ChannelLink) -> Sequence[Blocked]:
        """Take over what a neighbour says of its routes. Raises `LinkFaultError` if it cannot."""
        if not isinstance(news, Advert):
            # At the other end is a broker.
            raise LinkFaultError(LinkFault.UNEXPECTED)
        advert = within_reading(news)
        for route in advert.routes:
            _check_wants(route.wants)
        with self._lock:
            changed = self._routes.learn(neighbour, link, advert)
            links = self._apply(changed)
        self._tell(changed, links)
        return ()

    def wants_changed(self) -> None:
        """This channel's consumers may want something else now."""
        wants = self._wants()
        with self._lock:
            changed = self._routes.set_wants(wants)
            links = self._routes.all_links()
        self._tell(changed, links)

    def _wants(self) -> tuple[RemoteWant, ...]:
        return compacted(self._channel.local_wants(), self._channel.types)

    def _apply(self, changed: Sequence[Route]) -> list[ChannelLink]:
        """Bring the look-up of other channels' wants up to date. Returns whom to tell."""
        if changed:
            self._ways = {}
        for route in changed:
            if route.path:
                target = self._targets.setdefault(route.channel, RemoteChannel(route.channel))
                self.remote.put(target, [as_want(each) for each in route.wants])
            elif (gone := self._targets.pop(route.channel, None)) is not None:
                self.remote.remove(gone)
        return self._routes.all_links()

    def _tell(self, changed: Sequence[Route], links: Sequence[ChannelLink]) -> None:
        if not changed:
            return
        advert = Advert(0, False, tuple(changed))
        for link in links:
            link.advertise(advert)
            link.set_off()
        self._channel.demand_changed()

    # Events.

    def publish(self, event: Event) -> Departure:
        """Give an event its position on every link over which it leaves.

        The publisher lets it depart after local consumers were served. Its position is taken
        before any of these can publish an effect of it.
        """
        targets = self.remote.find(event)
        if not targets:
            return NO_DEPARTURE
        with self._lock:
            identities = self._identities or self._draw_identities()
            identity = identities.pop()
            ways, departure, lost = self._ways.get(tuple(targets)) or self._find_ways(targets)
            self.addressed += len(targets)
            self.sent += len(ways)
        if lost:
            self._counts.lose(Reason.UNROUTED, lost)
        blocked: list[Blocked] = []
        for link, names in ways:
            if waiting := link.send(Carried(self.id, identity, 1, names, event)):
                blocked += waiting
        return Departure(departure.links, blocked) if blocked else departure

    def _draw_identities(self) -> list[int]:
        """Numbers that cannot be guessed without the key, not even from earlier ones."""
        self._draws += 1
        drawn = hashlib.blake2b(self._draws.to_bytes(8, "big"), key=self._identity_key).digest()
        self._identities = [each >> 1 for each in struct.unpack("8Q", drawn)]
        return self._identities

    def _find_ways(self, targets: Sequence[RemoteChannel]) -> tuple[Ways, Departure, int]:
        """The links to some channels; kept, since most events go where others went before."""
        ways, lost = self._sorted_by_link([each.name for each in targets])
        found = (ways, Departure([link for link, _ in ways], ()), lost)
        if len(self._ways) >= WAYS_KEPT:
            self._ways.clear()
        self._ways[tuple(targets)] = found
        return found

    def _sorted_by_link(self, destinations: Iterable[str]) -> tuple[Ways, int]:
        """Destinations by the link that leads to them, and how many there is no way to."""
        by_link: dict[ChannelLink, list[str]] = {}
        lost = 0
        for name in destinations:
            link = self._routes.link_towards(name)
            if link is None:
                lost += 1
            else:
                by_link.setdefault(link, []).append(name)
        return tuple((link, tuple(names)) for link, names in by_link.items()), lost

    def forward(self, message: Carried) -> Sequence[Blocked]:
        """Send a message on towards its destinations, once over each link that leads to some."""
        with self._lock:
            is_lost = message.hops >= LONGEST_PATH
            ways, lost = self._sorted_by_link(() if is_lost else message.destinations)
            lost += len(message.destinations) if is_lost else 0
            self.sent += len(ways)
        if lost:
            reason = Reason.UNCONFIRMED if message.in_doubt else Reason.UNROUTED
            self._counts.lose(reason, lost)
        blocked: list[Blocked] = []
        for link, names in ways:
            blocked += link.send(message.onwards(names))
            link.set_off()
        return blocked

    def reroute(self, message: Carried, in_doubt: bool) -> Sequence[Blocked]:
        """Send a message another way that its link has kept until it ended.

        What is in doubt may have arrived, and is now on its way twice; the destination takes the
        first of the two.
        """
        onwards = message.onwards(message.destinations, in_doubt)
        if in_doubt:
            with self._lock:
                best = self._routes.best
                reached = sum(each in best for each in onwards.destinations)
            self.note_repeated(reached)
        return self.forward(onwards)

    def receive(self, message: Carried, neighbour: str) -> Sequence[Blocked]:
        """Take what is for this channel, and forward the rest.

        Returns what the bringer has to wait for: full queues here, and full links onwards.
        """
        onwards: Sequence[Blocked] = ()
        if message.destinations != self._only_here:
            destinations = dict.fromkeys(message.destinations)
            others = tuple(name for name in destinations if name != self.id)
            onwards = self.forward(msgspec.structs.replace(message, destinations=others))
            if self.id not in destinations:
                return onwards
        with self._lock:
            self.received += 1
            is_new = message.origin != self.id and self._seen.add(neighbour, message.identity)
            self.duplicates += not is_new
        if not is_new:
            return onwards
        blocked = self._channel.spread_here(message.event)
        return [*onwards, *blocked] if onwards else blocked

    def wait_for_room(self, blocked: Sequence[Blocked]) -> None:
        if blocked:
            self._channel.wait_for_room(blocked)

    # Counts.

    def note_lost(self, message: Carried, reason: Reason) -> None:
        """Count an event that will not reach its destinations by a link."""
        self._counts.lose(reason, len(message.destinations))

    def note_repeated(self, count: int) -> None:
        """Count destinations of events that are sent again and may have arrived."""
        self._counts.repeat(count)

    def note_fault(self, fault: LinkFault) -> None:
        """Count why a connection or a session was ended."""
        self._counts.fault(fault)

    def dropped(self) -> Mapping[Reason, int]:
        """What links could not carry, by destination."""
        return self._counts.lost()


def _check_wants(wants: Iterable[RemoteWant]) -> None:
    """Refuse wants whose predicates cannot be read."""
    for each in wants:
        try:
            as_want(each)
        except (EnsueError, RecursionError, ValueError):
            raise LinkFaultError(LinkFault.BAD_ADVERT) from None

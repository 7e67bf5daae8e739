"""One channel's place among others: what each wants, the way to each, and one message to each.

Every channel of a federation tells its neighbours, and they tell theirs, whom it is linked to and
what its consumers want (an `Advert`, numbered by its channel, so that a newer one replaces an older
one and none goes round twice). From these each channel knows the whole graph and the shortest way
to everybody. An event leaves its origin with the list of channels that want it; each channel on the
way takes itself off, sorts the rest by the next link on its own shortest way, and sends one message
over each. So no event goes in circles or arrives twice, whatever the graph, no link carries what
nobody beyond it wants, and no channel needs a link to every other.

How a message crosses is the link's business: `inprocess` or `tcp`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from ensue.channel.links.arrivals import Arrivals
from ensue.channel.links.link import Link
from ensue.channel.links.messages import Advert, Carried, RemoteWant, as_want, compacted
from ensue.channel.lookup.index import Index
from ensue.channel.policies import Reason
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.delivery.receiver import Receiver
    from ensue.channel.links.tcp import Listener, TcpLink
    from ensue.channel.lookup.wants import Want
    from ensue.channel.realtime.threads import RealTimeThreads
    from ensue.events.types import TypeSystem

HOP_LIMIT = 64
"""While news of a changed graph is on its way, an event may be sent back; not for ever."""
UNREACHABLE_KEPT = 1_024
PATIENCE_AT_THE_END = 2.0
"""Seconds for which a channel that closes waits for what it has sent to be acknowledged."""
WAYS_KEPT = 1_024


Ways = tuple[tuple[Link, tuple[str, ...]], ...]
"""Links, each with the channels that a message over it is for."""


class Host(Protocol):
    """What a federation needs of its own channel."""

    name: str
    types: TypeSystem
    real_time: RealTimeThreads | None

    @property
    def federation(self) -> Federation: ...

    def local_wants(self) -> Iterable[Want]:
        """All that this channel's consumers might want."""

    def demand_changed(self) -> None:
        """Other channels may want something else now."""

    def spread_here(self, event: Event) -> Sequence[Receiver]:
        """Offer an event to this channel's consumers. Returns those whose supplier has to wait."""

    def wait_for_room(self, event: Event, full: Sequence[Receiver]) -> None: ...


class RemoteChannel:
    """Another channel, as a target of the look-up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rank = (0,)


class Federation:
    """Made when a channel is first linked: `channel.federation`."""

    def __init__(self, channel: Host) -> None:
        self.id = f"{channel.name}#{uuid4().hex[:12]}"
        self.remote: Index[RemoteChannel] = Index(channel.types)
        self.sent = 0
        self.received = 0
        self.duplicates = 0
        self._channel = channel
        self._lock = threading.RLock()
        self._links: dict[str, Link] = {}
        self._spare: dict[str, list[Link]] = {}
        self._adverts: dict[str, Advert] = {}
        self._targets: dict[str, RemoteChannel] = {}
        self._next: dict[str, str] = {}
        self._ways: dict[tuple[RemoteChannel, ...], Ways] = {}
        self._sequence = 0
        self._version = 0
        self._seen = Arrivals()
        self._unrouted = 0
        self._unsent = 0
        self._counting = threading.Lock()
        self._listeners: list[Listener] = []
        self._dialling: list[TcpLink] = []
        self._has_hurried = False
        self._advertise()

    def link(self, other: Host) -> None:
        """Link to a channel in this process."""
        from ensue.channel.links.inprocess import join

        join(self, other.federation)

    def unlink(self, other: Host) -> None:
        """Take the link to a neighbour away, on both sides."""
        from ensue.channel.links.inprocess import part

        part(self, other.federation)

    def listen(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> tuple[str, int]:
        """Let channels of other processes link to this one. Returns where it listens.

        `buffer` and `patience` are those of this end of each link, as for `connect`.
        """
        from ensue.channel.links.tcp import Listener

        self._hurry_links()
        listener = Listener(self, host, port, **options)
        self._listeners.append(listener)
        return listener.address

    def connect(self, host: str, port: int, **options: Any) -> TcpLink:
        """Link to a channel that listens; tries again, with growing pauses, until it is closed.

        `reliable` keeps what a lost connection cannot carry and sends it again, up to `buffer`
        events and `patience`; `backoff` and `longest_backoff` bound the pauses.
        """
        from ensue.channel.links.tcp import TcpLink

        self._hurry_links()
        link = TcpLink(self, host, port, **options)
        self._dialling.append(link)
        return link

    def _hurry_links(self) -> None:
        """Over TCP another thread does its part: where the channel is in real time, in time too."""
        from ensue.channel.links.wire import LINKS

        real_time = self._channel.real_time
        if real_time is not None and not self._has_hurried:
            self._has_hurried = True
            LINKS.hurry(real_time)

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Where this channel listens."""
        return tuple(each.address for each in self._listeners)

    @property
    def neighbours(self) -> tuple[str, ...]:
        return tuple(self._links)

    def links_to(self, neighbour: str) -> tuple[Link, ...]:
        """The link that is used, and those that stand by."""
        with self._lock:
            used = self._links.get(neighbour)
            return () if used is None else (used, *self._spare.get(neighbour, ()))

    @property
    def reachable(self) -> frozenset[str]:
        """The ids of all channels that there is a way to."""
        return frozenset(self._next)

    def add_link(self, neighbour: str, link: Link) -> None:
        """A link is up: tell the neighbour all we know, and everybody that it is there.

        Of several to one neighbour the newest is used, and the others stand by. One that has come
        back takes nothing over: what is on its way over another must not be overtaken.
        """
        with self._lock:
            others = self.links_to(neighbour)
            if link not in others:
                self._links[neighbour] = link
                self._spare[neighbour] = list(others)
                self._ways = {}
            known = [each for each in self._adverts.values() if each.channel != self.id]
        # Our own first: it says that the link is there, and goes to everybody.
        self._advertise()
        for advert in known:
            link.send(advert)
        link.set_off()

    def remove_link(self, neighbour: str, link: Link) -> None:
        with self._lock:
            used = self._links.get(neighbour)
            if used is None:
                return
            spare = [each for each in self._spare[neighbour] if each is not link]
            self._spare[neighbour] = spare
            if used is not link:
                return
            if spare:
                self._links[neighbour] = spare.pop()
            else:
                del self._links[neighbour], self._spare[neighbour]
            # In the same moment, so that nobody finds a way that leads over it.
            advert, links = self._renew()
        self._tell(advert, links)

    def close(self, deadline: float) -> bool:
        """Send what is still to be sent, up to a time, and leave. Whether all of it was sent.

        Where the other side does not answer, links give up earlier than that.
        """
        for listener in self._listeners:
            listener.close()
        until = min(deadline, time.monotonic() + PATIENCE_AT_THE_END)
        links: list[TcpLink | Link] = [*self._dialling]
        links += [link for name in list(self._links) for link in self.links_to(name)]
        was_sent = [each.close(max(0.0, until - time.monotonic())) for each in links]
        if self._has_hurried:
            from ensue.channel.links.wire import LINKS

            self._has_hurried = False
            LINKS.calm()
        return all(was_sent)

    def wants_changed(self) -> None:
        """This channel's consumers may want something else now."""
        wants = self._wants()
        with self._lock:
            if wants == self._adverts[self.id].wants:
                return
        self._advertise()

    def _advertise(self) -> None:
        with self._lock:
            advert, links = self._renew()
        self._tell(advert, links)

    def _wants(self) -> tuple[RemoteWant, ...]:
        return compacted(self._channel.local_wants(), self._channel.types)

    def _renew(self) -> tuple[Advert, list[Link]]:
        self._version += 1
        advert = Advert(
            self.id,
            self._version,
            tuple(self._links),
            compacted(self._channel.local_wants(), self._channel.types),
        )
        self._adverts[self.id] = advert
        self._find_ways()
        return advert, list(self._links.values())

    def _tell(self, advert: Advert, links: Sequence[Link]) -> None:
        for link in links:
            link.send(advert)
            link.set_off()
        self._channel.demand_changed()

    def receive_advert(self, advert: Advert, neighbour: str) -> None:
        with self._lock:
            known = self._adverts.get(advert.channel)
            if advert.channel == self.id or (known and known.version >= advert.version):
                return
            self._adverts[advert.channel] = advert
            if known is None or known.neighbours != advert.neighbours:
                self._find_ways()
            if advert.channel in self._next:
                self._put(advert)
            links = [link for name, link in self._links.items() if name != neighbour]
        self._tell(advert, links)

    def _find_ways(self) -> None:
        """The first link on a shortest way to each channel, over links that both ends confirm."""
        self._ways = {}
        first: dict[str, str] = {self.id: self.id}
        waiting = deque([self.id])
        while waiting:
            here = waiting.popleft()
            for there in sorted(self._adverts[here].neighbours):
                advert = self._adverts.get(there)
                if there not in first and advert and here in advert.neighbours:
                    first[there] = there if here == self.id else first[here]
                    waiting.append(there)
        del first[self.id]
        gone, come = self._next.keys() - first.keys(), first.keys() - self._next.keys()
        self._next = first
        for name in gone:
            self.remote.remove(self._targets.pop(name))
        for name in come:
            self._put(self._adverts[name])
        self._forget_some()

    def _put(self, advert: Advert) -> None:
        target = self._targets.setdefault(advert.channel, RemoteChannel(advert.channel))
        self.remote.put(target, [as_want(each) for each in advert.wants])

    def _forget_some(self) -> None:
        # A channel out of reach may come back, and its advert with it: old ones need not be kept.
        unreachable = [n for n in self._adverts if n not in self._next and n != self.id]
        for name in unreachable[: max(0, len(unreachable) - UNREACHABLE_KEPT)]:
            del self._adverts[name]

    def publish(self, event: Event) -> Ways:
        """Put an event of this channel on its way to every other that wants it.

        Returns the links that it goes over: whoever publishes has them set off once consumers here
        have been served. Its place is taken before any of them can publish what follows from it.
        """
        targets = self.remote.find(event)
        if not targets:
            return ()
        with self._lock:
            self._sequence += 1
            number = self._sequence
            ways = self._ways_to(targets)
            self.sent += len(ways)
        for link, names in ways:
            link.send(Carried(self.id, number, 1, names, event))
        return ways

    def _ways_to(self, targets: Sequence[RemoteChannel]) -> Ways:
        """The links to some channels; kept, as most events go where others went before."""
        key = tuple(targets)
        ways = self._ways.get(key)
        if ways is None:
            ways, lost = self._sorted_by_link([each.name for each in targets])
            self._unrouted += lost
            if not lost:
                if len(self._ways) >= WAYS_KEPT:
                    self._ways.clear()
                self._ways[key] = ways
        return ways

    def _sorted_by_link(self, destinations: Iterable[str]) -> tuple[Ways, int]:
        """Destinations by the link that leads to them, and how many there is no way to."""
        by_link: dict[str, list[str]] = {}
        lost = 0
        for name in destinations:
            way = self._next.get(name)
            if way is None:
                lost += 1
            else:
                by_link.setdefault(way, []).append(name)
        return tuple((self._links[way], tuple(by_link[way])) for way in by_link), lost

    def forward(self, message: Carried) -> None:
        """Send a message on towards its destinations, once over each link that leads to some."""
        with self._lock:
            if message.hops >= HOP_LIMIT:
                self._unrouted += len(message.destinations)
                return
            ways, lost = self._sorted_by_link(message.destinations)
            self._unrouted += lost
            self.sent += len(ways)
        for link, names in ways:
            link.send(
                Carried(message.origin, message.sequence, message.hops + 1, names, message.event)
            )
            link.set_off()

    def receive(self, message: Carried) -> Sequence[Receiver]:
        """Take what is for this channel, and forward the rest.

        Returns the receivers that are full: whoever brought the message has to wait for them.
        """
        others = tuple(name for name in message.destinations if name != self.id)
        if others:
            self.forward(
                Carried(message.origin, message.sequence, message.hops, others, message.event)
            )
        if len(others) == len(message.destinations):
            return ()
        with self._lock:
            self.received += 1
            if not self._seen.add(message.origin, message.sequence):
                self.duplicates += 1
                return ()
        return self._channel.spread_here(message.event)

    def wait_for_room(self, event: Event, full: Sequence[Receiver]) -> None:
        self._channel.wait_for_room(event, full)

    def note_unsent(self, count: int) -> None:
        """A link could neither send nor keep some events; it may be no link of ours any more."""
        # A lock of its own: links hold theirs meanwhile.
        with self._counting:
            self._unsent += count

    def dropped(self) -> Counter[Reason]:
        """What links could not carry."""
        counts = {Reason.UNSENT: self._unsent, Reason.UNROUTED: self._unrouted}
        return Counter({reason: count for reason, count in counts.items() if count})

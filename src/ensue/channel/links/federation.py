"""The links of one channel: the wants of other channels, routes to them, and events in transit.

Every channel tells its neighbours its route to each known channel, with the wants of that channel
(`routes`). An event leaves its origin with the list of channels that want it. Each channel on the
way removes itself from the list, groups the remaining destinations by link, and sends one message
over each of these links. So no event goes in circles or arrives twice, a link carries only events
that are wanted beyond it, and no channel needs a link to every other channel. A rule whose events
all come over one link runs at its other end (`hosting`, `asking`).

The kind of link (`inprocess` or `tcp`) decides how a message is carried. Each destination of each
event is in one of three states: it was reached, the event is in transit, or the event is counted as
lost under a reason.

The module is long because one lock guards links, routes, rules and events in transit together.
What must not be done under the lock, as to call a supplier, is left in `later`.
"""

from __future__ import annotations

import hashlib
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ensue.channel.delivery.blocked import Blocked
from ensue.channel.links.asking import OPEN, AskedRules
from ensue.channel.links.duplicates import DuplicateFilter
from ensue.channel.links.faults import LinkCounts, LinkFault, LinkFaultError
from ensue.channel.links.hosting import HostedRule, HostedRules
from ensue.channel.links.link import ChannelLink, FederationHost
from ensue.channel.links.messages import (
    LONGEST_PATH,
    NEIGHBOURS_ASKED,
    Advert,
    Carried,
    News,
    RemoteWant,
    Route,
    as_want,
    compacted,
    within_parsing_bounds,
)
from ensue.channel.links.routes import Offers, PendingRoutes, Routes, Rules, Wants
from ensue.channel.lookup.index import TargetIndex
from ensue.channel.policies import Reason
from ensue.errors import EnsueError
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.delivery.receiver import Receiver
    from ensue.channel.links.tcp.links import Listener, TcpLink
    from ensue.channel.links.tcp.loop import LinkLoop
    from ensue.channel.lookup.wants import EventWant

CLOSING_SECONDS = 2.0
"""How long a channel that closes waits for acknowledgements of the events that it has sent."""
WAYS_KEPT = 1_024

Ways = tuple[tuple[ChannelLink, tuple[str, ...]], ...]
"""Links, each with the channels that a message over it is for."""


class RemoteChannel:
    """Another channel, as a target of the look-up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rank = (0, 0)


class Readers(NamedTuple):
    """Rules of linked channels that run here read an event `also`; those of `away` do elsewhere."""

    also: Sequence[Receiver]
    away: frozenset[Receiver]

    def of(self, found: Iterable[Receiver]) -> Sequence[Receiver]:
        """The receivers of the event, of those that the look-up has found, and the rules."""
        return [*(each for each in found if each not in self.away), *self.also]


class Departure(NamedTuple):
    """A published event: the links that carry it, and the links that have no room for it yet."""

    links: Sequence[ChannelLink]
    blocked: Sequence[Blocked]
    readers: Readers | None = None

    def transmit(self) -> None:
        """Encode and transmit the event. Called after local consumers have been served."""
        for link in self.links:
            link.transmit()


NO_DEPARTURE = Departure((), ())


class Federation:
    """Created when a channel is first linked: `channel.federation`."""

    def __init__(self, channel: FederationHost, link_loop: LinkLoop | None = None) -> None:
        if link_loop is None:
            from ensue.channel.links.tcp.loop import LINK_LOOP

            link_loop = LINK_LOOP
        self.id = f"{channel.name}#{link_loop.entropy(6).hex()}"
        self.remote: TargetIndex[RemoteChannel | HostedRule] = TargetIndex(channel.types)
        """What channels want (`RemoteChannel`), and the rules of others that run here."""
        self.later: list[Callable[[], object]] = []
        self._unsent: list[Blocked] = []
        self.addressed = 0
        self.sent = 0
        self.received = 0
        self.duplicates = 0
        self.closing_seconds = CLOSING_SECONDS
        self._channel = channel
        self._only_here = (self.id,)
        self._link_loop = link_loop
        self._lock = threading.RLock()
        self._routes: Routes[ChannelLink] = Routes(self.id)
        self._targets: dict[str, RemoteChannel] = {}
        self._ways: dict[tuple[RemoteChannel, ...], tuple[Ways, Departure, int]] = {}
        self._identities: list[int] = []
        self._identity_key = link_loop.entropy(32)
        self._draws = 0
        self._seen = DuplicateFilter()
        self._counts = LinkCounts()
        self._asked = AskedRules(channel, self.id, self._send_on)
        self._hosted = HostedRules(channel, self, self.remote)
        self._rules_version = 0
        """Odd while there are rules that run here for others, or may run elsewhere."""
        self._listeners: list[Listener] = []
        self._dialling: list[TcpLink] = []
        self._is_in_real_time = False
        self._routes.set_wants(*self._wants())

    # Create and close links.

    def link(self, other: FederationHost) -> None:
        """Link to a channel in this process."""
        from ensue.channel.links.inprocess import join

        join(self, other.federation)

    def unlink(self, other: FederationHost) -> None:
        """Remove the link to a channel in this process, on both sides."""
        from ensue.channel.links.inprocess import part

        part(self, other.federation)

    def listen(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> tuple[str, int]:
        """Let channels of other processes link to this one. Returns the address.

        `secret`, or `certificate`, `key` and `authority`, authenticate the channels that link;
        beyond loopback one of the two is required. `buffer`, `buffer_bytes`, `overflow` and
        `patience` apply to this end of each link, as in `connect`; `sessions` bounds the number of
        links, `callers` that of callers in their handshake, and `handshake` its time.
        """
        from ensue.channel.links.tcp.links import Listener

        self._join_real_time()
        listener = Listener(self, self._link_loop, host, port, **options)
        self._listeners.append(listener)
        return listener.address

    def connect(self, host: str, port: int, **options: Any) -> TcpLink:
        """Link to a channel that listens. Dials again, with growing pauses, until it is closed.

        A `reliable` link keeps events until they are acknowledged and sends them again after a
        disconnection of up to `patience`. It keeps at most `buffer` events of together at most
        `buffer_bytes`, and `overflow` is its policy beyond that. `backoff` and `longest_backoff`
        bound the pauses. The options for authentication are those of `listen`.
        """
        from ensue.channel.links.tcp.links import TcpLink

        self._join_real_time()
        link = TcpLink(self, self._link_loop, host, port, **options)
        self._dialling.append(link)
        return link

    def _join_real_time(self) -> None:
        """Move the thread of the link loop into the real-time class, for a real-time channel."""
        real_time = self._channel.real_time
        if real_time is not None and not self._is_in_real_time:
            self._is_in_real_time = True
            self._link_loop.join_real_time(real_time)

    def close(self, deadline: float) -> bool:
        """Send all events in transit, until `deadline` at the latest, and close every link.

        Returns whether all of them were sent. A link whose other side does not answer gives up
        after `closing_seconds`.
        """
        for listener in self._listeners:
            listener.close()
        until = min(deadline, time.monotonic() + self.closing_seconds)
        with self._lock:
            links: list[TcpLink | ChannelLink] = [*self._dialling, *self._routes.all_links()]
        was_sent = [each.close(max(0.0, until - time.monotonic())) for each in links]
        if self._is_in_real_time:
            self._is_in_real_time = False
            self._link_loop.leave_real_time()
        return all(was_sent)

    # Links and channels that are known.

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
        """The ids of all channels to which a route is known."""
        with self._lock:
            return frozenset(self._routes.best)

    @property
    def in_transit(self) -> int:
        """Destinations of all events that links keep, summed over the events."""
        with self._lock:
            links = self._routes.all_links()
        return sum(each.in_transit for each in links)

    @property
    def faults(self) -> Mapping[LinkFault, int]:
        """Why connections and sessions were ended, and how often."""
        return self._counts.faults()

    @property
    def repeated(self) -> int:
        """Destinations of events that were sent again although they may have arrived."""
        return self._counts.repeated

    def links_to(self, neighbour: str) -> tuple[ChannelLink, ...]:
        """The links to a neighbour: first the one in use, then those on standby."""
        with self._lock:
            return self._routes.links_to(neighbour)

    # Routes.

    def pending_news(self) -> PendingRoutes:
        return PendingRoutes()

    def admit(self, neighbour: str, link: ChannelLink | None) -> None:
        """Admit every authenticated channel, also several times."""

    def add_link(self, neighbour: str, link: ChannelLink) -> None:
        """Add a link that is up. Its adverts tell which channels can be reached over it."""
        with self._lock:
            self._routes.add_link(neighbour, link)

    def introduce(self, link: ChannelLink) -> None:
        """Tell all routes to the neighbour at the other end of a link."""
        with self._changing():
            self._choose()
            advert = self._routes.complete()
            self.later.append(lambda: _advertise(link, advert))

    def remove_link(self, neighbour: str, link: ChannelLink) -> None:
        """Take a link that is down out of the routes, and tell the neighbours."""
        with self._changing():
            # Cached ways name the link itself, so they are cleared even if no route changes.
            self._ways = {}
            changed = self._routes.remove_link(neighbour, link)
            self._seen.keep(self._routes.neighbours)
            self._hosted.update(neighbour, self._routes.own_route_of(neighbour), {})
            self._apply(changed)
            self._tell(changed)
            self._choose()

    def receive_news(self, news: News, neighbour: str, link: ChannelLink) -> Sequence[Blocked]:
        """Learn the routes of a neighbour. Raises `LinkFaultError` for news that is not valid."""
        if not isinstance(news, Advert):
            # The other end is a broker.
            raise LinkFaultError(LinkFault.UNEXPECTED)
        advert = within_parsing_bounds(news)
        for route in advert.routes:
            _check_wants(route.all_wants)
        own = next((route for route in advert.routes if route.channel == neighbour), None)
        new = self._hosted.prepare(own) if own is not None else {}
        with self._changing():
            changed = self._routes.learn(neighbour, link, advert)
            told = self._routes.own_route_of(neighbour)
            if told is not None:
                # A rule watches for events before any is sent to its channel.
                self._hosted.update(neighbour, told, new)
                self._put_wants(neighbour)
                self._asked.learn(told)
            self._apply(changed)
            self._tell(changed)
            self._choose()
            blocked, self._unsent = self._unsent, []
        return blocked

    def wants_changed(self) -> None:
        """Tell the neighbours the present wants of this channel's consumers."""
        with self._changing():
            self._choose()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A block with the lock held. What it leaves for `later` is done at its end."""
        with self._lock:
            yield
            later, self.later = self.later, []
        for each in later:
            each()

    def _choose(self) -> None:
        """Decide which rules run elsewhere, and tell the neighbours what is wanted."""
        neighbours = self._routes.neighbours
        links = self._routes.all_links()
        asks = len(neighbours) <= NEIGHBOURS_ASKED and all(each.queues_news for each in links)
        self._asked.choose(neighbours, asks and self._routes.are_apart())
        self._tell_own()

    def _tell_own(self) -> None:
        has_rules = self._asked.is_any or self._hosted.is_any
        self._rules_version += has_rules != self._rules_version % 2
        self._tell(self._routes.set_wants(*self._wants()))

    def _wants(self) -> tuple[Wants, Rules, Offers]:
        wants = chain(self._asked.wants(), self._hosted.wants())
        rules, offers = self._asked.rules(), self._hosted.offers
        return compacted(wants, self._channel.types), rules, offers

    def _apply(self, changed: Sequence[Route]) -> None:
        """Update the look-up of other channels' wants."""
        if changed:
            self._ways = {}
        for route in changed:
            if route.path:
                self._targets.setdefault(route.channel, RemoteChannel(route.channel))
                self._put_wants(route.channel)
            elif (gone := self._targets.pop(route.channel, None)) is not None:
                self.remote.remove(gone)

    def _put_wants(self, channel: str) -> None:
        target, best = self._targets.get(channel), self._routes.best.get(channel)
        if target is not None and best is not None:
            route = self._routes.own_route_of(channel)
            wants: Iterable[EventWant] = map(as_want, best.wants)
            if route is not None and route.rules:
                wants = self._hosted.unhosted(route)
            self._ways = {}
            self.remote.put(target, wants)

    def _tell(self, changed: Sequence[Route]) -> None:
        """Tell the neighbours of routes: ahead of all events that are sent later."""
        if not changed:
            return
        advert = Advert(0, False, tuple(changed))
        for link in self._routes.all_links():
            if link.queues_news:
                link.advertise(advert)
                self.later.append(link.transmit)
            else:
                self.later.append(partial(_advertise, link, advert))
        self.later.append(self._channel.demand_changed)

    # Events.

    def publish(self, event: Event) -> Departure:
        """Give an event its position on every link that has to carry it.

        It is transmitted only after local consumers have been served. Its position is fixed before
        that, so that an event which a consumer publishes in response comes after it on every link.
        """
        version = self._rules_version
        targets: Sequence[Any] = () if version % 2 else self.remote.find(event)
        if not targets and version % 2 == 0 and version == self._rules_version:
            return NO_DEPARTURE
        also: Sequence[Receiver] = ()
        rules: tuple[str, ...] = ()
        with self._lock:
            if version % 2 or version != self._rules_version:
                targets, also, rules = self._read_by_rules(event)
            away, later, self.later = self._asked.away, self.later, []
            identities = self._identities or self._draw_identities()
            identity = identities.pop()
            ways, departure, lost = self._ways.get(tuple(targets)) or self._find_ways(targets)
            self.addressed += len(targets)
            self.sent += len(ways)
        if lost:
            self._counts.lose(Reason.UNROUTED, lost)
        blocked: list[Blocked] = []
        for link, names in ways:
            if waiting := link.send(Carried(self.id, identity, 1, names, event, rules=rules)):
                blocked += waiting
        for each in later:
            each()
        if not (blocked or also or away):
            return departure
        return Departure(departure.links, blocked, Readers(also, away))

    def _read_by_rules(
        self, event: Event
    ) -> tuple[tuple[RemoteChannel, ...], Sequence[Receiver], tuple[str, ...]]:
        """Where an event of this channel goes: channels, rules that run here, and rules by key."""
        elsewhere, has_kept = self._asked.meet(event)
        found = self.remote.find(event)
        here = self._hosted.read_by(found, self.id, ())
        also, has_offered = self._hosted.read(here, event)
        if has_kept or has_offered:
            self._tell_own()
        targets = [each for each in found if isinstance(each, RemoteChannel)]
        for asked in elsewhere:
            host = self._targets.get(asked.host)
            if host is not None and host not in targets:
                targets.append(host)
        rules = [each.told.key for each in here], [each.told.key for each in elsewhere]
        return tuple(targets), also, tuple(chain(*rules))

    def send_output(self, asking: str, key: str, event: Event) -> None:
        """Send what a rule has put out to the channel that asked for it."""
        self._channel.wait_for_room(self._send_for(asking, key, event, is_output=True))

    def send_kept(self, asking: str, key: str, events: Sequence[Event]) -> None:
        """Send a channel the events of a rule that runs there after all."""
        for event in events:
            self._unsent += self._send_for(asking, key, event)

    def lose_kept(self, count: int) -> None:
        """Count events that were kept for too long."""
        self.addressed += count
        self._counts.lose(Reason.UNSENT, count)

    def _send_on(self, key: str, event: Event) -> None:
        """An event was on its way to a rule here when that left."""
        asked = self._asked.of(key)
        if asked is not None:
            if asked.told.runs:
                blocked = self._send_for(asked.host, key, event)
            else:
                blocked = self._channel.spread_to(event, (asked.consumer.receiver,))
            self._channel.wait_for_room(blocked)

    def _send_for(
        self, channel: str, key: str, event: Event, is_output: bool = False
    ) -> Sequence[Blocked]:
        """Send a channel an event that is for one rule alone."""
        with self._lock:
            identity = (self._identities or self._draw_identities()).pop()
            self.addressed += 1
        to = (channel,)
        message = Carried(self.id, identity, 0, to, event, rule=key, is_output=is_output)
        return self.forward(message)

    def _draw_identities(self) -> list[int]:
        """Draw numbers that cannot be predicted without the key, not even from earlier numbers."""
        self._draws += 1
        drawn = hashlib.blake2b(self._draws.to_bytes(8, "big"), key=self._identity_key).digest()
        self._identities = [each >> 1 for each in struct.unpack("8Q", drawn)]
        return self._identities

    def _find_ways(self, targets: Sequence[RemoteChannel]) -> tuple[Ways, Departure, int]:
        """The links that lead to a set of channels; cached, since events often share targets."""
        ways, lost = self._sorted_by_link([each.name for each in targets])
        found = (ways, Departure([link for link, _ in ways], ()), lost)
        if len(self._ways) >= WAYS_KEPT:
            self._ways.clear()
        self._ways[tuple(targets)] = found
        return found

    def _sorted_by_link(self, destinations: Iterable[str]) -> tuple[Ways, int]:
        """The destinations of each link, and the number of destinations without a route."""
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
        """Send a message towards its destinations, once over each link that leads to any."""
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
            link.transmit()
        return blocked

    def reroute(self, message: Carried, in_doubt: bool) -> Sequence[Blocked]:
        """Send a message that an ended link still kept over another link.

        A message in doubt may have arrived already. Its destination then gets it twice and accepts
        the first.
        """
        onwards = message.onwards(message.destinations, in_doubt)
        if in_doubt:
            with self._lock:
                best = self._routes.best
                reached = sum(each in best for each in onwards.destinations)
            self.note_repeated(reached)
        return self.forward(onwards)

    def receive(self, message: Carried, neighbour: str) -> Sequence[Blocked]:
        """Accept a message that is addressed to this channel; forward it to other destinations.

        Returns what the sending link has to wait for: full queues here, and full links onwards.
        """
        if message.rule is None and self._rules_version % 2:
            return self._receive_by_rules(message, neighbour)
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
        if message.rule is not None:
            blocked = self._receive_for_rule(message)
        else:
            receivers = self._channel.lookup.find(message.event)
            blocked = self._channel.spread_to(message.event, receivers)
        return [*onwards, *blocked] if onwards else blocked

    def _receive_by_rules(self, message: Carried, neighbour: str) -> Sequence[Blocked]:
        """Accept a message that rules of other channels may read here.

        If such a channel wants it for these rules alone, it goes no further.
        """
        event, origin = message.event, message.origin
        receivers: Sequence[Receiver] = self._channel.lookup.find(event)
        also: Sequence[Receiver] = ()
        later: list[str] = []
        with self._changing():
            destinations = dict.fromkeys(message.destinations)
            found = self.remote.find(event)
            here = self._hosted.read_by(found, origin, message.rules)
            wanting = {each.name for each in found if isinstance(each, RemoteChannel)}
            reading = {each.asking for each in here} - wanting
            mine = [name for name in destinations if name == self.id or name in reading]
            is_new = False
            if mine or here:
                self.received += len(mine)
                is_new = origin != self.id and self._seen.add(neighbour, message.identity)
                self.duplicates += bool(mine) and not is_new
            if is_new:
                also, has_offered = self._hosted.read(here, event)
                elsewhere, has_kept = self._asked.meet(event, message.rules)
                away = self._asked.away.union(each.consumer.receiver for each in elsewhere)
                receivers = Readers(also, away).of(receivers)
                if has_offered or has_kept:
                    self._tell_own()
                # It has come by another way than that of the channel which runs the rule.
                later = [
                    each.told.key
                    for each in elsewhere
                    if each.told.runs
                    and each.told.key not in message.rules
                    and each.host not in (*message.destinations, neighbour)
                ]
            rules = (*message.rules, *(each.told.key for each in here))
        onwards: list[Blocked] = []
        if others := tuple(name for name in destinations if name not in mine):
            passed_on = msgspec.structs.replace(message, destinations=others, rules=rules)
            onwards += self.forward(passed_on)
        if is_new:
            to = receivers if self.id in destinations else also
            if to or self.id in destinations:
                onwards += self._channel.spread_to(event, to)
            for key in later:
                self._send_on(key, event)
        return onwards

    def _receive_for_rule(self, message: Carried) -> Sequence[Blocked]:
        """An event for one rule: what it has put out elsewhere, or what it has yet to read."""
        event, is_output = message.event, message.is_output
        # None, if the consumer has left or wants something else, or its rule has begun anew.
        to: Sequence[Receiver] = ()
        with self._changing():
            asked, hosted = self._asked.of(message.rule), self._hosted.of(message.rule)
            if asked is not None and not asked.has_left:
                if asked.state == OPEN:
                    # News of the rule has been overtaken.
                    if is_output:
                        self._asked.agree(asked, message.origin)
                    else:
                        self._asked.keep(asked)
                    self._tell_own()
                if not is_output and asked.told.runs:
                    # Another neighbour has offered the rule too.
                    self.later.append(partial(self._send_on, asked.told.key, event))
                    return ()
                if is_output == asked.told.runs:
                    to = (asked.consumer.receiver,)
                    event = asked.step.wrapped(event) if is_output else event
            elif hosted is not None and hosted.asking == message.origin and not is_output:
                to, _ = self._hosted.read((hosted,), event)
        return self._channel.spread_to(event, to)

    def wait_for_room(self, blocked: Sequence[Blocked]) -> None:
        if blocked:
            self._channel.wait_for_room(blocked)

    # Counts.

    def note_lost(self, message: Carried, reason: Reason) -> None:
        """Count an event that a link could not bring to its destinations."""
        self._counts.lose(reason, len(message.destinations))

    def note_repeated(self, count: int) -> None:
        """Count destinations of events that are sent again although they may have arrived."""
        self._counts.repeat(count)

    def note_fault(self, fault: LinkFault) -> None:
        """Count why a connection or a session was ended."""
        self._counts.fault(fault)

    def dropped(self) -> Mapping[Reason, int]:
        """Lost events by reason, counted once for each destination."""
        return self._counts.lost()


def _advertise(link: ChannelLink, advert: Advert) -> None:
    link.advertise(advert)
    link.transmit()


def _check_wants(wants: Iterable[RemoteWant]) -> None:
    """Refuse wants whose predicates cannot be read."""
    for each in wants:
        try:
            as_want(each)
        except (EnsueError, RecursionError, ValueError):
            raise LinkFaultError(LinkFault.BAD_ADVERT) from None

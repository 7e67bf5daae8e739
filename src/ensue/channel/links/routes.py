"""The routing table of a channel: which link leads to which other channel.

In come adverts of neighbours and changes of links; out come the routes that have changed, which
this channel advertises to its neighbours as its own. The protocol is a path-vector protocol (as in
RFC 4271): a route contains its whole path, so a route through this channel is recognised and no
loop is ever chosen. A neighbour is trusted only about routes through itself. A directly linked
channel is reached over its own link, whatever others advertise, and a false advert affects only
events that are sent to the neighbour that made it.

The shortest route is chosen and, of equally short routes, the one over the neighbour whose id sorts
first. All channels choose in this way, so the routes from one channel to all others form a tree,
and an event crosses each link at most once. Nothing here is locked, and nothing is sent.

The table is bounded in number and in bytes, since a neighbour can invent channels. Beyond the
bounds, the neighbour that advertises the most channels loses one of them. A channel whose wants do
not fit is advertised as wanting every event, and filters the events itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from ensue.channel.links.faults import LinkFault, LinkFaultError
from ensue.channel.links.messages import (
    CHANNELS,
    LONGEST_PATH,
    Advert,
    RemoteRule,
    RemoteWant,
    Route,
)

WITHDRAWN_KEPT = 1_024
"""How many withdrawn routes are kept, so that an older advert cannot restore them."""

MOST_BYTES = 4 * 1024 * 1024
"""The largest size of all advertised routes together, so that one frame holds them."""
MOST_LEARNED_BYTES = 2 * MOST_BYTES
"""The largest size of the routes of one neighbour; during a change old and new routes add up."""

LinkLike = TypeVar("LinkLike")
Wants = tuple[RemoteWant, ...]
Rules = tuple[RemoteRule, ...]
Offers = tuple[str, ...]
EVERYTHING: Wants = (RemoteWant(None, None, None),)


class Best(NamedTuple):
    """The chosen route to a channel: the next neighbour, the path from there, the wants."""

    neighbour: str
    path: tuple[str, ...]
    wants: Wants


class Routes(Generic[LinkLike]):
    """The routes of the channel `own`. Methods that change routes return the changed ones."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._version = 0
        self._links: dict[str, list[LinkLike]] = {}
        self._learned: dict[LinkLike, dict[str, Route]] = {}
        self._learned_bytes: Counter[LinkLike] = Counter()
        self._told: dict[str, Route] = {}
        self._told_bytes: Counter[str] = Counter()
        self._all_told_bytes = 0
        self.best: dict[str, Best] = {}

    @property
    def neighbours(self) -> tuple[str, ...]:
        return tuple(self._links)

    def links_to(self, neighbour: str) -> tuple[LinkLike, ...]:
        """The links to a neighbour: first the one in use, then those on standby."""
        return tuple(self._links.get(neighbour, ()))

    def all_links(self) -> list[LinkLike]:
        return [link for links in self._links.values() for link in links]

    def link_towards(self, channel: str) -> LinkLike | None:
        """The link over which a channel is reached."""
        best = self.best.get(channel)
        return None if best is None else self._links[best.neighbour][0]

    def complete(self) -> Advert:
        """The complete advert of this channel."""
        routes = tuple(each for each in self._told.values() if each.path)
        return Advert(self._version, True, routes)

    def set_wants(self, wants: Wants, rules: Rules = (), offers: Offers = ()) -> list[Route]:
        """Replace what this channel itself wants, the rules that it asks for, and its offers."""
        told = self._told.get(self._own)
        said = (wants, rules, offers)
        if told is not None and (told.wants, told.rules, told.offers) == said:
            return []
        return [self._tell(self._own, (self._own,), *said)]

    def are_apart(self) -> bool:
        """Whether every way from one neighbour to another leads through this channel."""
        for neighbour, links in self._links.items():
            for other in self._links.keys() - {neighbour}:
                route = self._learned[links[0]].get(other)
                if route is not None and route.path and self._own not in route.path:
                    return False
        return True

    def own_route_of(self, neighbour: str) -> Route | None:
        """What a neighbour has told of itself last, over whichever link."""
        routes = [self._learned[link].get(neighbour) for link in self.links_to(neighbour)]
        told = [each for each in routes if each is not None and each.path]
        return max(told, key=lambda each: each.version, default=None)

    def add_link(self, neighbour: str, link: LinkLike) -> None:
        """Add a link that is up. Adverts bring its routes.

        Of several links to a neighbour the oldest stays in use. So no event in transit is
        overtaken, and a second caller with that name cannot take over the traffic.
        """
        links = self._links.setdefault(neighbour, [])
        if link not in links:
            links.append(link)
            self._learned[link] = {}

    def remove_link(self, neighbour: str, link: LinkLike) -> list[Route]:
        """Remove a link that is down, with all routes that were learned over it."""
        links = self._links.get(neighbour, [])
        if link not in links:
            return []
        links.remove(link)
        if not links:
            del self._links[neighbour]
        learned = self._learned.pop(link)
        del self._learned_bytes[link]
        on_standby = self._learned[links[0]] if links else {}
        return self._choose({*learned, *on_standby})

    def learn(self, neighbour: str, link: LinkLike, advert: Advert) -> list[Route]:
        """Learn the routes of an advert. Raises `LinkFaultError` for impossible routes."""
        learned = self._learned.get(link)
        if learned is None:
            # The link was removed while the advert was in transit.
            return []
        for route in advert.routes:
            _check(route, neighbour)
        changed = set()
        if advert.is_complete:
            named = {route.channel for route in advert.routes}
            for channel, route in list(learned.items()):
                if channel not in named and route.version <= advert.version:
                    del learned[channel]
                    self._learned_bytes[link] -= _size(route)
                    changed.add(channel)
        for route in advert.routes:
            known = learned.get(route.channel)
            if known is None or known.version < route.version:
                # Moved to the end, so that the routes withdrawn longest ago are deleted first.
                learned.pop(route.channel, None)
                learned[route.channel] = route
                self._learned_bytes[link] += _size(route) - (_size(known) if known else 0)
                changed.add(route.channel)
        self._learned_bytes[link] -= sum(map(_size, _forget_withdrawn(learned)))
        if self._learned_bytes[link] > MOST_LEARNED_BYTES:
            raise LinkFaultError(LinkFault.BAD_ADVERT)
        if len(learned) > CHANNELS and sum(bool(each.path) for each in learned.values()) > CHANNELS:
            raise LinkFaultError(LinkFault.BAD_ADVERT)
        return self._choose(changed)

    def _choose(self, channels: Iterable[str]) -> list[Route]:
        """Recompute the best routes to some channels."""
        changed = []
        for channel in sorted(channels):
            if channel == self._own:
                continue
            best = self._best_of(channel)
            if best == self.best.get(channel):
                continue
            if best is None:
                changed.append(self._give_up(channel))
                continue
            if channel not in self.best and len(self.best) >= CHANNELS - 1:
                # All routes have to fit into one advert.
                given_up = self._make_room(best)
                if given_up is None:
                    continue
                changed.append(given_up)
            told = self._tell(channel, (self._own, *best.path), best.wants)
            self.best[channel] = best._replace(wants=told.wants)
            changed.append(told)
        for route in _forget_withdrawn(self._told):
            self._all_told_bytes -= self._told_bytes.pop(route.channel, 0)
        return changed

    def _make_room(self, wanted: Best) -> Route | None:
        """Give up a channel of the neighbour that advertises the most channels.

        None if no neighbour advertises more than the neighbour of the wanted route. A directly
        linked channel always gets room.
        """
        counts = Counter(each.neighbour for each in self.best.values())
        most = max(counts, key=lambda each: (counts[each], each))
        is_direct = len(wanted.path) == 1
        if counts[most] <= counts[wanted.neighbour] + 1 and not is_direct:
            return None
        of_most = [
            (len(each.path), channel)
            for channel, each in self.best.items()
            if each.neighbour == most and len(each.path) > 1
        ]
        return self._give_up(max(of_most)[1]) if of_most else None

    def _give_up(self, channel: str) -> Route:
        del self.best[channel]
        return self._tell(channel, (), ())

    def _best_of(self, channel: str) -> Best | None:
        found = []
        for neighbour, links in self._links.items():
            route = self._learned[links[0]].get(channel)
            if route is not None and route.path and self._own not in route.path:
                found.append(Best(neighbour, route.path, route.all_wants))
        usable = (each for each in found if len(each.path) < LONGEST_PATH)
        return min(usable, key=lambda each: (len(each.path), each.neighbour), default=None)

    def _tell(
        self,
        channel: str,
        path: tuple[str, ...],
        wants: Wants,
        rules: Rules = (),
        offers: Offers = (),
    ) -> Route:
        self._version += 1
        route = Route(channel, self._version, path, wants, rules, offers)
        size, others = _size(route), self._all_told_bytes - self._told_bytes[channel]
        if others + size > MOST_BYTES:
            most = EVERYTHING if path else ()
            route = Route(channel, self._version, path, most, rules, offers)
            size = _size(route)
        self._told.pop(channel, None)
        self._told[channel] = route
        self._told_bytes[channel], self._all_told_bytes = size, others + size
        return route


class PendingRoutes:
    """Routes that have not been advertised to a neighbour yet, each in its newest version."""

    def __init__(self) -> None:
        self._routes: dict[str, Route] = {}
        self._complete_version: int | None = None

    def __bool__(self) -> bool:
        return bool(self._routes) or self._complete_version is not None

    def add(self, advert: Advert) -> None:
        if advert.is_complete:
            self._complete_version = advert.version
        for route in advert.routes:
            known = self._routes.get(route.channel)
            if known is None or known.version < route.version:
                self._routes[route.channel] = route

    def take(self) -> list[Advert]:
        """The adverts to send now, each of a bounded size."""
        routes, self._routes = list(self._routes.values()), {}
        version, self._complete_version = self._complete_version, None
        if version is not None:
            # A complete advert withdraws every route that it does not contain.
            return [Advert(version, True, tuple(each for each in routes if each.path))]
        return [
            Advert(0, False, tuple(routes[start : start + CHANNELS]))
            for start in range(0, len(routes), CHANNELS)
        ]


def _check(route: Route, neighbour: str) -> None:
    path = route.path
    if path and (path[0] != neighbour or path[-1] != route.channel or len(set(path)) != len(path)):
        raise LinkFaultError(LinkFault.BAD_ADVERT)


def _size(route: Route) -> int:
    """An upper bound of the bytes of a route in an advert."""
    texts = [route.channel, *route.path]
    for each in route.wants:
        texts += (each.type or "", each.source or "", each.where or "")
    for rule in route.rules:
        texts += (*rule.at, rule.key, rule.library, rule.name or "")
        for each in rule.wants:
            texts += (each.type or "", each.source or "", each.where or "")
    texts += route.offers
    return 16 + sum(5 + (len(each) if each.isascii() else 4 * len(each)) for each in texts)


def _forget_withdrawn(routes: dict[str, Route]) -> list[Route]:
    """Delete the oldest withdrawn routes beyond the limit. Returns them."""
    if len(routes) <= WITHDRAWN_KEPT:
        return []
    withdrawn = [each.channel for each in routes.values() if not each.path]
    return [routes.pop(each) for each in withdrawn[: max(0, len(withdrawn) - WITHDRAWN_KEPT)]]

"""Which link leads to which channel: routes by path, each learned from a neighbour.

In come adverts of neighbours and changes of links; out come the routes that have changed, which
this channel tells its neighbours as its own. A route holds its whole path, so that one that leads
through this channel is recognised and no loop is ever chosen (a path-vector protocol, as RFC 4271
has it). A neighbour is believed only about ways through itself: a channel that is linked directly
is reached directly, whatever others say, and a lie affects only events sent to the liar.

Of several ways the shortest is taken and, among these, the one over the neighbour whose id sorts
first. All channels choose so; hence the ways from one channel to all others form a tree, and an
event crosses each link once at the most. Nothing here is locked, and nothing is sent.

What is known is bounded in number and in bytes, since neighbours can make channels up. Beyond the
bounds, the neighbour that has told of the most channels gives way to the others, and a channel
whose wants find no room is taken to want everything, and filters itself.
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
    RemoteWant,
    Route,
)

WITHDRAWN_KEPT = 1_024
"""How many withdrawn routes are remembered, so that an older advert cannot bring them back."""

MOST_BYTES = 4 * 1024 * 1024
"""What all routes may take that are told, so that one frame holds them all."""
MOST_LEARNED_BYTES = 2 * MOST_BYTES
"""What the routes may take that one neighbour tells; while they change, old and new ones add up."""

LinkLike = TypeVar("LinkLike")
Wants = tuple[RemoteWant, ...]
EVERYTHING: Wants = (RemoteWant(None, None, None),)


class Best(NamedTuple):
    """The chosen way to a channel: the neighbour to send to, the path from there, its wants."""

    neighbour: str
    path: tuple[str, ...]
    wants: Wants


class Routes(Generic[LinkLike]):
    """The routes of the channel `own`. Every method returns the routes that have changed."""

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
        """The links to a neighbour: the first is in use, the others stand by."""
        return tuple(self._links.get(neighbour, ()))

    def all_links(self) -> list[LinkLike]:
        return [link for links in self._links.values() for link in links]

    def link_towards(self, channel: str) -> LinkLike | None:
        """The link over which a channel is reached."""
        best = self.best.get(channel)
        return None if best is None else self._links[best.neighbour][0]

    def complete(self) -> Advert:
        """All that this channel tells of its routes."""
        routes = tuple(each for each in self._told.values() if each.path)
        return Advert(self._version, True, routes)

    def set_wants(self, wants: Wants) -> list[Route]:
        """Change what this channel itself wants."""
        told = self._told.get(self._own)
        if told is not None and told.wants == wants:
            return []
        return [self._tell(self._own, (self._own,), wants)]

    def add_link(self, neighbour: str, link: LinkLike) -> None:
        """A link is up. Its routes follow by adverts.

        Of several links to a neighbour the oldest stays in use: nothing on its way is overtaken,
        and a second caller of that name takes nothing over.
        """
        links = self._links.setdefault(neighbour, [])
        if link not in links:
            links.append(link)
            self._learned[link] = {}

    def remove_link(self, neighbour: str, link: LinkLike) -> list[Route]:
        """A link is down, and with it everything that was learned over it."""
        links = self._links.get(neighbour, [])
        if link not in links:
            return []
        links.remove(link)
        if not links:
            del self._links[neighbour]
        learned = self._learned.pop(link)
        del self._learned_bytes[link]
        standing_by = self._learned[links[0]] if links else {}
        return self._choose({*learned, *standing_by})

    def learn(self, neighbour: str, link: LinkLike, advert: Advert) -> list[Route]:
        """Take over what a neighbour says. Raises `LinkFaultError` for routes that cannot be."""
        learned = self._learned.get(link)
        if learned is None:
            # The link was taken away while the advert was on its way.
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
                # Put last, so that those withdrawn longest ago are forgotten first.
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
        """Choose the best route to some channels anew."""
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
                # So that all routes fit into one advert.
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
        """Give up a channel of the neighbour that tells of the most; None if none tells of more.

        A channel that is linked directly has room in any case.
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
                found.append(Best(neighbour, route.path, route.wants))
        usable = (each for each in found if len(each.path) < LONGEST_PATH)
        return min(usable, key=lambda each: (len(each.path), each.neighbour), default=None)

    def _tell(self, channel: str, path: tuple[str, ...], wants: Wants) -> Route:
        self._version += 1
        route = Route(channel, self._version, path, wants)
        size, others = _size(route), self._all_told_bytes - self._told_bytes[channel]
        if others + size > MOST_BYTES:
            route = Route(channel, self._version, path, EVERYTHING if path else ())
            size = _size(route)
        self._told.pop(channel, None)
        self._told[channel] = route
        self._told_bytes[channel], self._all_told_bytes = size, others + size
        return route


class PendingRoutes:
    """Routes that a neighbour has yet to be told, each in its newest version."""

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
            # What is withdrawn need not be said: it is not among all that there is.
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
    """The bytes of a route in an advert, at most."""
    texts = [route.channel, *route.path]
    for each in route.wants:
        texts += (each.type or "", each.source or "", each.where or "")
    return 16 + sum(5 + (len(each) if each.isascii() else 4 * len(each)) for each in texts)


def _forget_withdrawn(routes: dict[str, Route]) -> list[Route]:
    """Forget withdrawn routes beyond a number. Returns them."""
    if len(routes) <= WITHDRAWN_KEPT:
        return []
    withdrawn = [each.channel for each in routes.values() if not each.path]
    return [routes.pop(each) for each in withdrawn[: max(0, len(withdrawn) - WITHDRAWN_KEPT)]]

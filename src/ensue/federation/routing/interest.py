"""What is wanted where: requests at the services of a gateway, and what its neighbours have stated.

At a service there are two kinds of wishes. Requests are of the service's own clients: an event that
matches is published there for everybody. The interest of a neighbour is of services behind it: an
event that matches goes there in transit, for gateways alone. In come both; out goes an index from
events to services, and for every service what this gateway states there: the requests it knows of,
and the most general filters of everything that is wanted on its other active links (`Forwarding` of
the brokers). A filter that asks a history is told on as the single events that it needs. One that
asks an ontology is told on whole, and applied whole at the service that asked: on the way there
only what it asks besides decides, since another gateway may know other concepts, or none.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from ensue.brokers.covering import Covering
from ensue.brokers.forwarding import Forwarding
from ensue.brokers.weakening import MOST_ANSWERS, asks_concepts, needs_of, without_concepts
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.federation.limits import limits
from ensue.federation.routing.control import Stated, filter_of
from ensue.federation.routing.distribution import events_of
from ensue.history import History
from ensue.subscriptions import Filter, Index, Ontology

FEWEST_FOR_COLUMNS = 24
"""From so many events on, to look them up in columns takes less than one by one."""


class InterestEntry(NamedTuple):
    """A filter in the index: what matches goes to the service, to clients or in transit."""

    service: str
    in_transit: bool
    filter: Filter


@dataclass
class NeighbourInterest:
    """What a neighbour wants at a service."""

    wants: tuple[Filter, ...]
    interest: tuple[Filter, ...]
    digest: str
    heard: float
    texts: Stated

    @property
    def size(self) -> int:
        return _size(self.texts)


@dataclass
class ServiceInterest:
    """The wishes at one service."""

    requests: dict[Filter, int] = field(default_factory=dict)
    stated: dict[str, NeighbourInterest] = field(default_factory=dict)

    def make_room(self, service: str, stated: Stated) -> None:
        """Raises `UsageError` if neighbours have said as much as is kept."""
        others = [each for name, each in self.stated.items() if name != stated.gateway]
        size = sum(each.size for each in others) + _size(stated)
        if len(others) >= limits().stating or size > limits().stated:
            raise UsageError(
                f"service `{service}`: what gateway `{stated.gateway}` wants finds no room: at most"
                f" {limits().stating:,} neighbours and {limits().stated:,} characters are kept"
            )


class Interest:
    def __init__(
        self,
        services: Iterable[str],
        history: History | None = None,
        ontology: Ontology | None = None,
    ) -> None:
        self._places = {each: ServiceInterest() for each in services}
        self._index = Index(history=history, ontology=ontology)
        self._has_ontology = ontology is not None
        self._entries: set[InterestEntry] = set()
        self._active: frozenset[str] = frozenset(self._places)
        self._is_changing = False
        self._covering = Covering(None)
        self._told = {each: Forwarding(self._covering) for each in self._places}
        self._apart: dict[tuple[str, Filter], bool] = {}
        self._told_active = self._active
        self._needs: dict[str, Counter[Filter]] = {each: Counter() for each in self._places}
        """How many entries elsewhere need each filter that is told at a service, or covered."""

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Several changes at once: what follows from them is found at the end."""
        self._is_changing = True
        try:
            yield
        finally:
            self._is_changing = False
            self._refresh()

    # --- what comes in ------------------------------------------------------------------------

    def request(self, service: str, wanted: Filter) -> bool:
        """Add a request at a service; tell whether it is new. Raises `UsageError`."""
        requests = self._places[service].requests
        if wanted in requests:
            return False
        if len(requests) >= limits().requests:
            raise UsageError(
                f"service `{service}` has {limits().requests:,} requests, the most that a gateway"
                " keeps: take some back"
            )
        if asks_concepts(wanted) and not self._has_ontology:
            raise UsageError(
                f"`{wanted}` asks an ontology, and the gateway has none: give it one with"
                " `[gateway] ontology`"
            )
        # An index refuses unknown concepts and, without a history, temporal terms.
        self._index.add(("trial", service), wanted)
        self._index.remove(("trial", service))
        requests[wanted] = 1
        self._refresh()
        return True

    def withdraw(self, service: str, wanted: Filter) -> bool:
        """Take a request back; tell whether there was one."""
        if self._places[service].requests.pop(wanted, None) is None:
            return False
        self._refresh()
        return True

    def state(self, service: str, stated: Stated, now: float) -> bool:
        """What a neighbour wants at a service, in place of what it wanted before.

        Raises `UsageError` where there is no room for it.
        """
        known = self._places[service].stated.get(stated.gateway)
        if known is not None and known.digest == stated.digest:
            known.heard = now
            return False
        self._places[service].make_room(service, stated)
        self._places[service].stated[stated.gateway] = NeighbourInterest(
            _filters(stated.wants), _filters(stated.interest), stated.digest, now, stated
        )
        self._refresh()
        return True

    def hear(self, service: str, gateway: str, digest: str, now: float) -> bool:
        """A neighbour lives; tell whether the statement that holds for it is known."""
        known = self._places[service].stated.get(gateway)
        if known is None:
            return not digest
        known.heard = now
        return known.digest == digest

    def forget(self, before: float) -> bool:
        """Forget neighbours that were last heard before a moment."""
        gone = [
            (place, gateway)
            for place in self._places.values()
            for gateway, each in place.stated.items()
            if each.heard < before
        ]
        for place, gateway in gone:
            del place.stated[gateway]
        if gone:
            self._refresh()
        return bool(gone)

    def activate(self, active: Collection[str]) -> bool:
        """The links that carry events have changed."""
        if self._active == frozenset(active):
            return False
        self._active = frozenset(active)
        self._refresh()
        return True

    # --- what goes out ------------------------------------------------------------------------

    def destinations(self, event: Event) -> dict[str, bool]:
        """The services that want an event; true where it goes in transit only."""
        return _services(self._index.match(event))

    def destinations_of_all(self, events: Sequence[Event]) -> list[dict[str, bool]]:
        """The services that want each of some events, none of which counts as past for another."""
        if len(events) < FEWEST_FOR_COLUMNS:
            return [self.destinations(each) for each in events]
        return [_services(found) for found in self._index.match_columns(events)]

    def wanted_from(self, service: str, kind: str) -> list[Filter]:
        """The most general filters of what is wanted elsewhere from a service.

        Where no other gateway is, only the service's own events can come from there, and what is
        asked of others need not be asked of it. Where there are others, this gateway may have to
        take the place of one, and must know by then what they have brought.
        """
        said = self._told[service].said
        resting = self._places.keys() - self._active
        if resting:
            places = sorted({*resting, service})
            spare = (each for name in places for _, each in self._wishes(self._places[name]))
            said = list(dict.fromkeys((*said, *spare)))
        if self._places[service].stated:
            # What others bring to the service itself, which this gateway may be about to bring.
            brought = (each for _, each in self._wishes(self._places[service]))
            return list(dict.fromkeys((*said, *brought)))
        return [each for each in said if not self._are_apart(each, service, kind)]

    def _are_apart(self, wanted: Filter, service: str, kind: str) -> bool:
        """Whether surely no event of a service itself is wanted; asked of each filter once."""
        known = self._apart.get((service, wanted))
        if known is None:
            if len(self._apart) >= MOST_ANSWERS:
                self._apart.clear()
            known = self._covering.are_apart(wanted, events_of(service, kind))
            self._apart[service, wanted] = known
        return known

    def requests(self, service: str) -> list[Filter]:
        return list(self._places[service].requests)

    def statement(self, service: str, gateway: str, instance: str) -> Stated:
        """What this gateway states at a service."""
        wants = tuple(sorted(map(str, self._places[service].requests)))
        said = self._told[service].said if service in self._active else ()
        interest = tuple(sorted(map(str, said)))
        digest = hashlib.blake2b(repr((wants, interest)).encode(), digest_size=8).hexdigest()
        return Stated(gateway, instance, digest, wants, interest)

    def statements(self, service: str) -> list[Stated]:
        """What the neighbours at a service have stated."""
        return [each.texts for each in self._places[service].stated.values()]

    def _refresh(self) -> None:
        """Bring the index, and what is told over each link, up to the wishes."""
        if self._is_changing:
            return
        wanted = {
            InterestEntry(service, in_transit, each)
            for service in self._places
            for in_transit, each in self._wishes(self._places[service])
        }
        removed = sorted(self._entries - wanted, key=str)
        added = sorted(wanted - self._entries, key=str)
        for entry in removed:
            self._index.remove(entry)
        for entry in added:
            self._add(entry)
        self._entries = wanted
        if self._told_active != self._active:
            self._told_active = self._active
            for service in self._told:
                self._tell_anew(service)
        else:
            for service in self._told:
                self._tell(service, added, removed)

    def _tell(
        self, service: str, added: Iterable[InterestEntry], removed: Iterable[InterestEntry]
    ) -> None:
        """Tell at a service what is wanted elsewhere since a change, and no longer: the new first,
        so that at no moment something that stays wanted is not told."""
        needs, forwarding = self._needs[service], self._told[service]
        for need in self._needs_elsewhere(service, added):
            needs[need] += 1
            if needs[need] == 1:
                forwarding.want(need)
        for need in self._needs_elsewhere(service, removed):
            needs[need] -= 1
            if not needs[need]:
                del needs[need]
                forwarding.drop(need)

    def _tell_anew(self, service: str) -> None:
        """Tell at a service what is wanted elsewhere, now that other links carry events."""
        needs = self._needs[service] = Counter(self._needs_elsewhere(service, self._entries))
        forwarding = self._told[service]
        for each in sorted(needs.keys() - set(forwarding), key=str):
            forwarding.want(each)
        for each in sorted(set(forwarding) - needs.keys(), key=str):
            forwarding.drop(each)

    def _needs_elsewhere(self, service: str, entries: Iterable[InterestEntry]) -> Iterator[Filter]:
        for entry in entries:
            if entry.service != service and entry.service in self._active:
                yield from needs_of(entry.filter)

    def _add(self, entry: InterestEntry) -> None:
        wanted = without_concepts(entry.filter) if entry.in_transit else entry.filter
        try:
            self._index.add(entry, wanted)
        except UsageError:
            # A neighbour has a history, or concepts, and this gateway has not: what single events
            # can tell without them.
            self._index.add(entry, without_concepts(needs_of(wanted)[0]))

    @staticmethod
    def _wishes(place: ServiceInterest) -> Iterable[tuple[bool, Filter]]:
        for each in place.requests:
            yield False, each
        for stated in place.stated.values():
            for each in stated.wants:
                yield False, each
            for each in stated.interest:
                yield True, each


def _services(found: Iterable[InterestEntry]) -> dict[str, bool]:
    services: dict[str, bool] = {}
    for service, in_transit, _ in found:
        services[service] = services.get(service, True) and in_transit
    # An index has no order, and what a gateway does is to be the same each time.
    return dict(sorted(services.items())) if len(services) > 1 else services


def _size(stated: Stated) -> int:
    return sum(map(len, stated.wants)) + sum(map(len, stated.interest)) + len(stated.gateway)


def _filters(texts: Iterable[str]) -> tuple[Filter, ...]:
    read = (filter_of(text) for text in texts)
    return tuple(dict.fromkeys(each for each in read if each is not None))

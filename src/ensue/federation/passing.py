"""The way of an event through a gateway: from the link that received it to its destinations.

An event that comes from a service is put into the common words by the mappings of that service,
looked up in the index of what is wanted, put into the words of each destination, and queued there.
It never goes back to a service where it has been. What was received over a link that carries no
events rests at that link; what goes to such a link is held there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ensue.events.event import Event
from ensue.events.expiry import has_expired
from ensue.federation.adapters.base import Incoming
from ensue.federation.links.link import Received, ServiceLink
from ensue.federation.links.outbox import WantedEvent
from ensue.federation.links.receipts import Ticket
from ensue.federation.mapping.compiled import compiled
from ensue.federation.mapping.rules import Mapped, MappingRule
from ensue.federation.messages.attributes import (
    at_service,
    for_sending,
    identity_of,
    path_of,
)
from ensue.federation.placement.attaching import SITE
from ensue.federation.placement.parcels import PARCEL
from ensue.federation.routing.interest import Interest
from ensue.federation.routing.tree import Tree
from ensue.history import History

NOWHERE = ""
"""The link of events that came over none."""


class Passage(NamedTuple):
    """A message on its way through. `is_old`: others may have brought its event on before."""

    incoming: Incoming
    ticket: Ticket
    is_old: bool


class Passing:
    def __init__(
        self,
        links: Mapping[str, ServiceLink],
        tree: Tree,
        interest: Interest,
        mappings: Iterable[MappingRule],
        history: History | None,
    ) -> None:
        self._links = links
        self._tree = tree
        self._interest = interest
        self._history = history
        self.has_held: Callable[[], None] = lambda: None
        """Called when an event was held that is to be brought to a service."""
        self._mappings: dict[tuple[str, str], list[Mapped]] = {}
        for each in mappings:
            self._mappings.setdefault((each.at, each.direction), []).append(compiled(each))

    def maps_from(self, link: ServiceLink) -> bool:
        """Whether events of a service are put into other words as they come."""
        return (link.name, "in") in self._mappings

    def route(self, link: ServiceLink, received: Sequence[Received]) -> None:
        """Queue events at their destinations."""
        if link.name not in self._tree.open:
            for incoming, identity, is_old in received:
                link.receipts.rest(incoming, identity, is_old)
            return
        self._pass_on(
            link,
            [
                Passage(
                    each.incoming, link.receipts.ticket(each.incoming, each.identity), each.is_old
                )
                for each in received
            ],
        )

    def wake(self) -> None:
        """What links have received that carry events by now is kept where it is wanted."""
        for link in self._links.values():
            if link.name in self._tree.open and (kept := link.receipts.wake()):
                # The events are old: others may have brought them where they go.
                self._pass_on(link, [Passage(each.incoming, each.ticket, True) for each in kept])

    def has_old(self, link: ServiceLink) -> bool:
        """Whether old events wait for a service that this gateway has to bring there."""
        return link.name in self._tree.open and link.outbox.has_old(self._sources)

    def has_kept(self, link: ServiceLink) -> bool:
        """Whether events wait for a service that this gateway has to bring there."""
        return link.name in self._tree.open and link.outbox.has_held(self._sources)

    def send_kept(self, link: ServiceLink) -> None:
        if link.name in self._tree.open:
            link.outbox.send_held(self._sources)

    @property
    def _sources(self) -> tuple[str, ...]:
        return (*self._tree.open, NOWHERE)

    def _pass_on(self, link: ServiceLink, received: Sequence[Passage]) -> None:
        """Queue events at their destinations, all of which are looked up at once."""
        if self._history is not None:
            # Each is past for the next one.
            for each in received:
                self._pass_on_batch(link, [each])
        else:
            self._pass_on_batch(link, received)
        for each in received:
            each.ticket.confirm()

    def _pass_on_batch(self, link: ServiceLink, received: Sequence[Passage]) -> None:
        events: list[Event] = []
        known: list[tuple[int, Passage]] = []
        for each in received:
            taken = self._taken(link, each.incoming)
            if taken is not None:
                events.append(taken[0])
                known.append((taken[1], each))
        wanted = self._interest.destinations_of_all(events)
        for event, (identity, passage), found in zip(events, known, wanted, strict=True):
            if self._history is not None:
                self._history.add(event)
            if not found or not self._queue(link, event, found, (identity, passage)):
                link.counts.filtered += 1

    def _taken(self, link: ServiceLink, incoming: Incoming) -> tuple[Event, int] | None:
        """An event in the common words, as it stands at a service, and its identity."""
        given = incoming.event
        if given is None:
            link.counts.dropped[incoming.reason] += 1
            if incoming.problems:
                link.counts.last_error = f"service `{link.name}`: {'; '.join(incoming.problems)}"
            return None
        identity = identity_of(given)
        # What is in transit is not in the words of the service that it crosses.
        mapped = given if incoming.in_transit else self._mapped(link, "in", given)
        if mapped is None:
            return None
        if mapped is not given:
            given, identity = mapped, identity_of(mapped)
        if has_expired(given, time.time_ns() // 1000):
            link.counts.dropped["expired"] += 1
            return None
        return at_service(given, link.name, link.service.kind), identity

    def _queue(
        self,
        source: ServiceLink,
        event: Event,
        found: Mapping[str, bool],
        known: tuple[int, Passage],
    ) -> bool:
        """Queue an event at those of its destinations where it has not been; tell if there are."""
        been = path_of(event)
        outgoing = for_sending(event)
        is_parcel = event.type == PARCEL
        is_wanted = False
        for name, in_transit in found.items():
            link = self._links[name]
            # What sites tell each other is for no client of a service.
            is_for_clients = not in_transit and link.service.kind != SITE
            if name in been or (is_parcel and is_for_clients) or not link.was_connected:
                continue
            is_wanted = True
            self._send(link, WantedEvent(outgoing, in_transit, known[0], source.name), known[1])
        return is_wanted

    def _send(self, link: ServiceLink, wanted: WantedEvent, passage: Passage) -> None:
        """Queue an event at a link, in the words of its service if it is for its clients."""
        if not wanted.in_transit:
            mapped = self._mapped(link, "out", wanted.event)
            if mapped is None:
                return
            if mapped is not wanted.event:
                wanted = wanted._replace(event=mapped, identity=identity_of(mapped))
        outbox = link.outbox
        if link.name not in self._tree.active:
            outbox.hold(wanted, (), True)
            return
        passage.ticket.waiting += 1
        is_closed = link.name not in self._tree.open
        is_old = is_closed or (passage.is_old and self._tree.has_company(link.name))
        if is_old or outbox.must_wait(self._sources):
            outbox.hold(wanted, (passage.ticket,), is_old)
            self.has_held()
        else:
            outbox.send(wanted, (passage.ticket,))

    def _mapped(self, link: ServiceLink, direction: str, event: Event) -> Event | None:
        """An event as the mappings of a service make it; None if it cannot be, or is not to be."""
        if not self._mappings:
            return event
        found: Event | None = event
        for mapped in self._mappings.get((link.name, direction), ()):
            try:
                found = mapped(found) if found is not None else None
            # It may be code of the user.
            except Exception as error:
                link.counts.dropped["unmappable"] += 1
                link.counts.last_error = f"service `{link.name}`: event `{event.id}`: {error}"
                return None
            if found is None:
                link.counts.dropped["mapped away"] += 1
        return found

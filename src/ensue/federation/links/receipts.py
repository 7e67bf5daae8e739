"""Events that came from a service, until it is told that it may forget them.

Each has a ticket, which counts the destinations that do not have the event yet. Tickets are
completed in any order and acknowledged in the order in which the events came, since services that
keep a position know no other. A link that carries no events keeps them here (`rest`) until every
gateway that does has told that it is done with them: if one of those fails, they are still at hand.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.federation.adapters.base import Incoming
from ensue.federation.links.bounds import USUAL, Bounds
from ensue.federation.links.seen import Seen


@dataclass(eq=False, slots=True)
class Ticket:
    """A received event until all its destinations have it; then `token` is acknowledged."""

    receipts: Receipts
    session: int
    token: Any
    identity: int | None = None
    waiting: int = 0
    size: int = 0

    def confirm(self) -> None:
        self.waiting -= 1
        if self.waiting <= 0:
            self.receipts.complete(self)


@dataclass(frozen=True, slots=True)
class RestingEvent:
    """`is_old`: others may have brought it on before. `number` counts what has come to rest."""

    since: float
    number: int
    incoming: Incoming
    ticket: Ticket
    is_old: bool


class Receipts:
    def __init__(self, bounds: Bounds = USUAL) -> None:
        self._bounds = bounds
        self.has_room = asyncio.Event()
        self.has_room.set()
        self.to_acknowledge = asyncio.Event()
        self._session = 0
        self._tickets: deque[Ticket] = deque()
        self._bytes = 0
        self._resting: dict[int, RestingEvent] = {}
        self._done: list[Ticket] = []
        self._acknowledging: list[Ticket] = []
        self._carried: dict[str, Seen] = {}
        """What each neighbour has told that it is done with."""
        self._carriers: frozenset[str] = frozenset()
        self._rested = self._carried_up_to = 0
        """The numbers of the last event that has come to rest, and of the last that was carried."""

    def __len__(self) -> int:
        """Events that are not acknowledged yet."""
        return len(self._tickets)

    @property
    def is_busy(self) -> bool:
        """Whether events are on their way to their destinations, or to be acknowledged."""
        on_its_way = len(self._tickets) - len(self._resting)
        return bool(on_its_way > 0 or self._done or self._acknowledging)

    def begin_session(self) -> None:
        """A connection is new: what was on its way from the service comes again."""
        self._session += 1
        self._tickets.clear()
        self._bytes = 0
        self._resting.clear()
        self._done.clear()
        self._acknowledging.clear()
        self.has_room.set()

    def ticket(self, incoming: Incoming, identity: int | None) -> Ticket:
        """A ticket that waits for one confirmation more than the event has destinations."""
        ticket = Ticket(self, self._session, incoming.token, identity, 1, incoming.size)
        self._tickets.append(ticket)
        self._bytes += incoming.size
        if self._is_full:
            self.has_room.clear()
        return ticket

    @property
    def _is_full(self) -> bool:
        bounds = self._bounds
        return len(self._tickets) >= bounds.in_flight or self._bytes >= bounds.in_flight_bytes

    def complete(self, ticket: Ticket) -> None:
        tickets = self._tickets
        if ticket.session != self._session or not tickets or tickets[0].waiting > 0:
            return
        while tickets and tickets[0].waiting <= 0:
            done = tickets.popleft()
            self._bytes -= done.size
            self._done.append(done)
        self.to_acknowledge.set()
        if not self._is_full:
            self.has_room.set()

    # --- links that carry no events -----------------------------------------------------------

    def rest(self, incoming: Incoming, identity: int | None, is_old: bool) -> None:
        """Keep an event of a link that carries none, for when it does."""
        ticket = self.ticket(incoming, identity)
        if identity is None or identity in self._resting:
            # It has come twice, and one of the two is enough.
            ticket.confirm()
            return
        now = asyncio.get_running_loop().time()
        self._rested += 1
        self._resting[identity] = RestingEvent(now, self._rested, incoming, ticket, is_old)
        self._let_go([identity])

    def carried(self, gateway: str, identities: Sequence[int]) -> None:
        """A neighbour is done with events, or will not have to bring them on."""
        self._carried.setdefault(gateway, Seen(self._bounds.seen)).update(identities)
        self._carried[gateway].forget(True)
        self._let_go(identities)

    def carry(self, carriers: Collection[str]) -> None:
        """The neighbours that are to bring events of the service on have changed; there are none
        where the link itself is to."""
        if self._carriers != frozenset(carriers):
            self._carriers = frozenset(carriers)
            self._let_go(list(self._resting))

    def _let_go(self, identities: Iterable[int]) -> None:
        told = [self._carried.get(each) for each in self._carriers]
        if not told or not self._resting:
            return
        for identity in identities:
            if identity in self._resting and all(
                each is not None and identity in each for each in told
            ):
                carried = self._resting.pop(identity)
                self._carried_up_to = max(self._carried_up_to, carried.number)
                carried.ticket.confirm()

    def release(self, before: float) -> None:
        """Let go of events that others brought on long ago, and did not come to tell: they are done
        with a later one. However late a neighbour is, what it has before it is kept."""
        for identity, each in list(self._resting.items()):
            if each.since >= before or each.number > self._carried_up_to:
                return
            self._resting.pop(identity).ticket.confirm()

    def wake(self) -> list[RestingEvent]:
        """The events that were kept, for a link that carries events from now on."""
        kept = list(self._resting.values())
        self._resting.clear()
        return kept

    # --- what the service is told -------------------------------------------------------------

    def acknowledging(self) -> list[Any]:
        """The tokens to acknowledge now; `acknowledged` tells that the service knows."""
        self.to_acknowledge.clear()
        self._acknowledging, self._done = self._done, []
        return [each.token for each in self._acknowledging]

    def acknowledged(self) -> list[int]:
        """The service knows; out go the identities of the events."""
        done, self._acknowledging = self._acknowledging, []
        return [each.identity for each in done if each.identity is not None]

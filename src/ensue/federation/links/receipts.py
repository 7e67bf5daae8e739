"""Events that came from a service, until it is told that it may forget them.

Each has a ticket, which counts the destinations that do not have the event yet. Tickets are
completed in any order and acknowledged in the order in which the events came, since services that
keep a position know no other. A link that carries no events keeps the latest ones here (`rest`):
if the gateway that carries them fails, they are still at hand. One that will carry them as soon as
the gateways agree keeps them all.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from ensue.federation.adapters.base import Incoming

MOST_IN_FLIGHT = 4000
"""Events of one service that wait for their destinations; then no more are received."""
MOST_IN_FLIGHT_BYTES = 256 * 1024 * 1024
"""Their bytes, likewise."""
MOST_RESTING = 3000
"""Events that a link keeps which carries none."""


@dataclass(eq=False, slots=True)
class Ticket:
    """A received event until all its destinations have it; then `token` is acknowledged."""

    receipts: Receipts
    session: int
    token: Any
    waiting: int = 0
    size: int = 0

    def confirm(self) -> None:
        self.waiting -= 1
        if self.waiting <= 0:
            self.receipts.complete(self)


class Receipts:
    def __init__(self) -> None:
        self.has_room = asyncio.Event()
        self.has_room.set()
        self.to_acknowledge = asyncio.Event()
        self._session = 0
        self._tickets: deque[Ticket] = deque()
        self._bytes = 0
        self._resting: deque[tuple[float, Incoming, Ticket]] = deque()
        self._done: list[Any] = []
        self._acknowledging: list[Any] = []

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

    def ticket(self, incoming: Incoming) -> Ticket:
        """A ticket that waits for one confirmation more than the event has destinations."""
        ticket = Ticket(self, self._session, incoming.token, 1, incoming.size)
        self._tickets.append(ticket)
        self._bytes += incoming.size
        if self._is_full:
            self.has_room.clear()
        return ticket

    @property
    def _is_full(self) -> bool:
        return len(self._tickets) >= MOST_IN_FLIGHT or self._bytes >= MOST_IN_FLIGHT_BYTES

    def complete(self, ticket: Ticket) -> None:
        tickets = self._tickets
        if ticket.session != self._session or not tickets or tickets[0].waiting > 0:
            return
        while tickets and tickets[0].waiting <= 0:
            done = tickets.popleft()
            self._bytes -= done.size
            self._done.append(done.token)
        self.to_acknowledge.set()
        if not self._is_full:
            self.has_room.set()

    def rest(self, incoming: Incoming, is_carried_elsewhere: bool) -> None:
        """Keep an event of a link that carries none, for when it does.

        Where another gateway brings events on, the latest are enough to go on if that one fails.
        """
        self._resting.append((time.monotonic(), incoming, self.ticket(incoming)))
        while is_carried_elsewhere and (
            len(self._resting) > MOST_RESTING or (self._is_full and self._resting)
        ):
            self._resting.popleft()[2].confirm()

    def release(self, before: float) -> None:
        """Let go of events that others must have brought on by now."""
        while self._resting and self._resting[0][0] < before:
            self._resting.popleft()[2].confirm()

    def wake(self) -> list[tuple[Incoming, Ticket]]:
        """The events that were kept, for a link that carries events from now on."""
        kept = [(incoming, ticket) for _, incoming, ticket in self._resting]
        self._resting.clear()
        return kept

    def acknowledging(self) -> list[Any]:
        """The tokens to acknowledge now; `acknowledged` tells that the service knows."""
        self.to_acknowledge.clear()
        self._acknowledging, self._done = self._done, []
        return self._acknowledging

    def acknowledged(self) -> None:
        self._acknowledging = []

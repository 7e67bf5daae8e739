"""A TCP link's memory, which outlives its connections: what was sent, and what was received.

A reliable session numbers its events and keeps them until the other side has acknowledged them, up
to a bound; after a new connection it sends again what was not, and the other side passes over
numbers that it had. Through a short disconnection it stays in the federation's graph; after its
patience is over, or at once if it is not reliable, it leaves the graph, and what it still keeps is
sent another way if there is one. Connections are made in `tcp`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import msgspec

from ensue.channel.delivery.receiver import Receiver
from ensue.channel.links.link import Router
from ensue.channel.links.messages import Advert, Carried
from ensue.channel.links.wire import (
    LINKS,
    PROTOCOL,
    Acknowledge,
    Hello,
    Numbered,
    decode_carried,
    encode,
    framed,
)
from ensue.events.event import Event


class Connection(Protocol):
    """What a session needs of the connection it has at the moment."""

    @property
    def is_choked(self) -> bool:
        """Whether too much waits to be sent already."""

    def write(self, data: bytes) -> bool:
        """Whether the system took it; a connection that is closing takes nothing."""

    def leave(self) -> None:
        """Say goodbye and close."""

    def retire(self) -> None:
        """Bring nothing more: another connection has taken its place."""


class Place(msgspec.Struct):
    """A message's place on a link: its number there, and what is sent of it once it is encoded."""

    number: int
    message: Carried | Advert
    frame: bytes | None = None


class Session:
    """`link` names it on both sides; `neighbour` is the id of the channel at the other end.

    `waiting` is what waits for room for an event that arrived; nothing overtakes it.
    """

    def __init__(
        self, federation: Router, link: str, reliable: bool, buffer: int, patience: float
    ) -> None:
        self.link = link
        self.reliable = reliable
        self.neighbour: str | None = None
        self.unsent = 0
        self.connections = 0
        self.received = 0
        self.is_over = False
        self.waiting: asyncio.Task[None] | None = None
        self._federation = federation
        self._buffer = buffer
        self._patience = patience
        self._lock = threading.Lock()
        self._kept: deque[Place] = deque()
        self._unframed: list[Place] = []
        self._sent = 0
        self._acknowledged = 0
        self._outgoing: list[bytes] = []
        self._outgoing_events = 0
        self._will_flush = False
        self._is_down = False
        self._connection: Connection | None = None
        self._leaving: asyncio.TimerHandle | None = None

    def send(self, message: Carried | Advert) -> None:
        """Give a message its place on the link. It is encoded and carried from `set_off` on."""
        with self._lock:
            if isinstance(message, Advert):
                self._unframed.append(Place(0, message))
                return
            if not self._is_down:
                if self.is_over or not (self.reliable or self._is_open):
                    self._lose(1)
                    return
                self._sent += self.reliable
                place = Place(self._sent, message)
                if self.reliable:
                    self._keep(place)
                self._unframed.append(place)
                return
        # Whoever sends has found this link in the moment before it left the graph.
        self._federation.forward(message)

    def set_off(self) -> None:
        """Encode what has its place, here and now: who published it may change its data later."""
        with self._lock:
            # With the lock in hand, so that nobody's later message goes before an earlier one.
            for place in self._unframed:
                self._frame(place)
            self._unframed.clear()
            must_wake = bool(self._outgoing) and not self._will_flush
            self._will_flush = self._will_flush or must_wake
        if must_wake:
            LINKS.loop.call_soon_threadsafe(self.flush)

    @property
    def _is_open(self) -> bool:
        return self._connection is not None and not self._connection.is_choked

    def _keep(self, place: Place) -> None:
        self._kept.append(place)
        if len(self._kept) > self._buffer:
            self._kept.popleft()
            self._lose(1)

    def _lose(self, events: int) -> None:
        self.unsent += events
        self._federation.note_unsent(events)

    def _frame(self, place: Place) -> None:
        message = place.message
        if isinstance(message, Advert):
            self._outgoing.append(framed(message))
            return
        try:
            place.frame = framed(Numbered(place.number, msgspec.Raw(encode(message))))
        except (TypeError, OverflowError, ValueError):
            # Data that is no data: it can be published in a process, but not leave it.
            self._lose(1)
            self._kept = deque(each for each in self._kept if each is not place)
            return
        if self._connection is not None:
            self._outgoing.append(place.frame)
            self._outgoing_events += not self.reliable
        elif not self.reliable:
            self._lose(1)

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def is_clear(self) -> bool:
        """Whether everything has been sent and, if the link is reliable, acknowledged."""
        with self._lock:
            return not (self._outgoing or self._kept or self._unframed)

    def close(self, seconds: float) -> bool:
        """Wait until all is sent, up to a time, then leave for good. Whether all was sent."""
        return self.is_over or bool(LINKS.run(self._end(seconds), seconds + 10))

    def hello(self) -> bytes:
        received = self.received
        return framed(Hello(PROTOCOL, self._federation.id, self.link, self.reliable, received))

    def attach(self, connection: Connection, hello: Hello) -> None:
        """A connection stands: send again what the other side has not had."""
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if self.neighbour not in (None, hello.channel):
            # Another channel answers at this address now: it knows nothing of this session.
            self._take_down()
            self.received = self._acknowledged = 0
        self.neighbour = hello.channel
        self.connections += 1
        before = self._connection
        if before is not None and self.reliable:
            # The other side has given it up already, which a connection that waits does not notice.
            before.retire()
        with self._lock:
            # The federation tells a new link all it knows, and what is kept is sent again.
            self._outgoing = []
            self._lose(self._outgoing_events)
            self._outgoing_events = 0
            self._is_down = False
            self._trim(hello.received)
            # What is not encoded yet is the last of all, and follows when it is.
            again = b"".join(place.frame for place in self._kept if place.frame is not None)
            self._connection = connection
        if again:
            connection.write(again)
        self._federation.add_link(hello.channel, self)

    def detach(self, connection: Connection) -> None:
        """A connection is lost. A reliable link waits for the next one; another is taken down."""
        if self._connection is not connection:
            return
        with self._lock:
            self._connection = None
        if self.is_over or not self.reliable:
            self._take_down()
        else:
            self._leaving = LINKS.loop.call_later(self._patience, self._take_down)

    def flush(self) -> None:
        with self._lock:
            self._will_flush = False
            frames, self._outgoing = self._outgoing, []
            events, self._outgoing_events = self._outgoing_events, 0
        connection = self._connection
        if connection is None or not connection.write(b"".join(frames)):
            with self._lock:
                self._lose(events)

    def receive(self, frame: Numbered) -> tuple[Event, Sequence[Receiver]] | None:
        """An event and who of its receivers is full; None if this link has brought it before."""
        if self.reliable:
            if frame.number <= self.received:
                return None
            self.received = frame.number
        carried = decode_carried(frame.carried)
        return carried.event, self._federation.receive(carried)

    def receive_advert(self, advert: Advert) -> None:
        if self.neighbour is not None:
            self._federation.receive_advert(advert, self.neighbour)

    def acknowledged(self, up_to: int) -> None:
        with self._lock:
            self._trim(up_to)

    def _trim(self, up_to: int) -> None:
        while self._kept and self._kept[0].number <= up_to:
            self._kept.popleft()

    @property
    def unacknowledged(self) -> int:
        """How many numbers the other side has not been told of."""
        return self.received - self._acknowledged if self.reliable else 0

    def acknowledgement(self) -> bytes:
        self._acknowledged = self.received
        return framed(Acknowledge(self.received))

    def _take_down(self) -> None:
        if self.neighbour is None:
            return
        self._federation.remove_link(self.neighbour, self)
        with self._lock:
            self._is_down = True
            stranded, self._kept = [place.message for place in self._kept], deque()
            if self.reliable:
                # All of them are among those kept.
                self._unframed = []
        # Another way may be left; whoever had the event already knows its number.
        for carried in stranded:
            if isinstance(carried, Carried):
                self._federation.forward(carried)

    async def _end(self, seconds: float) -> bool:
        deadline = LINKS.loop.time() + seconds
        while self._connection is not None and not self.is_clear:
            if LINKS.loop.time() >= deadline:
                break
            await asyncio.sleep(0.002)
        was_sent = self.is_clear
        self.over()
        return was_sent

    def over(self) -> None:
        """Leave the graph for good."""
        self.is_over = True
        connection = self._connection
        if connection is None:
            self._take_down()
        else:
            connection.leave()
            self.detach(connection)

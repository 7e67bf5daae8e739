"""The state of one end of a TCP link, which outlives its connections: events sent and received.

A session numbers its events and keeps them until the other side has acknowledged them (`outbox`).
After a reconnection a reliable session sends the unacknowledged events again, and the other side
skips numbers that it has received before. A reliable session stays in the graph of links during a
short disconnection. After its `patience`, or at once if it is not reliable, it leaves the graph,
and the events that it still keeps are sent over other links or counted as lost. `links` makes the
connections.

The module is long because sending, receiving and resuming share the numbers of a session.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ensue.channel.delivery.blocked import Blocked
from ensue.channel.delivery.waiters import Wake
from ensue.channel.links.faults import LinkFault, LinkFaultError
from ensue.channel.links.link import Router
from ensue.channel.links.messages import Carried, News
from ensue.channel.links.tcp.loop import LinkLoop
from ensue.channel.links.tcp.outbox import BLOCKED, GONE, Bounds, Outbox, OutgoingFrame
from ensue.channel.links.tcp.wire import (
    Acknowledge,
    Introduction,
    Numbered,
    decode_carried,
    encode_carried,
    framed,
)
from ensue.channel.policies import Block, Reason

BATCH_BYTES = 64 * 1024
"""The bytes that are handed to a connection at a time."""
POLL_SECONDS = 0.002


class SessionConnection(Protocol):
    """What a session needs of the connection that it has at the moment."""

    @property
    def is_choked(self) -> bool:
        """Whether the other side does not read as fast as this side writes."""

    def write(self, data: bytes) -> bool:
        """Write bytes. False if the connection is closing."""

    def leave(self) -> None:
        """Send `Bye` and close."""

    def abort(self) -> None: ...

    def retire(self) -> None:
        """Deliver nothing more, since another connection has replaced this one."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options of a session. `patience` is how many seconds it waits for a new connection."""

    reliable: bool
    bounds: Bounds
    patience: float


class Session:
    """One end of a link. `neighbour` is the id of the channel at the other end.

    `waiting` is the task in which a received event waits for room; no later event of the link is
    accepted before it is done.
    """

    queues_news = True

    def __init__(
        self, router: Router, link_loop: LinkLoop, link: str, options: SessionOptions
    ) -> None:
        self.link = link
        self.reliable = options.reliable
        self.neighbour: str | None = None
        self.unsent = 0
        self.connections = 0
        self.received = 0
        self.is_over = False
        self.has_failed = False
        self.waiting: asyncio.Task[None] | None = None
        self._router = router
        self._link_loop = link_loop
        self._options = options
        self._incarnation = int.from_bytes(link_loop.entropy(7), "big")
        self._other_incarnation: int | None = None
        self._acknowledged = 0
        self._lock = threading.Lock()
        self._outbox = Outbox(options.bounds)
        self._unframed: list[OutgoingFrame] = []
        self._pending_news = router.pending_news()
        self._will_pump = False
        self._is_down = False
        self._connection: SessionConnection | None = None
        self._patience_timer: asyncio.TimerHandle | None = None

    # From any thread.

    def send(self, message: Carried) -> Sequence[Blocked]:
        """Give an event its position on the link. It is encoded and transmitted by `transmit`."""
        with self._lock:
            if not self._is_down:
                if self.is_over:
                    self._lose(message, False)
                    return ()
                outgoing, dropped = self._outbox.place(message)
                if dropped:
                    self._drop(dropped)
                if outgoing.stage != GONE:
                    self._unframed.append(outgoing)
                return (BlockedSend(self, outgoing),) if outgoing.stage == BLOCKED else ()
        # The router chose this link just before the link left the graph.
        return self._router.forward(message)

    def advertise(self, advert: News) -> None:
        with self._lock:
            self._pending_news.add(advert)

    def transmit(self) -> None:
        """Encode all events that have a position, and start to transmit them.

        They are encoded before this method returns, since a supplier may change the data later.
        """
        with self._lock:
            # Under the lock, so that no later event is encoded before an earlier one.
            for outgoing in self._unframed:
                self._encode(outgoing)
            self._unframed.clear()
            must_wake = self._has_work and not self._will_pump
            self._will_pump = self._will_pump or must_wake
        if must_wake:
            self._link_loop.loop.call_soon_threadsafe(self.pump)

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def is_finished(self) -> bool:
        """Whether the session has left the graph, so that a new connection needs a new session."""
        return self.is_over or (self._is_down and self._connection is None)

    @property
    def in_transit(self) -> int:
        with self._lock:
            return self._outbox.in_transit

    @property
    def is_clear(self) -> bool:
        """Whether everything has been sent and acknowledged."""
        with self._lock:
            return not (len(self._outbox) or self._pending_news or self._unframed)

    def is_blocked(self, outgoing: OutgoingFrame) -> bool:
        with self._lock:
            return outgoing.stage == BLOCKED

    def withdraw(self, outgoing: OutgoingFrame) -> None:
        """Drop an event whose supplier has waited long enough."""
        with self._lock:
            if outgoing.stage == BLOCKED and self._outbox.withdraw(outgoing):
                self._lose(outgoing.message, False)

    def when_admitted(self, outgoing: OutgoingFrame, wake: Wake) -> None:
        """Call `wake` once when an event is no longer blocked; at once if it is not blocked now."""
        with self._lock:
            if outgoing.stage == BLOCKED:
                outgoing.wakes = [*(outgoing.wakes or ()), wake]
                return
        wake()

    def cancel_wake(self, outgoing: OutgoingFrame, wake: Wake) -> None:
        with self._lock:
            if outgoing.wakes and wake in outgoing.wakes:
                outgoing.wakes.remove(wake)

    @property
    def runs_here(self) -> bool:
        """Whether the calling thread is the thread of the link loop."""
        return self._link_loop.runs_here

    @property
    def block_seconds(self) -> float:
        overflow = self._options.bounds.overflow
        return overflow.seconds if isinstance(overflow, Block) else 0.0

    def close(self, seconds: float) -> bool:
        """Send everything, for at most some seconds, and end. Returns whether all was sent."""
        return self.is_over or bool(
            self._link_loop.run(self._end_when_clear(seconds), seconds + 10)
        )

    def _lose(self, message: Carried, in_doubt: bool) -> None:
        if in_doubt or message.in_doubt:
            self._router.note_lost(message, Reason.UNCONFIRMED)
        else:
            self.unsent += len(message.destinations)
            self._router.note_lost(message, Reason.UNSENT)

    def _drop(self, dropped: Sequence[OutgoingFrame]) -> None:
        """Count events that the overflow policy has dropped."""
        for each in dropped:
            self._lose(each.message, each.is_in_doubt)
        if self._outbox.disconnects:
            self._link_loop.loop.call_soon_threadsafe(self.end)

    def _encode(self, outgoing: OutgoingFrame) -> None:
        if outgoing.stage == GONE:
            return
        frame = encode_carried(outgoing.number, outgoing.message)
        if frame is not None:
            self._outbox.set_frame(outgoing, frame)
        elif self._outbox.withdraw(outgoing):
            self._lose(outgoing.message, False)

    @property
    def _has_work(self) -> bool:
        return bool(self._pending_news) or self._outbox.has_frames

    # In the thread of the link loop.

    def introduction(self, channel: str) -> Introduction:
        """The introduction of this side, without its proof."""
        return Introduction(
            channel, self.link, self.reliable, self._incarnation, self.received, b""
        )

    def attach(self, connection: SessionConnection, other: Introduction) -> None:
        """Use a new connection: send the events again that the other side has not received."""
        before = (self.neighbour, self._other_incarnation)
        is_new = before != (other.channel, other.incarnation)
        known = 0 if is_new else other.received
        if other.reliable != self.reliable:
            raise LinkFaultError(LinkFault.UNEXPECTED)
        if known > self._outbox.last_sent:
            raise LinkFaultError(LinkFault.BAD_ACKNOWLEDGEMENT)
        if self._patience_timer is not None:
            self._patience_timer.cancel()
            self._patience_timer = None
        if self.neighbour not in (None, other.channel):
            # Another channel answers at this address now.
            self._take_down()
        if is_new:
            # The session of the other side is new and has not seen earlier numbers.
            self.received = self._acknowledged = 0
        self.neighbour, self._other_incarnation = other.channel, other.incarnation
        self.connections += 1
        if self._connection is not None:
            # The other side has given up the old connection, which this side did not notice.
            self._connection.retire()
            self._lose_unacknowledged(known)
        with self._lock:
            self._is_down = False
            # The router sends all news over a new connection.
            self._pending_news = self._router.pending_news()
            self._outbox.acknowledge(known)
            self._outbox.rewind()
            in_doubt = self._outbox.in_doubt if is_new else 0
            self._connection = connection
        self._router.note_repeated(in_doubt)
        self._router.add_link(other.channel, self)
        self._router.introduce(self)
        self.pump()

    def detach(self, connection: SessionConnection) -> None:
        """Note the loss of a connection. An unreliable session leaves the graph at once."""
        if self._connection is not connection:
            return
        self._connection = None
        self._lose_unacknowledged(0)
        if self.is_over or not self.reliable:
            self._take_down()
        else:
            self._patience_timer = self._link_loop.loop.call_later(
                self._options.patience, self._take_down
            )

    def _lose_unacknowledged(self, known: int) -> None:
        """Count the unacknowledged events of an unreliable link, which are not sent again."""
        if self.reliable:
            return
        with self._lock:
            self._outbox.acknowledge(known)
            for each in self._outbox.take_sent():
                self._lose(each.message, True)

    def pump(self) -> None:
        """Write frames to the connection while the other side reads them."""
        connection = self._connection
        with self._lock:
            self._will_pump = False
            if connection is None or connection.is_choked:
                return
            frames = [framed(each) for each in self._pending_news.take()]
            frames += self._outbox.take_frames(BATCH_BYTES)
            self._will_pump = has_more = self._has_work
        if frames:
            connection.write(b"".join(frames))
        if has_more:
            self._link_loop.loop.call_soon(self.pump)

    def receive(self, frame: Numbered, connection: SessionConnection) -> Sequence[Blocked]:
        """Accept an event. Returns what has to be waited for before the next event is read."""
        # An unreliable link also accepts events of a lost connection, without their numbers.
        is_current = connection is self._connection
        if is_current and frame.number <= self.received:
            return ()
        carried = decode_carried(frame.carried)
        if is_current:
            self.received = frame.number
        return self._router.receive(carried, self.neighbour or "")

    def receive_news(self, news: News) -> Sequence[Blocked]:
        if self.neighbour is None:
            return ()
        return self._router.receive_news(news, self.neighbour, self)

    def acknowledged(self, up_to: int) -> None:
        with self._lock:
            if up_to > self._outbox.last_sent:
                raise LinkFaultError(LinkFault.BAD_ACKNOWLEDGEMENT)
            self._outbox.acknowledge(up_to)
        self.pump()

    @property
    def unacknowledged(self) -> int:
        """How many received events have not been acknowledged to the other side."""
        return self.received - self._acknowledged

    def acknowledgement(self) -> bytes:
        self._acknowledged = self.received
        return framed(Acknowledge(self.received))

    def _take_down(self) -> None:
        """Leave the graph, and send the kept events over other links."""
        if self.neighbour is None:
            return
        self._router.remove_link(self.neighbour, self)
        with self._lock:
            self._is_down = True
            stranded = self._outbox.take_all()
            self._unframed = []
        for each in stranded:
            for blocked in self._router.reroute(each.message, each.is_in_doubt):
                # The thread of the link loop must not wait.
                blocked.give_up()

    async def _end_when_clear(self, seconds: float) -> bool:
        deadline = self._link_loop.loop.time() + seconds
        while self._connection is not None and not self.is_clear:
            if self._link_loop.loop.time() >= deadline:
                break
            await asyncio.sleep(POLL_SECONDS)
        was_sent = self.is_clear
        self.end()
        return was_sent

    def end(self) -> None:
        """Leave the graph for good."""
        self.is_over = True
        if self._patience_timer is not None:
            self._patience_timer.cancel()
        connection = self._connection
        if connection is None:
            self._take_down()
        else:
            connection.leave()
            self.detach(connection)

    def fail(self) -> None:
        """Leave the graph for good without `Bye`, since the other side has broken the protocol."""
        self.is_over = self.has_failed = True
        connection = self._connection
        if connection is not None:
            connection.abort()
            self.detach(connection)


class BlockedSend:
    """An event that waits for room on a link."""

    __slots__ = ("_outgoing", "_session")

    def __init__(self, session: Session, outgoing: OutgoingFrame) -> None:
        self._session = session
        self._outgoing = outgoing

    @property
    def block_seconds(self) -> float:
        return self._session.block_seconds

    def retry(self) -> bool:
        return not self._session.is_blocked(self._outgoing)

    def wait(self, seconds: float) -> bool:
        if self._session.runs_here:
            # Only this thread could make room.
            self.give_up()
            return False
        woken = threading.Event()
        self.when_room(woken.set)
        try:
            woken.wait(seconds)
        finally:
            self.cancel_wake(woken.set)
            # The event is dropped if there is still no room.
            self.give_up()
        return self._outgoing.stage != GONE

    def give_up(self) -> None:
        self._session.withdraw(self._outgoing)

    def when_room(self, wake: Wake) -> None:
        self._session.when_admitted(self._outgoing, wake)

    def cancel_wake(self, wake: Wake) -> None:
        self._session.cancel_wake(self._outgoing, wake)

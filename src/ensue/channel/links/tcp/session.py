"""One end of a TCP link, which outlives its connections: what was sent, and what was received.

A session numbers its events and keeps them until the other side has acknowledged them (`outbox`).
After a new connection a reliable session sends again what was not acknowledged, and the other side
skips numbers that it has had. Through a short disconnection a reliable session stays in the graph
of links; after its patience is over, or at once if it is not reliable, it leaves the graph, and
events that it still keeps are sent another way or counted. Connections are made in `links`.

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
"""How much is handed to a connection at a time."""
POLL_SECONDS = 0.002


class SessionConnection(Protocol):
    """What a session needs of the connection that it has at the moment."""

    @property
    def is_choked(self) -> bool:
        """Whether the other side does not read as fast as this side writes."""

    def write(self, data: bytes) -> bool:
        """Hand bytes to the system. False if the connection is closing."""

    def leave(self) -> None:
        """Say goodbye and close."""

    def abort(self) -> None: ...

    def retire(self) -> None:
        """Deliver nothing more: another connection has taken its place."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Whether a session sends again, how much it keeps, and how long it waits for a connection."""

    reliable: bool
    bounds: Bounds
    patience: float


class Session:
    """One end of a link. `neighbour` is the id of the channel at the other end.

    `waiting` is the task that waits for room for an event that has arrived; no later event of the
    link is taken before it is done.
    """

    def __init__(self, router: Router, links: LinkLoop, link: str, options: SessionOptions) -> None:
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
        self._links = links
        self._options = options
        self._incarnation = int.from_bytes(links.entropy(7), "big")
        self._other_incarnation: int | None = None
        self._acknowledged = 0
        self._lock = threading.Lock()
        self._outbox = Outbox(options.bounds)
        self._unframed: list[OutgoingFrame] = []
        self._pending_news = router.pending_news()
        self._will_pump = False
        self._is_down = False
        self._connection: SessionConnection | None = None
        self._leaving: asyncio.TimerHandle | None = None

    # From any thread.

    def send(self, message: Carried) -> Sequence[Blocked]:
        """Give an event its position on the link. It is encoded and transmitted by `set_off`."""
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
        # The router has found this link in the moment before it left the graph.
        return self._router.forward(message)

    def advertise(self, advert: News) -> None:
        with self._lock:
            self._pending_news.add(advert)

    def set_off(self) -> None:
        """Encode what has its position, here and now: its supplier may change the data later."""
        with self._lock:
            # Within the lock, so that no later event is encoded before an earlier one.
            for outgoing in self._unframed:
                self._encode(outgoing)
            self._unframed.clear()
            must_wake = self._has_work and not self._will_pump
            self._will_pump = self._will_pump or must_wake
        if must_wake:
            self._links.loop.call_soon_threadsafe(self.pump)

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def is_finished(self) -> bool:
        """Whether the session has left the graph and a new connection would begin another one."""
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
        """Call `wake` once when an event is not blocked any more, immediately if it is not now."""
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
        """Whether the calling thread is that of the links."""
        return self._links.runs_here

    @property
    def block_seconds(self) -> float:
        overflow = self._options.bounds.overflow
        return overflow.seconds if isinstance(overflow, Block) else 0.0

    def close(self, seconds: float) -> bool:
        """Wait until everything is acknowledged, up to a time, then leave for good."""
        return self.is_over or bool(self._links.run(self._end(seconds), seconds + 10))

    def _lose(self, message: Carried, in_doubt: bool) -> None:
        if in_doubt or message.in_doubt:
            self._router.note_lost(message, Reason.UNCONFIRMED)
        else:
            self.unsent += len(message.destinations)
            self._router.note_lost(message, Reason.UNSENT)

    def _drop(self, dropped: Sequence[OutgoingFrame]) -> None:
        """Count what made room, or found none."""
        for each in dropped:
            self._lose(each.message, each.is_in_doubt)
        if self._outbox.disconnects:
            self._links.loop.call_soon_threadsafe(self.over)

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

    # In the thread of the links.

    def introduction(self, channel: str) -> Introduction:
        """What this side says of itself, without its proof."""
        return Introduction(
            channel, self.link, self.reliable, self._incarnation, self.received, b""
        )

    def attach(self, connection: SessionConnection, other: Introduction) -> None:
        """A connection stands: send again what the other side has not had."""
        before = (self.neighbour, self._other_incarnation)
        is_new = before != (other.channel, other.incarnation)
        known = 0 if is_new else other.received
        if other.reliable != self.reliable:
            raise LinkFaultError(LinkFault.UNEXPECTED)
        if known > self._outbox.last_sent:
            raise LinkFaultError(LinkFault.BAD_ACKNOWLEDGEMENT)
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if self.neighbour not in (None, other.channel):
            # Another channel answers at this address now.
            self._take_down()
        if is_new:
            # The other side has a new session, which knows nothing of earlier numbers.
            self.received = self._acknowledged = 0
        self.neighbour, self._other_incarnation = other.channel, other.incarnation
        self.connections += 1
        if self._connection is not None:
            # The other side has given it up, which a connection that waits does not notice.
            self._connection.retire()
            self._lose_unacknowledged(known)
        with self._lock:
            self._is_down = False
            # The router tells a new connection everything.
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
        """A connection is lost. A reliable link waits for the next one; another is taken down."""
        if self._connection is not connection:
            return
        self._connection = None
        self._lose_unacknowledged(0)
        if self.is_over or not self.reliable:
            self._take_down()
        else:
            self._leaving = self._links.loop.call_later(self._options.patience, self._take_down)

    def _lose_unacknowledged(self, known: int) -> None:
        """Count what an unreliable link has sent and will not send again."""
        if self.reliable:
            return
        with self._lock:
            self._outbox.acknowledge(known)
            for each in self._outbox.take_sent():
                self._lose(each.message, True)

    def pump(self) -> None:
        """Hand frames to the connection for as long as the other side reads."""
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
            self._links.loop.call_soon(self.pump)

    def receive(self, frame: Numbered, connection: SessionConnection) -> Sequence[Blocked]:
        """Take an event in. Returns what has to be waited for before the next one is read."""
        # An unreliable link also takes what a lost connection had brought: its numbers are over.
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
        """How many numbers the other side has not been told of."""
        return self.received - self._acknowledged

    def acknowledgement(self) -> bytes:
        self._acknowledged = self.received
        return framed(Acknowledge(self.received))

    def _take_down(self) -> None:
        """Leave the graph, and send what is kept another way."""
        if self.neighbour is None:
            return
        self._router.remove_link(self.neighbour, self)
        with self._lock:
            self._is_down = True
            stranded = self._outbox.take_all()
            self._unframed = []
        for each in stranded:
            for blocked in self._router.reroute(each.message, each.is_in_doubt):
                # The thread of the links must not wait.
                blocked.give_up()

    async def _end(self, seconds: float) -> bool:
        deadline = self._links.loop.time() + seconds
        while self._connection is not None and not self.is_clear:
            if self._links.loop.time() >= deadline:
                break
            await asyncio.sleep(POLL_SECONDS)
        was_sent = self.is_clear
        self.over()
        return was_sent

    def over(self) -> None:
        """Leave the graph for good."""
        self.is_over = True
        if self._leaving is not None:
            self._leaving.cancel()
        connection = self._connection
        if connection is None:
            self._take_down()
        else:
            connection.leave()
            self.detach(connection)

    def fail(self) -> None:
        """The other side has broken the protocol: leave the graph for good, without a goodbye."""
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
            # Without room by now, the event is dropped.
            self.give_up()
        return self._outgoing.stage != GONE

    def give_up(self) -> None:
        self._session.withdraw(self._outgoing)

    def when_room(self, wake: Wake) -> None:
        self._session.when_admitted(self._outgoing, wake)

    def cancel_wake(self, wake: Wake) -> None:
        self._session.cancel_wake(self._outgoing, wake)

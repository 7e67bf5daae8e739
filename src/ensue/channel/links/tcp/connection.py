"""One TCP connection of a link: handshake, frames, acknowledgements, heartbeats, limits.

The other side is not trusted. Before the handshake is done only small frames are read, and only for
a short time. Afterwards every frame is checked, and the first bad one ends the session with a
counted fault. If a received event finds a full queue or link, nothing more is read until there is
room, so that back pressure reaches the other process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Protocol, cast

from ensue.channel.delivery.async_waiting import wait_all
from ensue.channel.delivery.blocked import Blocked
from ensue.channel.links.faults import LinkFault, LinkFaultError
from ensue.channel.links.messages import Advert, FilterStatement
from ensue.channel.links.tcp.handshake import Handshake
from ensue.channel.links.tcp.loop import LinkLoop
from ensue.channel.links.tcp.protection import Protection
from ensue.channel.links.tcp.session import Session
from ensue.channel.links.tcp.wire import (
    LARGEST_FRAME,
    LARGEST_HANDSHAKE,
    LENGTH,
    Acknowledge,
    Bye,
    Challenge,
    Frame,
    FrameReader,
    Heartbeat,
    Introduction,
    Numbered,
    framed,
)

WRITE_LIMIT = 256 * 1024
"""The most bytes that wait in this process for the other side to read."""
ACKNOWLEDGE_AFTER = 64
ACKNOWLEDGE_WITHIN = 0.02
HEARTBEAT = 2.0
SILENCE = 3 * HEARTBEAT
WAITING_FOR_ROOM = "ensue link waiting for room"
"""The name of the task in which a received event waits for room."""

log = logging.getLogger("ensue.channel")


class ConnectionOwner(Protocol):
    """The listener or the dialling link that a connection belongs to."""

    link_loop: LinkLoop
    protection: Protection
    is_caller: bool
    handshake_seconds: float

    def introduction(self) -> Introduction:
        """The introduction of this side, without its proof."""

    def session_for(self, introduction: Introduction) -> Session:
        """The session for a verified introduction. Raises `LinkFaultError` to refuse it."""

    def admit(self, connection: TcpConnection) -> bool:
        """Whether a new connection may begin its handshake."""

    def handshake_ended(self, connection: TcpConnection) -> None:
        """Stop counting a connection whose handshake has succeeded or failed."""

    def note_fault(self, fault: LinkFault) -> None: ...


class TcpConnection(asyncio.Protocol):
    """One connection, from its handshake to its end."""

    def __init__(self, owner: ConnectionOwner) -> None:
        self._owner = owner
        self._loop = owner.link_loop.loop
        self._handshake: Handshake | None = None
        self._session: Session | None = None
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader(LARGEST_HANDSHAKE)
        self._is_waiting = False
        self._is_retired = False
        self._is_reading_paused = False
        self._handshake_timer: asyncio.TimerHandle | None = None
        self._ack_timer: asyncio.TimerHandle | None = None
        self._beat_timer: asyncio.TimerHandle | None = None
        self._last_heard = 0.0
        self.is_choked = False
        self.lost: asyncio.Future[None] = self._loop.create_future()

    # For the session.

    def write(self, data: bytes) -> bool:
        if self._transport is None or self._transport.is_closing():
            return False
        self._transport.write(data)
        return True

    def leave(self) -> None:
        self.write(framed(Bye()))
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def retire(self) -> None:
        """Deliver nothing more: the next connection brings the unread events again."""
        self._is_retired = True
        self.abort()

    # For the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_LIMIT)
        if not self._owner.admit(self):
            self._owner.note_fault(LinkFault.TOO_MANY_CALLERS)
            self.abort()
            return
        self._last_heard = self._loop.time()
        self._handshake_timer = self._loop.call_later(
            self._owner.handshake_seconds, self._end_slow_handshake
        )
        certificate = transport.get_extra_info("peercert")
        self._handshake = Handshake(
            self._owner.is_caller,
            self._owner.protection.secret_bytes,
            self._owner.link_loop.entropy,
            certificate if self._owner.protection.has_certificates else None,
        )
        if self._owner.is_caller:
            self.write(framed(self._handshake.hello()))
        # With TLS, the first bytes may have arrived together with the end of its handshake.
        self._read_frames()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's own
        for timer in (self._handshake_timer, self._ack_timer, self._beat_timer):
            if timer is not None:
                timer.cancel()
        self._owner.handshake_ended(self)
        if self._session is not None:
            # The next connection brings unread events again.
            self._is_retired = self._is_retired or self._session.reliable
            self._session.detach(self)
        if not self.lost.done():
            self.lost.set_result(None)

    def pause_writing(self) -> None:
        self.is_choked = True

    def resume_writing(self) -> None:
        self.is_choked = False
        if self._session is not None:
            self._acknowledge_soon()
            self._session.pump()

    def data_received(self, data: bytes) -> None:
        self._last_heard = self._loop.time()
        self._frames.feed(data)
        if not self._is_waiting and not self._is_retired and self._transport is not None:
            self._read_frames()

    def _read_frames(self) -> None:
        try:
            while not self._is_waiting and not self._is_retired:
                frame = self._frames.next()
                if frame is None:
                    break
                self._take(frame)
        except LinkFaultError as error:
            self._fail(error.fault)
            return
        self._acknowledge_soon()

    def _fail(self, fault: LinkFault) -> None:
        """End the connection and its session because of a fault of the other side."""
        log.info("a link was ended: %s", fault)
        self._is_retired = True
        self._owner.note_fault(fault)
        if self._session is not None:
            self._session.fail()
        self.abort()

    # Handshake.

    def _end_slow_handshake(self) -> None:
        if self._session is None:
            self._fail(LinkFault.TOO_SLOW)

    def _continue_handshake(self, handshake: Handshake, frame: Frame) -> None:
        answer = handshake.receive(frame)
        if isinstance(answer, Challenge):
            self.write(framed(answer))
        elif answer is None:
            self.write(framed(handshake.introduce(self._owner.introduction())))
        else:
            session = self._owner.session_for(answer)
            if not self._owner.is_caller:
                own = session.introduction(self._owner.introduction().channel)
                self.write(framed(handshake.introduce(own)))
            self._begin(session, answer)

    def _begin(self, session: Session, other: Introduction) -> None:
        session.attach(self, other)
        self._session, self._handshake = session, None
        self._frames.limit = LARGEST_FRAME + LENGTH
        if self._handshake_timer is not None:
            self._handshake_timer.cancel()
        self._owner.handshake_ended(self)
        self._beat()
        if session.waiting is not None and not session.waiting.done():
            # An event that an earlier connection received still waits for room.
            self._wait_for(session.waiting)

    # Frames.

    def _take(self, frame: Frame) -> None:
        session = self._session
        if session is None:
            if self._handshake is None:
                raise LinkFaultError(LinkFault.UNEXPECTED)
            self._continue_handshake(self._handshake, frame)
        elif type(frame) is Numbered:
            if blocked := self._receive(session, frame):
                self._wait_for(wait_all(blocked))
        elif isinstance(frame, Acknowledge):
            session.acknowledged(frame.received)
        elif isinstance(frame, Advert | FilterStatement):
            blocked = session.receive_news(frame)
            # Parsing predicates is slow, so other links get their turn before the next frame.
            self._wait_for(wait_all(blocked) if blocked else asyncio.sleep(0))
        elif isinstance(frame, Bye):
            session.end()
        elif not isinstance(frame, Heartbeat):
            raise LinkFaultError(LinkFault.UNEXPECTED)

    def _receive(self, session: Session, frame: Numbered) -> Sequence[Blocked]:
        try:
            return session.receive(frame, self)
        except LinkFaultError:
            raise
        except BaseException:
            # `SystemExit` and the like have been counted as a consumer's failure, and must not end
            # the thread of all links.
            return ()

    def _wait_for(self, room: Awaitable[None]) -> None:
        """Stop reading until there is room for the received event."""
        self._is_waiting = True
        session, transport = self._session, self._transport
        assert session is not None
        assert transport is not None
        if not self._is_reading_paused:
            self._is_reading_paused = True
            transport.pause_reading()

        async def wait() -> None:
            await room
            self._is_waiting = False
            if not self._is_retired:
                self._read_frames()
            if not self._is_waiting and not transport.is_closing():
                self._is_reading_paused = False
                transport.resume_reading()

        session.waiting = self._loop.create_task(wait(), name=WAITING_FOR_ROOM)

    # Acknowledgements and heartbeats.

    def _acknowledge_soon(self) -> None:
        waiting = self._session.unacknowledged if self._session is not None else 0
        if waiting >= ACKNOWLEDGE_AFTER:
            self._acknowledge()
        elif waiting and self._ack_timer is None:
            self._ack_timer = self._loop.call_later(ACKNOWLEDGE_WITHIN, self._acknowledge)

    def _acknowledge(self) -> None:
        if self._ack_timer is not None:
            self._ack_timer.cancel()
            self._ack_timer = None
        # While the other side does not read, acknowledgements are put off and then combined.
        if self._session is not None and self._session.unacknowledged and not self.is_choked:
            self.write(self._session.acknowledgement())

    def _beat(self) -> None:
        if self._loop.time() - self._last_heard > SILENCE and not self._is_waiting:
            self._owner.note_fault(LinkFault.SILENT)
            self.abort()
            return
        if not self.is_choked:
            self.write(framed(Heartbeat()))
        self._beat_timer = self._loop.call_later(HEARTBEAT, self._beat)

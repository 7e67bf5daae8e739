"""Links between channels of different processes, by TCP: listening, dialling, connections.

One thread runs an asyncio loop for all links of the process; suppliers only encode and hand over.
A link is dialled by one side, which tries again with growing pauses for as long as the link is
wanted. Where a consumer's full queue would let its supplier wait, the connection is read no further
until there is room: so the wait travels back to the other process. Nobody is asked who they are:
listen where only those can connect who may.

What goes over a link, and where to, is decided in `federation`; what is sent again in `sessions`.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import cast
from uuid import uuid4

import msgspec

from ensue.channel.delivery.async_waiting import offer_all
from ensue.channel.delivery.receiver import Receiver
from ensue.channel.links.link import Router
from ensue.channel.links.messages import Advert
from ensue.channel.links.session import Session
from ensue.channel.links.wire import (
    LARGEST_FRAME,
    LENGTH,
    LINKS,
    PROTOCOL,
    Acknowledge,
    Bye,
    Heartbeat,
    Hello,
    Numbered,
    decode,
    framed,
)
from ensue.channel.timing.clock import DurationLike, microseconds_in
from ensue.errors import UsageError
from ensue.events.event import Event

Taken = tuple[Event, Sequence[Receiver]] | None
"""An event that has arrived, and who of its receivers is full."""

WRITE_LIMIT = 16 * 1024 * 1024
ACKNOWLEDGE_AFTER = 64
ACKNOWLEDGE_WITHIN = 0.02
HEARTBEAT = 2.0
SILENCE = 3 * HEARTBEAT
HIGHEST_PORT = 65_535


class TcpConnection(asyncio.Protocol):
    """One connection, from its first hello on. `meet` says which session a hello belongs to."""

    def __init__(self, meet: Callable[[Hello], Session | None], greeting: bytes | None) -> None:
        self._meet = meet
        self._greeting = greeting
        self._session: Session | None = None
        self._transport: asyncio.Transport | None = None
        self._unread = bytearray()
        self._is_waiting = False
        self._is_retired = False
        self._ack_timer: asyncio.TimerHandle | None = None
        self._beat_timer: asyncio.TimerHandle | None = None
        self._last_heard = 0.0
        self.lost: asyncio.Future[None] = LINKS.loop.create_future()

    @property
    def is_choked(self) -> bool:
        return self._transport is None or self._transport.get_write_buffer_size() > WRITE_LIMIT

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
        """Read no more: another connection brings what is unread here, in its place."""
        self._is_retired = True
        self.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._last_heard = LINKS.loop.time()
        self._beat()
        if self._greeting is not None:
            self.write(self._greeting)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's own
        for timer in (self._ack_timer, self._beat_timer):
            if timer is not None:
                timer.cancel()
        if self._session is not None:
            # What a lost connection has brought and nobody has read yet is sent again.
            self._is_retired = self._is_retired or self._session.reliable
            self._session.detach(self)
        if not self.lost.done():
            self.lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._last_heard = LINKS.loop.time()
        self._unread += data
        if not self._is_waiting and not self._is_retired:
            self._read_frames()

    def _read_frames(self) -> None:
        unread, start = self._unread, 0
        while not self._is_waiting and len(unread) >= start + LENGTH:
            end = start + LENGTH + int.from_bytes(unread[start : start + LENGTH], "big")
            if end - start > LARGEST_FRAME:
                self.abort()
                return
            if len(unread) < end:
                break
            body = bytes(unread[start + LENGTH : end])
            start = end
            try:
                self._take(body)
            except msgspec.DecodeError:
                self.abort()
                return
        del unread[:start]
        self._acknowledge_soon()

    def _take(self, body: bytes) -> None:
        frame = decode(body)
        if isinstance(frame, Hello):
            self._greet(frame)
        elif self._session is None:
            self.abort()
        elif isinstance(frame, Numbered):
            taken = self._receive(self._session, frame)
            if taken is not None and taken[1]:
                self._wait_for(offer_all(*taken))
        elif isinstance(frame, Acknowledge):
            self._session.acknowledged(frame.received)
        elif isinstance(frame, Advert):
            self._session.receive_advert(frame)
        elif isinstance(frame, Bye):
            self._session.over()

    def _receive(self, session: Session, frame: Numbered) -> Taken:
        try:
            return session.receive(frame)
        except msgspec.DecodeError:
            raise
        except BaseException:
            # What would end a thread of its own is counted as the failure of a consumer, and must
            # not end the one that all links have.
            return None

    def _greet(self, hello: Hello) -> None:
        session = self._meet(hello) if hello.protocol == PROTOCOL else None
        if session is None or self._session is not None:
            self.abort()
            return
        if self._greeting is None:
            self.write(session.hello())
        self._session = session
        session.attach(self, hello)
        if session.waiting is not None and not session.waiting.done():
            # A connection before this one has brought an event that still waits for room.
            self._wait_for(session.waiting)

    def _wait_for(self, room: Awaitable[None]) -> None:
        """Read no further until everybody has room for the event at hand."""
        self._is_waiting = True
        session, transport = self._session, self._transport
        assert session is not None
        assert transport is not None
        transport.pause_reading()

        async def wait() -> None:
            await room
            self._is_waiting = False
            if not transport.is_closing():
                transport.resume_reading()
            if not self._is_retired:
                self._read_frames()

        session.waiting = LINKS.loop.create_task(wait())

    def _acknowledge_soon(self) -> None:
        waiting = self._session.unacknowledged if self._session is not None else 0
        if waiting >= ACKNOWLEDGE_AFTER:
            self._acknowledge()
        elif waiting and self._ack_timer is None:
            self._ack_timer = LINKS.loop.call_later(ACKNOWLEDGE_WITHIN, self._acknowledge)

    def _acknowledge(self) -> None:
        if self._ack_timer is not None:
            self._ack_timer.cancel()
            self._ack_timer = None
        if self._session is not None and self._session.unacknowledged:
            self.write(self._session.acknowledgement())

    def _beat(self) -> None:
        if LINKS.loop.time() - self._last_heard > SILENCE and not self._is_waiting:
            self.abort()
            return
        if self._session is not None:
            self.write(framed(Heartbeat()))
        self._beat_timer = LINKS.loop.call_later(HEARTBEAT, self._beat)


class Listener:
    """Takes links from channels that dial."""

    def __init__(
        self,
        federation: Router,
        host: str,
        port: int,
        *,
        buffer: int = 10_000,
        patience: DurationLike = "30 s",
    ) -> None:
        _check(port, 0, buffer)
        self._federation = federation
        self._buffer = buffer
        self._patience = microseconds_in(patience) / 1_000_000
        self._sessions: dict[str, Session] = {}
        try:
            self._server: asyncio.Server = LINKS.run(self._open(host, port))
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from None
        self.address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]

    async def _open(self, host: str, port: int) -> asyncio.Server:
        return await LINKS.loop.create_server(lambda: TcpConnection(self._meet, None), host, port)

    def _meet(self, hello: Hello) -> Session | None:
        session = self._sessions.get(hello.link)
        if session is None or session.is_over or session.neighbour != hello.channel:
            session = Session(
                self._federation, hello.link, hello.reliable, self._buffer, self._patience
            )
            self._sessions = {
                link: each for link, each in self._sessions.items() if not each.is_over
            }
            self._sessions[hello.link] = session
        return session

    def close(self) -> None:
        LINKS.loop.call_soon_threadsafe(self._server.close)


def _check(port: object, least: int, buffer: object) -> None:
    if type(port) is not int or not least <= port <= HIGHEST_PORT:
        raise UsageError(
            f"a port is an integer from {least} to {HIGHEST_PORT:,}; given is `{port!r}`"
        )
    if type(buffer) is not int or buffer < 1:
        raise UsageError(f"the `buffer` of a link holds at least one event; given is `{buffer!r}`")


class TcpLink:
    """A link that this side dials, until it is closed."""

    def __init__(
        self,
        federation: Router,
        host: str,
        port: int,
        *,
        reliable: bool = True,
        buffer: int = 10_000,
        patience: DurationLike = "30 s",
        backoff: DurationLike = "50 ms",
        longest_backoff: DurationLike = "5 s",
        seed: int | None = None,
    ) -> None:
        _check(port, 1, buffer)
        self._address = (host, port)
        self._pause = microseconds_in(backoff, at_least=1) / 1_000_000
        self._longest = microseconds_in(longest_backoff, at_least=1) / 1_000_000
        self._random = random.Random(seed)
        seconds = microseconds_in(patience) / 1_000_000
        self.session = Session(federation, uuid4().hex, reliable, buffer, seconds)
        self.attempts = 0
        self._connection: TcpConnection | None = None
        self._is_up = threading.Event()
        self._dialling = asyncio.run_coroutine_threadsafe(self._dial(), LINKS.loop)

    @property
    def is_connected(self) -> bool:
        return self.session.is_connected

    @property
    def unsent(self) -> int:
        return self.session.unsent

    def wait_until_connected(self, within: DurationLike = "5 s") -> bool:
        return self._is_up.wait(microseconds_in(within) / 1_000_000)

    def interrupt(self) -> None:
        """Cut the connection, as a network might. The link dials again."""
        self._is_up.clear()
        if self._connection is not None:
            LINKS.loop.call_soon_threadsafe(self._connection.abort)

    def close(self, seconds: float = 2.0) -> bool:
        """Wait until all is sent, up to a time, then leave for good. Whether all was sent."""
        was_sent = self.session.close(seconds)
        self._dialling.cancel()
        return was_sent

    async def _dial(self) -> None:
        failures = 0
        while not self.session.is_over:
            self.attempts += 1
            try:
                _, self._connection = await LINKS.loop.create_connection(
                    lambda: TcpConnection(self._meet, self.session.hello()), *self._address
                )
            except (OSError, UnicodeError):
                # Nobody listens there, or there is no such host, as yet.
                failures += 1
            else:
                before = self.session.connections
                await self._connection.lost
                failures = 0 if self.session.connections > before else failures + 1
            pause = min(self._longest, self._pause * 2 ** min(failures, 20))
            # Many links that lost one server should not all come back in the same instant.
            await asyncio.sleep(pause * self._random.uniform(0.5, 1.0))

    def _meet(self, hello: Hello) -> Session | None:  # noqa: ARG002 - there is one session only
        self._is_up.set()
        return None if self.session.is_over else self.session

"""Links between channels of different processes, by TCP: listening and dialling.

One thread runs an asyncio loop for all links of the process; suppliers only encode. One side dials,
and dials again with growing pauses until the link is closed. `federation` decides which messages go
over which link, and `session` which messages are sent again.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import threading
from collections.abc import Mapping
from typing import Any, cast

from ensue.channel.links.faults import LinkFault, LinkFaultError
from ensue.channel.links.link import Router
from ensue.channel.links.tcp.connection import TcpConnection
from ensue.channel.links.tcp.loop import LinkLoop
from ensue.channel.links.tcp.outbox import Bounds
from ensue.channel.links.tcp.protection import Protection
from ensue.channel.links.tcp.session import Session, SessionOptions
from ensue.channel.links.tcp.wire import Introduction
from ensue.channel.policies import Block, DropNewest, Overflow
from ensue.channel.timing.clock import DurationLike, microseconds_in
from ensue.errors import UsageError

HIGHEST_PORT = 65_535
HANDSHAKE = "5 s"
CALLERS = 64
"""The most callers of a listener that are in their handshake at a time."""
SESSIONS_A_CHANNEL = 8
MEBIBYTE = 1024 * 1024


class Listener:
    """Accepts links from channels that dial."""

    is_caller = False

    def __init__(
        self,
        router: Router,
        link_loop: LinkLoop,
        host: str,
        port: int,
        *,
        buffer: int = 10_000,
        buffer_bytes: int = 64 * MEBIBYTE,
        overflow: Overflow | None = None,
        patience: DurationLike = "30 s",
        sessions: int = 256,
        callers: int = CALLERS,
        handshake: DurationLike = HANDSHAKE,
        **protection: Any,
    ) -> None:
        _check_port(port, 0)
        self.link_loop = link_loop
        self.protection = _protection(host, protection)
        self._router = router
        self._options = {
            reliable: _session_options(reliable, buffer, buffer_bytes, overflow, patience)
            for reliable in (True, False)
        }
        self._most_sessions = _at_least_one("sessions", sessions)
        self._most_callers = _at_least_one("callers", callers)
        self.handshake_seconds = microseconds_in(handshake, at_least=1) / 1_000_000
        self._sessions: dict[str, Session] = {}
        self._callers: set[TcpConnection] = set()
        self._in_tls_handshake: set[asyncio.Transport] = set()
        try:
            self._server: asyncio.Server = link_loop.run(self._open(host, port))
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot listen on {host}:{port}: {reason}") from None
        self.address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]

    async def _open(self, host: str, port: int) -> asyncio.Server:
        context = self.protection.context(is_server=True)

        def answer() -> asyncio.BaseProtocol:
            return TcpConnection(self) if context is None else TlsCaller(self, context)

        return await self.link_loop.loop.create_server(answer, host, port)

    def introduction(self) -> Introduction:
        return Introduction(self._router.id, "listener", True, 0, 0, b"")

    def admit(self, connection: TcpConnection) -> bool:
        if self._is_full():
            return False
        self._callers.add(connection)
        return True

    def _is_full(self) -> bool:
        return len(self._callers) + len(self._in_tls_handshake) >= self._most_callers

    def handshake_ended(self, connection: TcpConnection) -> None:
        self._callers.discard(connection)

    async def start_tls(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        """Run the TLS handshake of a caller, which is counted from its first byte on."""
        if self._is_full():
            self.note_fault(LinkFault.TOO_MANY_CALLERS)
            transport.abort()
            return
        self._in_tls_handshake.add(transport)
        connection = TcpConnection(self)
        try:
            secured = await self.link_loop.loop.start_tls(
                transport,
                connection,
                context,
                server_side=True,
                ssl_handshake_timeout=self.handshake_seconds,
            )
        except (OSError, TimeoutError):
            self.note_fault(LinkFault.UNAUTHENTICATED)
            transport.abort()
            return
        finally:
            self._in_tls_handshake.discard(transport)
        if secured is not None:
            connection.connection_made(secured)

    def note_fault(self, fault: LinkFault) -> None:
        self._router.note_fault(fault)

    def session_for(self, introduction: Introduction) -> Session:
        if introduction.channel == self._router.id:
            raise LinkFaultError(LinkFault.OWN_NAME)
        session = self._sessions.get(introduction.link)
        if session is not None and not session.is_finished:
            if session.neighbour == introduction.channel:
                return session
            # The name of a link belongs to the channel that began the session.
            raise LinkFaultError(LinkFault.UNEXPECTED)
        self._sessions = {
            name: each for name, each in self._sessions.items() if not each.is_finished
        }
        of_channel = [
            each for each in self._sessions.values() if each.neighbour == introduction.channel
        ]
        if len(self._sessions) >= self._most_sessions or len(of_channel) >= SESSIONS_A_CHANNEL:
            raise LinkFaultError(LinkFault.TOO_MANY_SESSIONS)
        self._router.admit(introduction.channel, None)
        options = self._options[introduction.reliable]
        session = Session(self._router, self.link_loop, introduction.link, options)
        self._sessions[introduction.link] = session
        return session

    def close(self) -> None:
        self.link_loop.loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._server.close()
        for caller in list(self._callers):
            caller.abort()
        for transport in list(self._in_tls_handshake):
            transport.abort()


class TlsCaller(asyncio.Protocol):
    """A caller before its TLS handshake: nothing is read until the listener has counted it."""

    def __init__(self, listener: Listener, context: ssl.SSLContext) -> None:
        self._listener = listener
        self._context = context

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        opened = cast(asyncio.Transport, transport)
        opened.pause_reading()
        handshake = self._listener.start_tls(opened, self._context)
        # The loop keeps only a weak reference to a task.
        self._task = self._listener.link_loop.loop.create_task(handshake)


class TcpLink:
    """A link that this side dials, until it is closed."""

    is_caller = True

    def __init__(
        self,
        router: Router,
        link_loop: LinkLoop,
        host: str,
        port: int,
        *,
        reliable: bool = True,
        buffer: int = 10_000,
        buffer_bytes: int = 64 * MEBIBYTE,
        overflow: Overflow | None = None,
        patience: DurationLike = "30 s",
        backoff: DurationLike = "50 ms",
        longest_backoff: DurationLike = "5 s",
        seed: int | None = None,
        **protection: Any,
    ) -> None:
        _check_port(port, 1)
        self.link_loop = link_loop
        self.protection = _protection(host, protection)
        self.handshake_seconds = microseconds_in(HANDSHAKE) / 1_000_000
        self._context = self.protection.context(is_server=False)
        self._address = (host, port)
        self._router = router
        self._pause = microseconds_in(backoff, at_least=1) / 1_000_000
        self._longest = microseconds_in(longest_backoff, at_least=1) / 1_000_000
        self._random = random.Random(seed)
        self._options = _session_options(reliable, buffer, buffer_bytes, overflow, patience)
        self._unsent_before = 0
        self._is_closed = False
        self.session = self._new_session()
        self.attempts = 0
        self.last_fault: LinkFault | None = None
        self._connection: TcpConnection | None = None
        self._is_up = threading.Event()
        self._dialling = asyncio.run_coroutine_threadsafe(self._dial(), link_loop.loop)

    @property
    def is_connected(self) -> bool:
        return self.session.is_connected

    @property
    def unsent(self) -> int:
        """Events that the link could neither send nor keep, counted once for each destination."""
        return self._unsent_before + self.session.unsent

    def wait_until_connected(self, within: DurationLike = "5 s") -> bool:
        return self._is_up.wait(microseconds_in(within) / 1_000_000)

    def interrupt(self) -> None:
        """Abort the connection, as a network failure would. The link dials again."""
        self._is_up.clear()
        if self._connection is not None:
            self.link_loop.loop.call_soon_threadsafe(self._connection.abort)

    def close(self, seconds: float = 2.0) -> bool:
        """Send everything, for at most some seconds, and end. Returns whether all was sent."""
        self._is_closed = True
        was_sent = self.session.close(seconds)
        self._dialling.cancel()
        return was_sent

    def introduction(self) -> Introduction:
        return self.session.introduction(self._router.id)

    def session_for(self, introduction: Introduction) -> Session:
        if introduction.channel == self._router.id:
            raise LinkFaultError(LinkFault.OWN_NAME)
        if introduction.link != self.session.link or self.session.is_over:
            raise LinkFaultError(LinkFault.UNEXPECTED)
        self._router.admit(introduction.channel, self.session)
        self._is_up.set()
        return self.session

    def admit(self, connection: TcpConnection) -> bool:  # noqa: ARG002 - this side has dialled
        return True

    def handshake_ended(self, connection: TcpConnection) -> None:
        """Handshakes are not counted: this side dials one connection at a time."""

    def note_fault(self, fault: LinkFault) -> None:
        self.last_fault = fault
        self._router.note_fault(fault)

    def _new_session(self) -> Session:
        name = self.link_loop.entropy(16).hex()
        return Session(self._router, self.link_loop, name, self._options)

    async def _dial(self) -> None:
        failures = 0
        host, port = self._address
        while not self._is_closed:
            if self.session.has_failed:
                # The other side has broken the protocol: the link starts over with a new session.
                self._unsent_before += self.session.unsent
                self.session = self._new_session()
            elif self.session.is_over:
                return
            self.attempts += 1
            pause = min(self._longest, self._pause * 2 ** min(failures, 20))
            before, began = self.session.connections, self.link_loop.loop.time()
            try:
                _, self._connection = await self.link_loop.loop.create_connection(
                    lambda: TcpConnection(self), host, port, ssl=self._context
                )
            except (OSError, UnicodeError) as error:
                # No listener, no such host yet, or TLS refuses the other side.
                failures += 1
                if isinstance(error, ssl.SSLError):
                    self.note_fault(LinkFault.UNAUTHENTICATED)
            else:
                await self._connection.lost
                # A connection that ends at once was probably refused by the other side.
                has_lasted = self.link_loop.loop.time() - began > pause
                has_stood = self.session.connections > before and not self.session.has_failed
                failures = 0 if has_stood and has_lasted else failures + 1
            pause = min(self._longest, self._pause * 2 ** min(failures, 20))
            # Random pauses keep many links from dialling one restarted server at the same instant.
            await asyncio.sleep(pause * self._random.uniform(0.5, 1.0))


def _protection(host: str, given: Mapping[str, Any]) -> Protection:
    unknown = sorted(given.keys() - set(Protection.__dataclass_fields__))
    if unknown:
        known = ", ".join(f"`{name}`" for name in Protection.__dataclass_fields__)
        raise UsageError(
            f"`{unknown[0]}` is no option of a link; the options for authentication are {known}"
        )
    protection = Protection(**given)
    protection.check_host(host)
    return protection


def _session_options(
    reliable: bool,
    buffer: int,
    buffer_bytes: int,
    overflow: Overflow | None,
    patience: DurationLike,
) -> SessionOptions:
    bounds = Bounds(
        _at_least_one("buffer", buffer),
        _at_least_one("buffer_bytes", buffer_bytes),
        overflow if overflow is not None else Block() if reliable else DropNewest(),
    )
    if not isinstance(bounds.overflow, Overflow):
        raise UsageError(
            "the `overflow` of a link is one of `Block(within)`, `DropOldest()`, `DropNewest()` and"
            f" `Disconnect()`; given is `{overflow!r}`"
        )
    return SessionOptions(reliable, bounds, microseconds_in(patience) / 1_000_000)


def _at_least_one(name: str, given: object) -> int:
    if type(given) is not int or given < 1:
        raise UsageError(f"the `{name}` of a link is at least 1; given is `{given!r}`")
    return given


def _check_port(port: object, least: int) -> None:
    if type(port) is not int or not least <= port <= HIGHEST_PORT:
        raise UsageError(
            f"a port is an integer from {least} to {HIGHEST_PORT:,}; given is `{port!r}`"
        )

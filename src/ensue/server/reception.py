"""Connections to the server, beside their requests: how many, how large a head, how patient.

Uvicorn reads HTTP by httptools, which bounds neither the head of a request nor the time it takes,
and answers pings of a WebSocket whether or not the answers are read. Here a connection is cut off
where the head of a request is too large or too slow, where a body trickles in, where an answer is
not read, or where there are too many connections. What a request may ask for is checked in
`api.gate`.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final, cast

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets import http11
from websockets.frames import CloseCode, Frame

from ensue.server.api.requests.problems import MEDIA_TYPE, document
from ensue.server.logs.requests import AnswerCounts
from ensue.server.settings.tables import LimitsTable

LARGEST_HEAD: Final = 64 * 1024
"""Bytes of a request line and its headers, as it is usually written: a space behind each colon."""
LARGEST_FRAMING: Final = 16 * 1024 * 1024
"""Bytes of a body's chunk sizes and trailers; no more than `FRAMING_SHARE` times the body, too."""
FRAMING_SHARE: Final = 8
SLOWEST_BODY: Final = 32 * 1024
"""A body has to come within `body_seconds`, and a second more for so many bytes of it."""
MOST_PIPELINED: Final = 32
MOST_FRAGMENTS: Final = 1_024
"""Parts of one message of a WebSocket."""
LOOK_SECONDS: Final = 2.0
"""How often it is looked whether the patience with a connection has ended, at least."""


# A WebSocket begins with a head as any request does; its library would allow less of it.
http11.MAX_LINE_LENGTH = LARGEST_HEAD
http11.MAX_NUM_HEADERS = LARGEST_HEAD // len(b"a:\r\n")


def _refusal(status: int, name: str, detail: str, *headers: str) -> bytes:
    """A whole answer, after which the connection is closed."""
    body = document(status, name, detail)
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"content-type: {MEDIA_TYPE}",
        f"content-length: {len(body)}",
        "connection: close",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


TOO_MANY: Final = _refusal(
    503,
    "connections",
    "the server has as many connections as limit `connections` allows: try again in 5 s",
    "retry-after: 5",
)
HEAD_TOO_LARGE: Final = _refusal(
    431,
    "head",
    f"the request line and the headers are larger than {LARGEST_HEAD:,} bytes: send less",
)
NO_REQUEST: Final = _refusal(
    400,
    "request",
    "this is no request of HTTP/1.1, or can be read in two ways: correct its first line, its"
    " headers, and how long it says that its body is",
)


class ConnectionDeadline:
    """When a connection is cut off. Looked at every few seconds, so that requests pay nothing."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, limits: LimitsTable
    ) -> None:
        self._loop = loop
        self._unread_seconds = limits.unread_seconds
        shortest = min(limits.head_seconds, limits.body_seconds, limits.unread_seconds)
        self._look_seconds = min(LOOK_SECONDS, shortest / 4)
        self._transport = transport
        self._stuck_since: float | None = None
        self.until: float | None = None
        """When what the server waits for has to be there."""
        self.is_unread = False
        """Whether the other side does not read what it is sent."""
        self._timer = loop.call_later(self._look_seconds, self._look)

    def end(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        if self.is_unread or self._transport.is_closing():
            self._stuck_since = now if self._stuck_since is None else self._stuck_since
        else:
            self._stuck_since = None
        is_stuck = self._stuck_since is not None and now - self._stuck_since > self._unread_seconds
        if is_stuck or (self.until is not None and now > self.until):
            self._transport.abort()
            return
        self._timer = self._loop.call_later(self._look_seconds, self._look)


class PatientConnection(asyncio.Protocol):
    """A connection whose patience ends with it, and which knows whether it is read."""

    limits = LimitsTable()
    answers = AnswerCounts()
    _patience: ConnectionDeadline | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._patience is not None:
            self._patience.is_unread = True

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._patience is not None:
            self._patience.is_unread = False


class HttpConnection(PatientConnection, HttpToolsProtocol):
    """A connection that brings requests, until it becomes a WebSocket."""

    _framing = 0
    _body = 0
    _head = 0
    _is_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._patience = ConnectionDeadline(self.loop, transport, self.limits)
        self._patience.until = self.loop.time() + self.limits.head_seconds
        if len(self.connections) > self.limits.connections:
            self._answer(503, TOO_MANY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._framing += len(data)
        super().data_received(data)
        allowed = LARGEST_HEAD + min(FRAMING_SHARE * self._body, LARGEST_FRAMING)
        if self._framing > allowed and not self.transport.is_closing():
            answering: RequestResponseCycle | None = self.cycle
            if self._is_head and (answering is None or answering.response_complete):
                self._answer(431, HEAD_TOO_LARGE)
            self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        if self._head > LARGEST_HEAD:
            self._answer(431, HEAD_TOO_LARGE)
        else:
            self._answer(400, NO_REQUEST)
        self.transport.close()

    def _count_head(self, size: int) -> None:
        """Count bytes of a head. An error in what the parser calls ends the connection, by 431."""
        self._head += size
        if self._is_head and self._head > LARGEST_HEAD:
            raise ValueError("the head is too large")

    def _answer(self, status: int, answer: bytes) -> None:
        """Answer what does not come as far as the application."""
        self.answers.count("other", status)
        self.transport.write(answer)

    def handle_websocket_upgrade(self) -> None:
        if self._patience is not None:
            self._patience.end()
        super().handle_websocket_upgrade()

    # What the parser finds.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_head = True
        # A space, the version, the end of the line, and the empty line behind the headers.
        self._head = len(b"  HTTP/1.1\r\n\r\n")
        if self._patience is not None and self._patience.until is None:
            self._patience.until = self.loop.time() + self.limits.head_seconds

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count_head(len(name) + len(value) + len(b": \r\n"))

    def on_headers_complete(self) -> None:
        self._count_head(len(self.parser.get_method()))
        self._is_head = False
        if self._patience is not None:
            self._patience.until = self.loop.time() + self.limits.body_seconds
        if len(self.pipeline) >= MOST_PIPELINED:
            self.transport.abort()
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._framing -= len(body)
        self._body += len(body)
        if self._patience is not None and self._patience.until is not None:
            self._patience.until += len(body) / SLOWEST_BODY
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._framing = self._body = 0
        if self._patience is not None:
            self._patience.until = None
        super().on_message_complete()


class SocketConnection(PatientConnection, WebSocketsSansIOProtocol):
    """A connection that has become a WebSocket."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._patience = ConnectionDeadline(
            self.loop, cast(asyncio.Transport, transport), self.limits
        )

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.handshake_initiated and not self.transport.is_closing():
            # The whole request was handed over, and is none: its head has a line that is too long,
            # or too many of them.
            self.transport.write(b"".join(self.conn.data_to_send()) or HEAD_TOO_LARGE)
            self.transport.close()

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            # A refusal was answered whole; else uvicorn logs that nothing was.
            self.handshake_complete = True

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        if self.transport.get_write_buffer_size():
            # Closing would wait for what is never read.
            self.transport.abort()

    def handle_ping(self) -> None:
        answer = b"".join(self.conn.data_to_send())
        # One that floods with pings and reads no answer is given none.
        if self.writable.is_set():
            self.transport.write(answer)

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= MOST_FRAGMENTS:
            self._fail(CloseCode.MESSAGE_TOO_BIG, "too many fragments")
            return
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self._fail(CloseCode.INVALID_DATA, "no UTF-8")
                return
        super().send_receive_event_to_app()

    def _fail(self, code: CloseCode, reason: str) -> None:
        self.frames = []
        if self.conn.close_sent is None:
            self.conn.fail(code, reason)
            self.handle_parser_exception()


def protocols(limits: LimitsTable, answers: AnswerCounts) -> dict[str, Any]:
    """The settings of uvicorn that name these protocols, within limits."""
    kinds = {"http": HttpConnection, "ws": SocketConnection}
    shared = {"limits": limits, "answers": answers}
    return {name: type(each.__name__, (each,), shared) for name, each in kinds.items()}

"""The request that a record of the log belongs to, and the access log.

Each request has an id: that of its `X-Request-Id`, if it is a plain word, else a new one. The
answer has it too, so that a caller can name a request, and the log can be searched for it. The
access log has one record for each request that was answered, without its query and its body.
"""

from __future__ import annotations

import logging
import re
import time
from contextvars import ContextVar
from secrets import token_hex
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER: Final = "X-Request-Id"
RAW_HEADER: Final = HEADER.lower().encode()
STARTS: Final = frozenset(
    {"http.response.start", "websocket.http.response.start", "websocket.accept"}
)
"""Messages with which an answer begins; the last of them has no status, which is `SWITCHED`."""
SWITCHED: Final = 101
SUCH_AN_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
PRINCIPAL: Final = "ensue.principal"
"""Where the gate notes the caller of a request, in its scope."""
REQUEST: Final[ContextVar[str | None]] = ContextVar("request", default=None)

log = logging.getLogger("ensue.server.access")


class NamedRequests:
    """An ASGI application around another, that names requests, and counts and logs answers."""

    def __init__(self, app: ASGIApp, answers: AnswerCounts, has_access_log: bool) -> None:
        self._app = app
        self._answers = answers
        self.has_access_log = has_access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        name = given if SUCH_AN_ID.fullmatch(given) else token_hex(8)
        REQUEST.set(name)
        begun = time.perf_counter()
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            kind = message["type"]
            if kind in STARTS:
                status = message.get("status", SWITCHED)
                self._answers.count(scope.get("method", "GET"), status)
                headers = [*message.get("headers", ()), (RAW_HEADER, name.encode())]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            if self.has_access_log:
                self._tell(scope, status, time.perf_counter() - begun)

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        client = scope.get("client")
        principal = scope.get(PRINCIPAL)
        about = {
            "status": status,
            "milliseconds": round(seconds * 1000, 1),
            "client": client[0] if client else None,
            "token": None if principal is None else principal.name,
        }
        method = "WEBSOCKET" if scope["type"] == "websocket" else scope["method"]
        log.info("%s %s", method, scope["path"], extra=about)


class AnswerCounts:
    """Requests that were answered, by method and status."""

    METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = {}

    def count(self, method: str, status: int) -> None:
        # Callers choose methods, and each is a series of metrics.
        key = method if method in self.METHODS else "other", status
        self.counts[key] = self.counts.get(key, 0) + 1

"""What every request passes first: its size, its host and origin, its token, its rate.

An ASGI middleware. In comes a connection; on goes one whose `state` has a `principal`, with the
security headers of every response set. Refused are: a `Host` that is not ours (a foreign page whose
name was bound to our address), an `Origin` that is not ours (a foreign page that sends requests), a
body above `body_bytes`, a token that is unknown, and a caller above its rate. There are no cookies,
so that no page can act in a user's name.

A path that begins with `/channels/NAME` is of that channel, any other of `main`; what follows the
name is the path that routes see.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from ensue.server.access.tokens import Principal, Tokens
from ensue.server.api.requests.problems import ProblemError, response_of
from ensue.server.logs.requests import PRINCIPAL
from ensue.server.settings import Settings
from ensue.server.settings.tables import MAIN

PUBLIC: Final = ("/health", "/ready", "/v1/openapi.json")
"""What is answered without a token, beside the console's files."""
CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": CSP,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
CHANNELS: Final = "/channels/"
PROTOCOL: Final = "ensue.v1"
BEARER_PROTOCOL: Final = "ensue.bearer."
"""A browser cannot set headers of a WebSocket: there the token comes as a second protocol."""


class RequestGate:
    def __init__(self, app: ASGIApp, settings: Settings, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens
        self._limit = settings.limits.body_bytes
        self._bodies = _Bodies(settings.limits.waiting_bytes)
        host, _ = settings.address
        self._names = {"localhost", host.lower(), *(each.lower() for each in settings.server.hosts)}
        # A page of another name can do harm only where being able to call is enough; with tokens,
        # it is not, and only the operator knows the names that lead here.
        is_safe = tokens.are_needed or settings.server.open
        self._any_host = is_safe and not settings.server.hosts
        self._is_tls = settings.server.certificate is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        outer, scope = scope, dict(scope)
        channel, scope["path"] = _channel(scope["path"])
        try:
            _check_form(headers)
            self._check_host(headers)
            self._check_origin(headers)
            principal = self._principal(scope, headers)
            outer[PRINCIPAL] = principal
            if principal is not None:
                _check_rate(principal)
                _check_channel(principal, channel)
            self._check_length(headers)
        except ProblemError as problem:
            await refuse(problem, scope, receive, send)
            return
        scope["state"] = {**scope.get("state", {}), "principal": principal, "channel": channel}
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
        else:
            body = _Body(receive, self._bodies, self._limit)
            try:
                await self._app(scope, body.receive, with_headers(send, self._is_tls))
            finally:
                self._bodies.held -= body.seen

    def _check_host(self, headers: Mapping[str, str]) -> None:
        if self._any_host:
            return
        given = headers.get("host", "")
        name = given.rpartition(":")[0] if given.rpartition(":")[2].isdigit() else given
        name = name.strip("[]").lower()
        if name in self._names or _is_loopback(name):
            return
        raise ProblemError(
            421,
            "host",
            f"the server is not called `{name[:100]}`: call it by its address, or add the name to"
            " `[server] hosts`",
        )

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        """A page may call only the server that it came from."""
        origin = headers.get("origin")
        if origin is None:
            return
        if origin.partition("://")[2].lower() != headers.get("host", "").lower():
            raise ProblemError(
                403,
                "origin",
                f"a page of `{origin[:100]}` may not call this server: call it from its own"
                " console, or from a program",
            )

    def _principal(self, scope: Scope, headers: Headers) -> Principal | None:
        path = scope["path"]
        token = _token(scope, headers)
        principal = self._tokens.principal(token)
        if principal is None and not (path in PUBLIC or not path.startswith(("/v1", "/metrics"))):
            self._tokens.refused.count("missing" if token is None else "unknown", _client(scope))
            raise ProblemError(
                401,
                "token",
                "send a known token as `Authorization: Bearer TOKEN`",
                {"WWW-Authenticate": 'Bearer realm="ensue"'},
            )
        return principal

    def _check_length(self, headers: Mapping[str, str]) -> None:
        length = headers.get("content-length")
        if length is not None and length.isdigit() and int(length) > self._limit:
            raise too_large(self._limit)


class _Bodies:
    """How many bytes of bodies are held for requests that are not answered yet."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0


class _Body:
    """The body of a request, cut off where it grows beyond the limit without having said so.

    All bodies together are bounded too, however many requests come at once; one request alone has
    only the limit of its own.
    """

    def __init__(self, receive: Receive, bodies: _Bodies, limit: int) -> None:
        self._receive = receive
        self._bodies = bodies
        self._limit = limit
        self.seen = 0

    async def receive(self) -> Message:
        message = await self._receive()
        size = len(message.get("body", b""))
        self.seen += size
        self._bodies.held += size
        if self.seen > self._limit:
            raise too_large(self._limit)
        if size and self._bodies.held > max(self._bodies.most, self.seen):
            raise ProblemError(
                429,
                "busy",
                f"requests that wait hold {self._bodies.held:,} bytes, and limit `waiting_bytes`"
                f" allows {self._bodies.most:,}; try again in 1 s",
                {"Retry-After": "1"},
            )
        return message


def too_large(limit: int) -> ProblemError:
    return ProblemError(
        413,
        "body",
        f"the body is larger than limit `body_bytes` allows ({limit:,}): send it in parts",
        limit="body_bytes",
    )


def _check_form(headers: Headers) -> None:
    """Only what can be read in one way."""
    if len(headers.getlist("host")) > 1:
        raise ProblemError(400, "host", "the header `Host` is given more than once: leave one")
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        raise ProblemError(
            415,
            "content-encoding",
            f"bodies in the `Content-Encoding` `{coding[:100]}` are not read: send it plain",
            {"Accept-Encoding": "identity"},
        )


def _check_rate(principal: Principal) -> None:
    seconds = principal.rate.take()
    if seconds:
        raise ProblemError(
            429,
            "rate",
            f"`{principal.name}` sends more than limit `requests_per_second` allows"
            f" ({principal.rate.per_second:,}); send events in batches, and try again in"
            f" {seconds} s",
            {"Retry-After": str(seconds)},
        )


def _channel(path: str) -> tuple[str, str]:
    """The channel that a path is of, and the path in it."""
    if not path.startswith(CHANNELS):
        return MAIN, path
    name, _, rest = path.removeprefix(CHANNELS).partition("/")
    return name, f"/{rest}"


def _check_channel(principal: Principal, channel: str) -> None:
    if not principal.may_use(channel):
        raise ProblemError(
            403,
            "channel",
            f"`{principal.name}` is not allowed to use channel `{channel[:100]}`: its `channels`"
            " leave it out",
        )


def _token(scope: Scope, headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    if scope["type"] == "websocket":
        for each in scope.get("subprotocols", ()):
            if each.startswith(BEARER_PROTOCOL):
                return str(each.removeprefix(BEARER_PROTOCOL))
    return None


def _client(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "unknown"


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def with_headers(send: Send, is_tls: bool) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if is_tls:
                headers.setdefault("Strict-Transport-Security", "max-age=31536000")
        await send(message)

    return sending


async def refuse(problem: ProblemError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        # What is refused before it is accepted is answered as HTTP, where the server can do that.
        extensions: dict[str, Any] = scope.get("extensions") or {}
        if "websocket.http.response" not in extensions:
            await WebSocketClose(1008, problem.detail[:120])(scope, receive, send)
            return
    response = response_of(problem)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    await response(scope, receive, send)

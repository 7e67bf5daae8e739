"""Events to and from HTTP.

With `listen`, the gateway is itself the service: it takes webhooks and WebSockets at the paths of
its addresses, and what is published goes to all open WebSockets. With `url`, what is
published is posted there (or sent over a WebSocket, where the scheme is `ws`), and events come over
a WebSocket that the gateway opens, where the other side has one. Both may be given: webhooks in by
`listen`, webhooks out by `url`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ensue.errors import EventError, LinkError, UsageError
from ensue.events.cloudevents import encode
from ensue.federation.adapters.base import (
    Adapter,
    Capabilities,
    Incoming,
    Outgoing,
    ProtectedOptions,
    RefusedError,
    Service,
    broken,
    driver,
)
from ensue.federation.adapters.http.messages import write_batch, write_request
from ensue.federation.adapters.http.server import HttpServer, too_large
from ensue.federation.adapters.inbox import ControlInbox, Inbox
from ensue.federation.ending import end
from ensue.federation.limits import limits
from ensue.federation.messages.bindings import read_structured
from ensue.subscriptions import Filter

aiohttp: Any = driver("aiohttp", "http")

_SCHEMES = ("http", "https", "ws", "wss")
_REFUSED_STATUS = frozenset({401, 403, 407})
_NO_SOCKET_STATUS = 403
"""What many servers answer at a path that has no WebSocket."""
_PASSING_STATUS = frozenset({408, 425, 429})
_SECONDS_TO_ANSWER = 35
_LARGEST_ANSWER = 64 * 1024


class HttpOptions(ProtectedOptions, frozen=True, kw_only=True):
    """`listen` is `HOST:PORT`; `batch` posts many events in one request.

    `token` is the bearer token that the gateway shows to others, `admit` the one that others must
    show to it.
    """

    listen: str | None = None
    batch: bool = False
    token: str | None = None
    admit: str | None = None


class HttpAdapter(Adapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="http",
        driver="aiohttp",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=False,
        recalls=False,
        pushes_down="nothing",
        protection=("TLS", "user and password", "client certificate", "bearer token"),
    )
    options_type = HttpOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._options: HttpOptions = service.options or HttpOptions()
        self._server: HttpServer | None = None
        self._session: Any = None
        self._sockets: dict[str, Any] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._events: Inbox[Incoming] = Inbox()
        self._control = ControlInbox()

    async def connect(self) -> None:
        service, options = self.service, self._options
        if not service.url and options.listen is None:
            raise UsageError(
                f"service `{service.name}`: give `url` to post to, `listen` to be posted to, or"
                " both"
            )
        self._events, self._control = Inbox(), ControlInbox()
        if options.listen is not None:
            self._server = HttpServer(
                service, options.listen, options.server_context(), options.admit
            )
            self._server.events, self._server.control = self._events, self._control
            await self._server.start()
        if service.url:
            await self._open_session()

    async def listen(self, wanted: Sequence[Filter]) -> None:
        if self._server is not None:
            self._server.is_listening = True
        elif self.service.address not in self._sockets:
            for address in (self.service.address, self.service.transit_address):
                await self._open_socket(address)

    async def unlisten(self) -> None:
        if self._server is not None:
            self._server.is_listening = False
        for address in (self.service.address, self.service.transit_address):
            socket = self._sockets.pop(address, None)
            if socket is not None and not self._is_socket_only:
                await socket.close()

    async def receive(self) -> list[Incoming]:
        return await self._events.take()

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        for each in tokens:
            if each is not None and not each.done():
                each.set_result(None)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        if self._server is not None:
            for each in outgoing:
                await self._server.send(self._address(each), [encode(each.event)])
        if self._is_socket_only:
            for each in outgoing:
                await self._send(self._address(each), [encode(each.event)])
        elif self.service.url and self._options.batch:
            for in_transit in (False, True):
                batch = [each for each in outgoing if each.in_transit is in_transit]
                if batch:
                    written = write_batch([each.event for each in batch])
                    await self._post(self._address(batch[0]), *written)
        elif self.service.url:
            for place, each in enumerate(outgoing):
                try:
                    written = write_request(each.event, self.service.encoding)
                    await self._post(self._address(each), *written)
                except (LinkError, RefusedError) as error:
                    error.confirmed = place
                    raise

    def _address(self, outgoing: Outgoing) -> str:
        return self.service.transit_address if outgoing.in_transit else self.service.address

    async def tell(self, message: bytes) -> None:
        address = self.service.control_address
        if self._server is not None:
            await self._server.send(address, [message])
        if address in self._sockets:
            await self._send(address, [message])

    async def hear(self) -> list[bytes]:
        return await self._control.take()

    async def close(self) -> None:
        server, session = self._server, self._session
        self._server = self._session = None
        await end(self._readers)
        self._readers, self._sockets = [], {}
        if session is not None:
            await session.close()
        if server is not None:
            await server.stop()

    @property
    def _is_socket_only(self) -> bool:
        return urlsplit(self.service.url).scheme in ("ws", "wss")

    async def _open_session(self) -> None:
        service, options = self.service, self._options
        place = urlsplit(service.url)
        if place.scheme not in _SCHEMES or not place.hostname:
            raise UsageError(
                f"service `{service.name}`: its address is to begin with `http://`, `https://`,"
                " `ws://` or `wss://`"
            )
        tls = options.tls_context() if place.scheme in ("https", "wss") else None
        headers = {"Authorization": f"Bearer {options.token}"} if options.token else {}
        auth = aiohttp.BasicAuth(options.user, options.password or "") if options.user else None
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls if tls is not None else True),
            timeout=aiohttp.ClientTimeout(total=_SECONDS_TO_ANSWER, connect=10),
            headers=headers,
            auth=auth,
        )
        default = 443 if tls is not None else 80
        try:
            async with asyncio.timeout(10):
                _, writer = await asyncio.open_connection(place.hostname, place.port or default)
            writer.close()
        except (OSError, TimeoutError) as error:
            raise broken(service, "cannot connect", error) from None
        await self._open_socket(service.control_address)
        if self._is_socket_only:
            for address in (service.address, service.transit_address):
                await self._open_socket(address)

    async def _open_socket(self, address: str) -> None:
        """A WebSocket to an address. An address without one is a webhook, and is only posted to."""
        target = self._target(address, is_socket=True)
        try:
            socket = await self._session.ws_connect(
                target, heartbeat=20, max_msg_size=limits().largest_on_a_socket
            )
        except aiohttp.WSServerHandshakeError as error:
            is_webhook = error.status == _NO_SOCKET_STATUS and not self._is_socket_only
            if error.status in _REFUSED_STATUS and not is_webhook:
                raise self._not_admitted(error.status) from None
            return
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise broken(self.service, "cannot connect", error) from None
        self._sockets[address] = socket
        self._readers.append(asyncio.create_task(self._read(address, socket)))

    async def _read(self, address: str, socket: Any) -> None:
        service = self.service
        with contextlib.suppress(aiohttp.ClientError, OSError):
            async for message in socket:
                if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                    continue
                data = message.data
                body = data.encode() if isinstance(data, str) else data
                if address == service.control_address:
                    self._control.put(body)
                    continue
                in_transit = address == service.transit_address
                try:
                    incoming = Incoming(read_structured(body), None, in_transit, size=len(body))
                except EventError as error:
                    incoming = Incoming(None, None, in_transit, error.problems)
                await self._events.put_when_free(incoming)
        if address in self._sockets:
            lost = LinkError(f"service `{service.name}`: the WebSocket was closed")
            self._events.fail(lost)
            self._control.fail(lost)

    async def _send(self, address: str, bodies: Sequence[bytes]) -> None:
        socket = self._sockets.get(address)
        if socket is None:
            raise LinkError(f"service `{self.service.name}`: there is no WebSocket at its address")
        try:
            for body in bodies:
                if len(body) > limits().largest_on_a_socket:
                    raise RefusedError(too_large(self.service, body))
                await socket.send_str(body.decode())
        except (aiohttp.ClientError, OSError) as error:
            raise broken(self.service, "cannot publish", error) from None

    async def _post(self, address: str, headers: dict[str, str], body: bytes) -> None:
        try:
            async with self._session.post(
                self._target(address), data=body, headers=headers
            ) as answer:
                status = answer.status
                # What an answer holds besides is of no interest, and may have no end.
                await answer.content.read(_LARGEST_ANSWER)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise broken(self.service, "cannot post", error) from None
        if 200 <= status < 300:
            return
        if status in _REFUSED_STATUS:
            raise self._not_admitted(status)
        problem = f"service `{self.service.name}`: the answer to an event is {status}"
        if 400 <= status < 500 and status not in _PASSING_STATUS:
            raise RefusedError(problem)
        raise LinkError(problem)

    def _not_admitted(self, status: int) -> LinkError:
        """Nothing is wrong with an event that is answered so: it waits for other credentials."""
        return LinkError(
            f"service `{self.service.name}`: the answer is {status}: the credentials are refused"
        )

    def _target(self, address: str, is_socket: bool = False) -> str:
        """Where events of an address go. A path in `url` is taken as it is for the events."""
        place = urlsplit(self.service.url)
        scheme = {"http": "ws", "https": "wss"}.get(place.scheme, place.scheme)
        begin = f"{scheme if is_socket else place.scheme}://{place.netloc}"
        if address == self.service.address and place.path.strip("/"):
            return begin + place.path + (f"?{place.query}" if place.query else "")
        return f"{begin}/{address.strip('/')}"

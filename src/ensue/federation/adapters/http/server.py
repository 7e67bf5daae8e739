"""The side of an HTTP service that others connect to: webhooks, WebSockets and control messages.

A posted event is answered when the gateway has acknowledged it (204), so that the client knows that
it is at its destinations; 503 means that it is to be posted again. A client that connects by
WebSocket sends events and gets all that are published at the service; a client that does not read
is cut off. How many callers there may be, and what their bodies may take, is the matter of
`federation.doors`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from hmac import compare_digest
from typing import Any

from ensue.errors import EventError, LinkError, UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import Incoming, RefusedError, Service, driver
from ensue.federation.adapters.http.messages import read_request
from ensue.federation.adapters.inbox import ControlInbox, Inbox
from ensue.federation.doors import Doors, TooMuchError
from ensue.federation.limits import limits
from ensue.federation.messages.bindings import read_structured

web: Any = driver("aiohttp.web", "http")

_SECONDS_TO_PASS_ON = 30.0
_MOST_SOCKETS = 256


class HttpServer:
    """Serves the three addresses of a service as paths."""

    def __init__(
        self, service: Service, place: str, tls: ssl.SSLContext | None, admit: str | None
    ) -> None:
        self._service = service
        self._place = place
        self._tls = tls
        self._admitted = None if admit is None else f"Bearer {admit}".encode()
        self._doors: Doors | None = None
        self._sockets: dict[str, dict[Any, Any]] = {}
        """By address, the open WebSockets with the connection of each."""
        self.events: Inbox[Incoming] = Inbox()
        self.control = ControlInbox()
        self.is_listening: bool | None = None
        """Whether the gateway wants events; None, and no event is taken, until it has said so."""

    async def start(self) -> None:
        service = self._service
        application = web.Application(middlewares=[self._admit()])
        self._sockets = {
            address: {}
            for address in (service.address, service.transit_address, service.control_address)
        }
        for address in self._sockets:
            path = f"/{address.strip('/')}"
            application.router.add_post(path, self._posted(address))
            application.router.add_get(path, self._opened(address))
        self._doors = Doors(application)
        host, _, port = self._place.rpartition(":")
        try:
            await self._doors.open(host.strip("[]") or None, int(port), self._tls)
        except (OverflowError, ValueError) as error:
            raise UsageError(f"service `{service.name}`: `listen`: {error}") from None
        except OSError as error:
            raise LinkError(f"service `{service.name}`: cannot listen: {error}") from None

    def _admit(self) -> Any:
        """Refuses a request without the required token."""

        async def admit(request: Any, handler: Any) -> Any:
            # A header may hold bytes that are no text.
            shown = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
            if self._admitted is not None and not compare_digest(shown, self._admitted):
                return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
            return await handler(request)

        return web.middleware(admit)

    async def stop(self) -> None:
        self.events.fail(LinkError("closed"))
        for sockets in self._sockets.values():
            for each in tuple(sockets):
                await each.close()
        if self._doors is not None:
            await self._doors.close()

    async def send(self, address: str, bodies: Sequence[bytes]) -> int:
        """Send to all WebSockets at an address; out goes how many there are."""
        sockets = tuple(self._sockets.get(address, {}).items())
        for body in bodies:
            if sockets and len(body) > limits().largest_on_a_socket:
                raise RefusedError(too_large(self._service, body))
        for socket, transport in sockets:
            for body in bodies:
                if not await _sent(socket, transport, body.decode()):
                    break
        return len(sockets)

    def _posted(self, address: str) -> Any:
        async def answer(request: Any) -> Any:
            assert self._doors is not None
            try:
                body = await self._doors.body_of(request)
            except TooMuchError as error:
                return web.Response(
                    status=error.status, headers={"Retry-After": "1", "Connection": "close"}
                )
            try:
                return await self._answered(address, request, bytes(body))
            finally:
                self._doors.leave(body)

        return answer

    async def _answered(self, address: str, request: Any, body: bytes) -> Any:
        try:
            if address == self._service.control_address:
                await self._take_control(body, None)
                return web.Response(status=204)
            events = read_request(request.headers, body)
        except EventError as error:
            return web.json_response({"problems": error.problems}, status=400)
        return await self._take(address, events)

    async def _take(self, address: str, events: Sequence[Event]) -> Any:
        if self.is_listening is None:
            return web.Response(status=503, headers={"Retry-After": "1"})
        if not self.is_listening or not events:
            return web.Response(status=204)
        done = [asyncio.get_running_loop().create_future() for _ in events]
        in_transit = address == self._service.transit_address
        try:
            async with asyncio.timeout(_SECONDS_TO_PASS_ON):
                for event, future in zip(events, done, strict=True):
                    await self.events.put_when_free(Incoming(event, future, in_transit))
                await asyncio.gather(*done)
        except (TimeoutError, LinkError):
            return web.Response(status=503, headers={"Retry-After": "1"})
        return web.Response(status=204)

    def _opened(self, address: str) -> Any:
        async def converse(request: Any) -> Any:
            socket = web.WebSocketResponse(heartbeat=20, max_msg_size=limits().largest_on_a_socket)
            if not socket.can_prepare(request):
                return web.Response(status=426, headers={"Upgrade": "websocket"})
            if sum(map(len, self._sockets.values())) >= _MOST_SOCKETS:
                return web.Response(status=503, headers={"Retry-After": "5"})
            await socket.prepare(request)
            self._sockets[address][socket] = request.transport
            try:
                async for message in socket:
                    if message.type in (web.WSMsgType.TEXT, web.WSMsgType.BINARY):
                        data = message.data
                        body = data.encode() if isinstance(data, str) else data
                        await self._received(address, body, socket)
            finally:
                self._sockets[address].pop(socket, None)
            return socket

        return converse

    async def _received(self, address: str, body: bytes, socket: Any) -> None:
        in_transit = address == self._service.transit_address
        try:
            if address == self._service.control_address:
                return await self._take_control(body, socket)
            if not self.is_listening:
                return None
            incoming = Incoming(read_structured(body), None, in_transit, size=len(body))
        except EventError as error:
            incoming = Incoming(None, None, in_transit, error.problems)
        return await self.events.put_when_free(incoming)

    async def _take_control(self, body: bytes, sender: Any) -> None:
        """A control message is for every gateway at the service: pass it on to the others.

        Raises `EventError` for bytes that are no text, and for more than a WebSocket takes.
        """
        try:
            text = body.decode()
        except UnicodeDecodeError:
            raise EventError(["a control message is JSON, in UTF-8"]) from None
        if len(body) > limits().largest_on_a_socket:
            raise EventError(
                [f"a control message has {limits().largest_on_a_socket:,} bytes at most"]
            )
        self.control.put(body)
        for socket, transport in tuple(self._sockets[self._service.control_address].items()):
            if socket is not sender:
                await _sent(socket, transport, text)


async def _sent(socket: Any, transport: Any, text: str) -> bool:
    """Send to a WebSocket; false if its reader has gone, or does not read and is cut off."""
    try:
        async with asyncio.timeout(limits().seconds_to_read):
            await socket.send_str(text)
    except TimeoutError:
        if transport is not None:
            transport.abort()
        return False
    except (ConnectionError, RuntimeError):
        # Its own task removes it.
        return False
    return True


def too_large(service: Service, body: bytes) -> str:
    return (
        f"service `{service.name}`: an event of {len(body):,} bytes; a WebSocket takes"
        f" {limits().largest_on_a_socket:,}: post it, or keep its data elsewhere"
    )

"""The side of an HTTP service that others connect to: webhooks, WebSockets and control messages.

A posted event is answered when the gateway has acknowledged it (204), so that who posts knows that
it is at its destinations; 503 means that it is to be posted again. Who connects by WebSocket sends
events and gets all that are published at the service.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from hmac import compare_digest
from typing import Any

from ensue.errors import EventError, LinkError, UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import Incoming, Service, driver
from ensue.federation.adapters.http.messages import read_request
from ensue.federation.adapters.inbox import ControlInbox, Inbox
from ensue.federation.messages.bindings import read_structured

web: Any = driver("aiohttp.web", "http")

_SECONDS_TO_PASS_ON = 30.0
_LARGEST = 64 << 20


class Server:
    """Serves the three addresses of a service as paths."""

    def __init__(
        self, service: Service, place: str, tls: ssl.SSLContext | None, admit: str | None
    ) -> None:
        self._service = service
        self._place = place
        self._tls = tls
        self._admitted = None if admit is None else f"Bearer {admit}".encode()
        self._runner: Any = None
        self._sockets: dict[str, set[Any]] = {}
        self.events: Inbox[Incoming] = Inbox()
        self.control = ControlInbox()
        self.is_listening: bool | None = None
        """None until the gateway has said whether it wants events: until then none are taken."""

    async def start(self) -> None:
        service = self._service
        application = web.Application(client_max_size=_LARGEST, middlewares=[self._admit()])
        self._sockets = {
            address: set()
            for address in (service.address, service.transit_address, service.control_address)
        }
        for address in self._sockets:
            path = f"/{address.strip('/')}"
            application.router.add_post(path, self._posted(address))
            application.router.add_get(path, self._opened(address))
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        host, _, port = self._place.rpartition(":")
        try:
            site = web.TCPSite(self._runner, host or None, int(port), ssl_context=self._tls)
            await site.start()
        except (OverflowError, ValueError) as error:
            raise UsageError(f"service `{service.name}`: `listen`: {error}") from None
        except OSError as error:
            raise LinkError(f"service `{service.name}`: cannot listen: {error}") from None

    def _admit(self) -> Any:
        """Refuses whoever does not show the token that is asked for."""

        async def admit(request: Any, handler: Any) -> Any:
            shown = request.headers.get("Authorization", "").encode()
            if self._admitted is not None and not compare_digest(shown, self._admitted):
                return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
            return await handler(request)

        return web.middleware(admit)

    async def stop(self) -> None:
        self.events.fail(LinkError("closed"))
        for sockets in self._sockets.values():
            for each in tuple(sockets):
                await each.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def send(self, address: str, bodies: Sequence[bytes]) -> int:
        """Send to all WebSockets at an address; out goes how many there are."""
        sockets = tuple(self._sockets.get(address, ()))
        for each in sockets:
            for body in bodies:
                # Who has gone meanwhile is removed by its own task.
                try:
                    await each.send_str(body.decode())
                except (ConnectionError, RuntimeError):
                    break
        return len(sockets)

    def _posted(self, address: str) -> Any:
        async def answer(request: Any) -> Any:
            body = await request.read()
            if address == self._service.control_address:
                await self._take_control(body, None)
                return web.Response(status=204)
            try:
                events = read_request(request.headers, body)
            except EventError as error:
                return web.json_response({"problems": error.problems}, status=400)
            return await self._take(address, events)

        return answer

    async def _take(self, address: str, events: Sequence[Event]) -> Any:
        if self.is_listening is None:
            return web.Response(status=503, headers={"Retry-After": "1"})
        if not self.is_listening or not events:
            return web.Response(status=204)
        done = [asyncio.get_running_loop().create_future() for _ in events]
        in_transit = address == self._service.transit_address
        for event, future in zip(events, done, strict=True):
            await self.events.put_when_free(Incoming(event, future, in_transit))
        try:
            async with asyncio.timeout(_SECONDS_TO_PASS_ON):
                await asyncio.gather(*done)
        except (TimeoutError, LinkError):
            return web.Response(status=503, headers={"Retry-After": "1"})
        return web.Response(status=204)

    def _opened(self, address: str) -> Any:
        async def converse(request: Any) -> Any:
            socket = web.WebSocketResponse(heartbeat=20, max_msg_size=_LARGEST)
            if not socket.can_prepare(request):
                return web.Response(status=426, headers={"Upgrade": "websocket"})
            await socket.prepare(request)
            self._sockets[address].add(socket)
            try:
                async for message in socket:
                    if message.type in (web.WSMsgType.TEXT, web.WSMsgType.BINARY):
                        data = message.data
                        body = data.encode() if isinstance(data, str) else data
                        await self._received(address, body, socket)
            finally:
                self._sockets[address].discard(socket)
            return socket

        return converse

    async def _received(self, address: str, body: bytes, socket: Any) -> None:
        if address == self._service.control_address:
            await self._take_control(body, socket)
        elif self.is_listening:
            in_transit = address == self._service.transit_address
            try:
                incoming = Incoming(read_structured(body), None, in_transit)
            except EventError as error:
                incoming = Incoming(None, None, in_transit, error.problems)
            await self.events.put_when_free(incoming)

    async def _take_control(self, body: bytes, sender: Any) -> None:
        """A control message is for every gateway at the service: pass it on to the others."""
        self.control.put(body)
        for each in tuple(self._sockets[self._service.control_address]):
            if each is not sender:
                try:
                    await each.send_str(body.decode())
                except (ConnectionError, RuntimeError):
                    continue

"""The doors of what a gateway serves over HTTP: how many callers are let in, and how silent.

A caller that has connected sends the head of its first request within seconds, or is cut off; a
body comes at a least speed, and all bodies that are being read or passed on have a bound together.
aiohttp bounds one body alone. Later requests of a connection are under its own bound for silence.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final

from ensue.federation.adapters.base import driver
from ensue.federation.limits import limits

BYTES_A_SECOND: Final = 32 * 1024
"""What a body gets a second more for."""


class TooMuchError(Exception):
    """A body that is not read; `status` says why."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(status)


class Doors:
    """Listens for an application of aiohttp, whose handlers read bodies by `body_of`."""

    def __init__(self, application: Any) -> None:
        web: Any = driver("aiohttp.web", "http")

        @web.middleware  # type: ignore[untyped-decorator, unused-ignore]
        async def came_in(request: Any, handler: Any) -> Any:
            # The head of a request has been read.
            self._silent.pop(request.protocol, None)
            return await handler(request)

        application.middlewares.insert(0, came_in)
        self._runner: Any = web.AppRunner(
            application, access_log=None, shutdown_timeout=1.0, lingering_time=1.0
        )
        self._server: asyncio.Server | None = None
        self._silent: dict[Any, float] = {}
        self._watching: asyncio.Task[None] | None = None
        self._bytes = 0

    async def open(self, host: str | None, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Raises `OSError`, `OverflowError` or `ValueError` for an address that cannot be used."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        patience = None if tls is None else limits().seconds_to_ask
        self._server = await loop.create_server(
            self._caller, host, port, ssl=tls, backlog=128, ssl_handshake_timeout=patience
        )
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._watching is not None:
            self._watching.cancel()
        await self._runner.cleanup()

    async def body_of(self, request: Any) -> bytearray:
        """The body of a request, to be given back by `leave`. Raises `TooMuchError`."""
        body = bytearray()
        loop = asyncio.get_running_loop()
        begin = loop.time()
        try:
            async with asyncio.timeout(limits().seconds_for_a_body) as limit:
                while part := await request.content.readany():
                    if len(body) + len(part) > limits().largest_body:
                        raise TooMuchError(413)
                    if self._bytes + len(part) > limits().bodies:
                        raise TooMuchError(503)
                    self._bytes += len(part)
                    body += part
                    more = len(body) / BYTES_A_SECOND
                    limit.reschedule(begin + limits().seconds_for_a_body + more)
        except TimeoutError:
            self.leave(body)
            raise TooMuchError(408) from None
        except BaseException:
            self.leave(body)
            raise
        return body

    def leave(self, body: bytearray) -> None:
        """A body is not needed any more."""
        self._bytes -= len(body)

    def _caller(self) -> asyncio.BaseProtocol:
        server = self._runner.server
        if (
            server is None
            or max(len(server.connections), len(self._silent)) >= limits().connections
        ):
            return _Refusal()
        protocol: asyncio.BaseProtocol = server()
        self._silent[protocol] = asyncio.get_running_loop().time()
        return protocol

    async def _watch(self) -> None:
        """Cut off callers that have not asked in time."""
        while True:
            await asyncio.sleep(1.0)
            before = asyncio.get_running_loop().time() - limits().seconds_to_ask
            for each in [caller for caller, came in self._silent.items() if came < before]:
                del self._silent[each]
                each.force_close()


class _Refusal(asyncio.Protocol):
    """A caller for whom there is no room."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()

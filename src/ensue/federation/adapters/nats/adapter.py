"""Events to and from NATS.

Core NATS keeps nothing: a client that is away misses what is sent. `jetstream` has the kind that
keeps messages; its connection and its control messages are those of this module.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ensue.errors import LinkError, UsageError
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
    incoming_of,
)
from ensue.federation.adapters.inbox import ControlInbox, Inbox
from ensue.federation.messages.bindings import Message, NameBinding
from ensue.subscriptions import Filter

nats: Any = driver("nats", "nats")
errors: Any = driver("nats.errors", "nats")

BINDING = NameBinding("ce-")
CONTENT_TYPE = "content-type"
_SCHEMES = ("nats", "tls", "ws", "wss")
_SECONDS_TO_CONNECT = 10
SECONDS_TO_ANSWER = 10
FAILURES = (errors.Error, OSError, asyncio.TimeoutError)
_REFUSED = "permissions violation"


class NatsOptions(ProtectedOptions, frozen=True, kw_only=True):
    """`token` and `credentials` are ways in which a NATS client authenticates itself."""

    token: str | None = None
    credentials: str | None = None


class NatsAdapter(Adapter):
    """Core NATS, and what both kinds share."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="nats",
        driver="nats-py",
        incoming="at most once",
        outgoing="at least once",
        survives_restart=False,
        recalls=False,
        pushes_down="the subject of `address`",
        protection=("TLS", "user and password", "client certificate", "token", "credentials file"),
    )
    options_type = NatsOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._options: NatsOptions = service.options or self.options_type()
        self._client: Any = None
        self._subscriptions: list[Any] = []
        self._noted: Exception | None = None
        self._refusal: Exception | None = None
        self._events: Inbox[Incoming] = Inbox()
        self._control = ControlInbox()

    async def connect(self) -> None:
        service, options = self.service, self._options
        if urlsplit(service.url).scheme not in _SCHEMES:
            raise UsageError(
                f"service `{service.name}`: its address is to begin with `nats://`, or `tls://`"
            )
        given: dict[str, Any] = {
            "user": options.user,
            "password": options.password,
            "token": options.token,
            "user_credentials": options.credentials,
        }
        if urlsplit(service.url).scheme in ("tls", "wss"):
            given["tls"] = options.tls_context()
        self._events, self._control = Inbox(), ControlInbox()
        self._subscriptions, self._refusal = [], None
        try:
            async with asyncio.timeout(_SECONDS_TO_CONNECT):
                self._client = await nats.connect(
                    service.url,
                    name=f"ensue-{service.gateway}-{service.name}",
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0.1,
                    no_echo=True,
                    error_cb=self._note,
                    closed_cb=self._closed,
                    disconnected_cb=self._closed,
                    ping_interval=20,
                    **{key: value for key, value in given.items() if value is not None},
                )
                await self._client.subscribe(service.control_address, cb=self._hear)
                await self._until_read()
        except (*FAILURES, TimeoutError) as error:
            await self.close()
            # The driver tells the reason apart, and then only that no server is left.
            raise broken(service, "cannot connect", self._noted or error) from None

    async def listen(self, wanted: Sequence[Filter]) -> None:
        if self._subscriptions:
            return
        for address in (self.service.address, self.service.transit_address):
            subscribing = self._client.subscribe(
                address, cb=self._receive, pending_bytes_limit=1 << 28
            )
            self._subscriptions.append(await self._do("cannot subscribe", subscribing))
        await self._do("cannot subscribe", self._until_read())

    async def unlisten(self) -> None:
        subscriptions, self._subscriptions = self._subscriptions, []
        for each in subscriptions:
            await self._do("cannot unsubscribe", each.unsubscribe())
        if subscriptions:
            # Events that are published from here on are not for this adapter.
            await self._do("cannot unsubscribe", self._until_read())

    async def receive(self) -> list[Incoming]:
        return await self._events.take()

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        # All are made before the first is sent: where one is too large, none is sent twice.
        for address, message in [self._message(each) for each in outgoing]:
            await self._do(
                "cannot publish",
                self._client.publish(address, message.body, headers=headers_of(message)),
            )
        await self._do("cannot publish", self._until_read())

    async def tell(self, message: bytes) -> None:
        await self._do(
            "cannot publish", self._client.publish(self.service.control_address, message)
        )
        await self._do("cannot publish", self._until_read())

    async def hear(self) -> list[bytes]:
        return await self._control.take()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(*FAILURES):
                await client.close()

    def _message(self, outgoing: Outgoing) -> tuple[str, Message]:
        service = self.service
        message = BINDING.write(outgoing.event, service.encoding)
        if len(message.body) > self._client.max_payload:
            raise RefusedError(
                f"service `{service.name}`: event `{outgoing.event.id}` has {len(message.body)}"
                f" bytes, and the server takes {self._client.max_payload}"
            )
        return service.transit_address if outgoing.in_transit else service.address, message

    async def _until_read(self) -> None:
        """Return once the server has taken all that was sent before.

        An answer to a ping tells that, but the driver writes a ping ahead of what still waits to
        be written; by the answer, what waited has been written, and a second ping comes behind it.
        What the server does not allow it refuses before it answers.
        """
        for _ in range(2):
            await self._client.flush(SECONDS_TO_ANSWER)
        if self._refusal is not None:
            raise self._refusal
        if not self._client.is_connected:
            raise errors.ConnectionClosedError

    async def _hear(self, message: Any) -> None:
        self._control.put(message.data)

    async def _receive(self, message: Any) -> None:
        in_transit = message.subject == self.service.transit_address
        await self._events.put_when_free(incoming(message, None, in_transit))

    async def _note(self, error: Exception) -> None:
        self._noted = error
        if isinstance(error, errors.SlowConsumerError):
            self._fail(f"messages are lost: {error}")
        elif _REFUSED in str(error).lower():
            self._refusal = error
            self._fail(str(error))

    async def _closed(self) -> None:
        self._fail("the connection is lost")

    def _fail(self, reason: str) -> None:
        lost = LinkError(f"service `{self.service.name}`: {reason}")
        self._events.fail(lost)
        self._control.fail(lost)

    async def _do(self, doing: str, call: Awaitable[Any]) -> Any:
        try:
            return await call
        except FAILURES as error:
            raise broken(self.service, doing, error) from None


def incoming(message: Any, token: Any, in_transit: bool) -> Incoming:
    headers = {name.lower(): value for name, value in (message.headers or {}).items()}
    content_type = headers.pop(CONTENT_TYPE, "")
    return incoming_of(
        BINDING.read, Message(message.data, content_type, headers), token, in_transit
    )


def headers_of(message: Message) -> dict[str, str] | None:
    return {**message.headers, CONTENT_TYPE: message.content_type} if message.headers else None

"""Events to and from NATS.

Core NATS keeps nothing: a client that is away misses what is sent. JetStream keeps messages in
streams, which the adapter makes where there are none; the gateway has a durable consumer in each,
and every event is published under an identity, so that the server itself refuses one that it has.
Control messages go over core NATS in both kinds.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Awaitable, Sequence
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

import msgspec

from ensue.errors import LinkError, UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import (
    Adapter,
    Capabilities,
    Incoming,
    Outgoing,
    ProtectedOptions,
    RefusedError,
    Service,
    Start,
    broken,
    driver,
    incoming_of,
)
from ensue.federation.adapters.inbox import MOST_RECALLED_BYTES, ControlInbox, Inbox
from ensue.federation.ending import end
from ensue.federation.messages.attributes import identity_of
from ensue.federation.messages.bindings import Binding, Message
from ensue.subscriptions import Filter

nats: Any = driver("nats", "nats")
errors: Any = driver("nats.errors", "nats")
stream_api: Any = driver("nats.js.api", "nats")
stream_errors: Any = driver("nats.js.errors", "nats")

BINDING = Binding("ce-")
CONTENT_TYPE = "content-type"
TRANSIT_KEPT = 100_000
RECALLED = 2000
_SCHEMES = ("nats", "tls", "ws", "wss")
_SECONDS_TO_CONNECT = 10
_SECONDS_TO_ANSWER = 10
_SECONDS_TO_ACKNOWLEDGE = 5.0
_PULLED, _PULLED_BYTES = 500, 256 * 1024 * 1024
"""What is asked for at once: messages, and the bytes that they may have at most."""
_FAILURES = (errors.Error, OSError, asyncio.TimeoutError)
_REFUSED = "permissions violation"


class NatsOptions(ProtectedOptions, frozen=True, kw_only=True):
    """`token` and `credentials` are ways in which a NATS client authenticates itself."""

    token: str | None = None
    credentials: str | None = None


class JetStreamOptions(NatsOptions, frozen=True, kw_only=True):
    """`stream` is the stream of `address`; the adapter makes one where there is none."""

    stream: str | None = None
    start: Start = "latest"
    replicas: Annotated[int, msgspec.Meta(ge=1)] = 1


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
        except (*_FAILURES, TimeoutError) as error:
            await self.close()
            # The driver tells the reason apart, and then only that no server is left.
            raise broken(service, "cannot connect", self._noted or error) from None

    async def listen(self, wanted: Sequence[Filter]) -> None:
        if self._subscriptions:
            return
        for address in (self.service.address, self.service.transit_address):
            made = self._client.subscribe(address, cb=self._receive, pending_bytes_limit=1 << 28)
            self._subscriptions.append(await self._do("cannot subscribe", made))
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
                self._client.publish(address, message.body, headers=_headers(message)),
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
            with contextlib.suppress(*_FAILURES):
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
            await self._client.flush(_SECONDS_TO_ANSWER)
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
        except _FAILURES as error:
            raise broken(self.service, doing, error) from None


class JetStreamAdapter(NatsAdapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="nats-jetstream",
        driver="nats-py",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=True,
        recalls=True,
        pushes_down="the subject of `address`",
        protection=("TLS", "user and password", "client certificate", "token", "credentials file"),
    )
    options_type = JetStreamOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._settings: JetStreamOptions = service.options or JetStreamOptions()
        self._jetstream: Any = None
        self._streams: dict[str, str] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._durable = _name(f"ensue {service.gateway} {service.name}")

    async def connect(self) -> None:
        await super().connect()
        self._jetstream = self._client.jetstream(timeout=_SECONDS_TO_ANSWER)
        service = self.service
        try:
            self._streams = {
                service.address: await self._stream(service.address, self._settings.stream, None),
                service.transit_address: await self._stream(
                    service.transit_address, None, TRANSIT_KEPT
                ),
            }
        except _FAILURES as error:
            await self.close()
            raise broken(service, "cannot connect", error) from None

    async def listen(self, wanted: Sequence[Filter]) -> None:
        if self._readers:
            return
        for address, stream in self._streams.items():
            is_first = self._settings.start == "earliest" and address == self.service.address
            policy = stream_api.DeliverPolicy.ALL if is_first else stream_api.DeliverPolicy.NEW
            config = stream_api.ConsumerConfig(
                durable_name=self._durable,
                deliver_policy=policy,
                ack_policy=stream_api.AckPolicy.EXPLICIT,
                ack_wait=_SECONDS_TO_ACKNOWLEDGE,
                max_ack_pending=20_000,
                filter_subject=address,
            )
            await self._do("cannot subscribe", self._ensure_consumer(stream, config))
            subscription = await self._do(
                "cannot subscribe",
                self._jetstream.pull_subscribe_bind(self._durable, stream=stream),
            )
            in_transit = address == self.service.transit_address
            self._readers.append(asyncio.create_task(self._pull(subscription, in_transit)))

    async def unlisten(self) -> None:
        await self._end_readers()
        for stream in self._streams.values():
            with contextlib.suppress(stream_errors.NotFoundError):
                await self._do(
                    "cannot end", self._jetstream.delete_consumer(stream, self._durable), quiet=True
                )
        self._events = Inbox()

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        for each in tokens:
            await self._do("cannot acknowledge", each.ack())

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        messages = [(*self._message(each), f"{identity_of(each.event):016x}") for each in outgoing]
        calls = [
            self._jetstream.publish(
                address,
                message.body,
                headers={**(_headers(message) or {}), "Nats-Msg-Id": identity},
            )
            for address, message, identity in messages
        ]
        await self._do("cannot publish", asyncio.gather(*calls))

    async def close(self) -> None:
        await self._end_readers()
        await super().close()

    async def recall(self) -> list[Event]:
        found: deque[Incoming] = deque()
        size = 0
        for address, stream in self._streams.items():
            info = await self._do("cannot read", self._jetstream.stream_info(stream))
            last, count = info.state.last_seq, min(info.state.messages, RECALLED)
            if not count:
                continue
            config = stream_api.ConsumerConfig(
                deliver_policy=stream_api.DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=max(last - RECALLED + 1, info.state.first_seq),
                ack_policy=stream_api.AckPolicy.NONE,
                filter_subject=address,
                inactive_threshold=30.0,
            )
            made = await self._do("cannot read", self._jetstream.add_consumer(stream, config))
            reader = await self._do(
                "cannot read", self._jetstream.pull_subscribe_bind(made.name, stream=stream)
            )
            waiting = made.num_pending
            with contextlib.suppress(*_FAILURES):
                while waiting > 0:
                    messages = await reader.fetch(min(waiting, self._pulled), timeout=2)
                    waiting -= len(messages)
                    read = [incoming(each, None, False) for each in messages]
                    found.extend(each for each in read if each.event is not None)
                    size += sum(each.size for each in read)
                    while size > MOST_RECALLED_BYTES:
                        size -= found.popleft().size
            with contextlib.suppress(*_FAILURES):
                await reader.unsubscribe()
        return [each.event for each in found if each.event is not None]

    async def lag(self) -> int | None:
        waiting = 0
        for stream in self._streams.values():
            try:
                info = await self._jetstream.consumer_info(stream, self._durable)
            except _FAILURES:
                return None
            waiting += int(info.num_pending) + int(info.num_ack_pending)
        return waiting

    async def _stream(self, address: str, name: str | None, most: int | None) -> str:
        """The stream of an address: the one that has it, or a new one."""
        with contextlib.suppress(stream_errors.NotFoundError):
            found: str = await self._jetstream.find_stream_name_by_subject(address)
            return found
        made = name or _name(address)
        config = stream_api.StreamConfig(
            name=made,
            subjects=[address],
            num_replicas=self._settings.replicas,
            max_msgs=most if most is not None else -1,
        )
        await self._jetstream.add_stream(config)
        return made

    async def _ensure_consumer(self, stream: str, config: Any) -> None:
        try:
            await self._jetstream.consumer_info(stream, self._durable)
        except stream_errors.NotFoundError:
            await self._jetstream.add_consumer(stream, config)

    @property
    def _pulled(self) -> int:
        return max(1, min(_PULLED, _PULLED_BYTES // int(self._client.max_payload)))

    async def _pull(self, subscription: Any, in_transit: bool) -> None:
        try:
            while True:
                try:
                    messages = await subscription.fetch(self._pulled, timeout=5)
                except (TimeoutError, errors.TimeoutError):
                    continue
                for each in messages:
                    await self._events.put_when_free(incoming(each, each, in_transit))
        except _FAILURES as error:
            self._fail(f"cannot read: {error}")

    async def _end_readers(self) -> None:
        readers, self._readers = self._readers, []
        await end(readers)

    async def _do(self, doing: str, call: Awaitable[Any], quiet: bool = False) -> Any:
        try:
            return await call
        except stream_errors.NotFoundError as error:
            if quiet:
                raise
            raise broken(self.service, doing, error) from None
        except _FAILURES as error:
            raise broken(self.service, doing, error) from None


def incoming(message: Any, token: Any, in_transit: bool) -> Incoming:
    headers = {name.lower(): value for name, value in (message.headers or {}).items()}
    content_type = headers.pop(CONTENT_TYPE, "")
    return incoming_of(
        BINDING.read, Message(message.data, content_type, headers), token, in_transit
    )


def _headers(message: Message) -> dict[str, str] | None:
    return {**message.headers, CONTENT_TYPE: message.content_type} if message.headers else None


def _name(text: str) -> str:
    """A name that a stream or a consumer may have, told apart from those of similar texts."""
    mark = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', text)}_{mark}"

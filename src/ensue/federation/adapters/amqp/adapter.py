"""Events to and from an AMQP broker.

`address` is a queue: each event in it is for one reader, the gateway or another client. Where
`exchange` names a type, `address` is an exchange of that type instead, at which every client has a
queue of its own, the gateway too; several gateways at one service need that. What is missing is
declared. Publications are confirmed by the broker, and an event is acknowledged when the gateway
has passed it on. Events in transit and control messages have exchanges of their own.

The driver connects and declares; messages go straight to and from the channel under it (aiormq),
where many can be on their way, and one acknowledgement stands for all before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ensue.errors import LinkError, UsageError
from ensue.events.event import Event
from ensue.events.expiry import EXPIRY, expiry_of
from ensue.federation.adapters.base import (
    Adapter,
    Capabilities,
    Incoming,
    Outgoing,
    ProtectedOptions,
    Service,
    broken,
    driver,
    header_text,
    incoming_of,
)
from ensue.federation.adapters.inbox import ControlInbox, Inbox
from ensue.federation.messages.attributes import PRIORITY, priority_of
from ensue.federation.messages.bindings import Message, NameBinding
from ensue.subscriptions import Filter

aio_pika: Any = driver("aio_pika", "amqp")
exceptions: Any = driver("aio_pika.exceptions", "amqp")
aiormq: Any = driver("aiormq", "amqp")
yarl: Any = driver("yarl", "amqp")

BINDING = NameBinding("cloudevents_")
MOST_IN_FLIGHT = 20_000
"""Messages that the broker hands out before the first of them is acknowledged: what stands behind
them at the broker cannot be seen."""
_MARK = "ensue.mark"
"""The type of a message of the adapter to its own queue."""
_SECONDS_TO_CONNECT = 10
_PERSISTENT = 2
_LONGEST_SHORT_TEXT = 255
"""Bytes of a property at most; a longer id stands in the body or in the headers alone."""
_FAILURES = (exceptions.AMQPError, OSError, asyncio.TimeoutError, RuntimeError)


class AmqpOptions(ProtectedOptions, frozen=True, kw_only=True):
    """`exchange` is the type of the exchange, if there is one; `routing` the key to send with."""

    exchange: str | None = None
    routing: str = ""


class AmqpAdapter(Adapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="amqp",
        driver="aio-pika",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=True,
        recalls=False,
        pushes_down="the queue or exchange of `address`",
        sees_ahead=True,
        applies=(PRIORITY, EXPIRY),
        protection=("TLS", "user and password", "client certificate"),
    )
    options_type = AmqpOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._options: AmqpOptions = service.options or AmqpOptions()
        self._connection: Any = None
        self._sending: Any = None
        self._receiving: Any = None
        self._exchanges: dict[str, Any] = {}
        self._consumers: list[tuple[Any, str]] = []
        self._marks: dict[str, asyncio.Event] = {}
        self._events: Inbox[Incoming] = Inbox()
        self._control = ControlInbox()

    async def connect(self) -> None:
        service = self.service
        if urlsplit(service.url).scheme not in ("amqp", "amqps"):
            raise UsageError(
                f"service `{service.name}`: its address is to begin with `amqp://` or `amqps://`"
            )
        self._events, self._control = Inbox(), ControlInbox()
        self._consumers = []
        given: dict[str, Any] = {}
        if urlsplit(service.url).scheme == "amqps":
            given["ssl_context"] = self._options.tls_context()
        try:
            async with asyncio.timeout(_SECONDS_TO_CONNECT):
                self._connection = await aio_pika.connect(
                    self._place(),
                    client_properties={"connection_name": f"ensue-{service.gateway}"},
                    **given,
                )
                self._connection.close_callbacks.add(self._closed)
                self._sending = await self._connection.channel(publisher_confirms=True)
                self._receiving = await self._connection.channel()
                await self._receiving.set_qos(prefetch_count=MOST_IN_FLIGHT)
                self._exchanges = {
                    service.address: await self._own_exchange(),
                    service.transit_address: await self._exchange(
                        service.transit_address, "fanout"
                    ),
                    service.control_address: await self._exchange(
                        service.control_address, "fanout"
                    ),
                }
                heard = await self._receiving.declare_queue(exclusive=True, auto_delete=True)
                await heard.bind(service.control_address)
                await heard.consume(self._hear, no_ack=True)
        except (*_FAILURES, TimeoutError) as error:
            await self.close()
            raise broken(service, "cannot connect", error) from None

    async def listen(self, wanted: Sequence[Filter]) -> None:
        if self._consumers:
            return
        channel = await self._receiving.get_underlay_channel()
        channel.on_consumer_cancel_callbacks.add(self._cancelled)
        for address in (self.service.address, self.service.transit_address):
            queue = await self._do("cannot subscribe", self._queue(address))
            in_transit = address == self.service.transit_address

            async def receive(message: Any, in_transit: bool = in_transit) -> None:
                if message.type == _MARK:
                    await self._marked(message)
                    return
                # The driver cannot be told to wait, and the server counts no bytes.
                came = _incoming(message, in_transit)
                self._events.put_or_fail(came, self.service.name, "the rest comes again")

            consumer = await self._do("cannot subscribe", queue.consume(receive))
            self._consumers.append((queue, consumer))

    async def unlisten(self) -> None:
        consumers, self._consumers = self._consumers, []
        for queue, consumer in consumers:
            await self._do("cannot end", queue.cancel(consumer))
        channel = await self._receiving.get_underlay_channel()
        for each in self._events.drain():
            # Other readers of the queue are to have it; no later acknowledgement may cover it.
            await self._do("cannot end", channel.basic_nack(each.token, requeue=True))
        for address in (self.service.address, self.service.transit_address):
            if address != self.service.address or self._options.exchange is not None:
                name = self._queue_name(address)
                await self._do("cannot end", self._receiving.queue_delete(name))
        self._events = Inbox()

    async def receive(self) -> list[Incoming]:
        return await self._events.take()

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        channel = await self._receiving.get_underlay_channel()
        acknowledged = channel.basic_ack(tokens[-1], multiple=True, wait=False)
        await self._do("cannot acknowledge", acknowledged)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        channel = await self._sending.get_underlay_channel()
        confirmed = [channel.basic_publish(**self._message(each), wait=False) for each in outgoing]
        answers = await self._do("cannot publish", asyncio.gather(*confirmed))
        if any(not isinstance(each, aiormq.spec.Basic.Ack) for each in answers):
            # The broker also confirms what it drops for want of a queue.
            raise LinkError(f"service `{self.service.name}`: cannot publish: there is no queue")

    async def tell(self, message: bytes) -> None:
        exchange = self._exchanges[self.service.control_address]
        await self._do("cannot publish", exchange.publish(aio_pika.Message(message), ""))

    async def hear(self) -> list[bytes]:
        return await self._control.take()

    async def ahead(self) -> AsyncIterator[Sequence[Event]]:
        """A message to one's own queue comes behind everything that is in it. In a queue that
        others read too there can be none, and nothing that only this gateway is to have."""
        own = [self.service.transit_address]
        if self._options.exchange is not None:
            own.append(self.service.address)
        for address in own:
            mark = f"{id(self)} {len(self._marks)} {time.monotonic_ns()}"
            come = self._marks[mark] = asyncio.Event()
            message = aio_pika.Message(mark.encode(), type=_MARK)
            try:
                sent = self._sending.default_exchange.publish(message, self._queue_name(address))
                await self._do("cannot look ahead", sent)
                await come.wait()
            finally:
                del self._marks[mark]
        if self._events.is_failed:
            raise LinkError(f"service `{self.service.name}`: the connection is lost")
        yield [each.event for each in self._events.waiting() if each.event is not None]

    async def _marked(self, message: Any) -> None:
        """A mark has come; that of an earlier connection is only put away."""
        if come := self._marks.get(message.body.decode("utf-8", "replace")):
            come.set()
        with contextlib.suppress(*_FAILURES):
            await message.ack()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*_FAILURES):
                await connection.close()

    async def lag(self) -> int | None:
        waiting = 0
        for address in (self.service.address, self.service.transit_address):
            if not self._consumers:
                return None
            name = self._queue_name(address)
            if address == self.service.address and self._options.exchange is None:
                name = address
            found = self._receiving.declare_queue(name, passive=True)
            queue = await self._do("cannot ask", found)
            waiting += queue.declaration_result.message_count
        return waiting + len(self._events)

    def _place(self) -> Any:
        """The address, with the credentials of the options where they are given."""
        place, options = yarl.URL(self.service.url), self._options
        if options.user is not None:
            place = place.with_user(options.user)
        return place if options.password is None else place.with_password(options.password)

    async def _own_exchange(self) -> Any:
        if self._options.exchange is not None:
            return await self._exchange(self.service.address, self._options.exchange)
        await self._own_queue()
        return self._sending.default_exchange

    async def _own_queue(self) -> Any:
        """The queue that `address` names, as it is; a durable one where there is none."""
        trial = await self._connection.channel()
        try:
            await trial.declare_queue(self.service.address, passive=True)
        except exceptions.ChannelNotFoundEntity:
            return await self._receiving.declare_queue(self.service.address, durable=True)
        await trial.close()
        return await self._receiving.get_queue(self.service.address, ensure=False)

    async def _exchange(self, address: str, kind: str) -> Any:
        is_control = address == self.service.control_address
        return await self._sending.declare_exchange(address, kind, durable=not is_control)

    async def _queue(self, address: str) -> Any:
        if address == self.service.address and self._options.exchange is None:
            return await self._own_queue()
        queue = await self._receiving.declare_queue(self._queue_name(address), durable=True)
        routing = "#" if self._options.exchange == "topic" else self._options.routing
        await queue.bind(address, routing)
        return queue

    def _queue_name(self, address: str) -> str:
        return f"ensue.{self.service.gateway}.{self.service.name}.{address}"

    def _message(self, outgoing: Outgoing) -> dict[str, Any]:
        event, service = outgoing.event, self.service
        message = BINDING.write(event, service.encoding)
        expiry = expiry_of(event)
        properties = aiormq.spec.Basic.Properties(
            content_type=message.content_type,
            headers=dict(message.headers) or None,
            delivery_mode=_PERSISTENT,
            priority=priority_of(event),
            message_id=event.id if len(event.id.encode()) <= _LONGEST_SHORT_TEXT else None,
        )
        if expiry is not None:
            properties.expiration = str(max(expiry // 1000 - int(time.time() * 1000), 1))
        address = service.transit_address if outgoing.in_transit else service.address
        exchange, routing = address, "" if outgoing.in_transit else self._options.routing
        if self._options.exchange is None and not outgoing.in_transit:
            exchange, routing = "", address
        return {
            "body": message.body,
            "exchange": exchange,
            "routing_key": routing,
            "properties": properties,
            "mandatory": not exchange,
        }

    async def _hear(self, message: Any) -> None:
        self._control.put(message.body)

    def _cancelled(self, _: Any) -> None:
        """The broker delivers no more of a queue, since the queue was deleted."""
        self._closed(None, RuntimeError("a queue of the gateway was deleted"))

    def _closed(self, _: Any, error: BaseException | None = None) -> None:
        reason = str(error) if error is not None else "it was closed"
        lost = LinkError(f"service `{self.service.name}`: the connection is lost: {reason}")
        self._events.fail(lost)
        self._control.fail(lost)
        for each in self._marks.values():
            each.set()

    async def _do(self, doing: str, call: Awaitable[Any]) -> Any:
        try:
            return await call
        except _FAILURES as error:
            raise broken(self.service, doing, error) from None


def _incoming(message: Any, in_transit: bool) -> Incoming:
    headers = {_header(name): header_text(value) for name, value in (message.headers or {}).items()}
    read = Message(message.body, message.content_type or "", headers)
    return incoming_of(BINDING.read, read, message.delivery_tag, in_transit)


def _header(name: str) -> str:
    """CloudEvents allows two ways to write the prefix."""
    return name.lower().replace("cloudevents:", "cloudevents_", 1)

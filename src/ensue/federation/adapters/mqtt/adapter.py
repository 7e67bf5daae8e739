"""Events to and from an MQTT 5 broker, with QoS 1 both ways and a session that outlives restarts.

The broker keeps what comes while the gateway is away, as long as `session` says. A message is
acknowledged to the broker only when the gateway has passed it on (`manual_ack` of the driver).
Attributes of binary events are user properties, as the MQTT binding of CloudEvents has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from ensue.errors import EventError, UsageError
from ensue.events.event import Event
from ensue.federation.adapters.base import (
    Adapter,
    Capabilities,
    Incoming,
    Outgoing,
    ProtectedOptions,
    Service,
    broken,
    driver,
)
from ensue.federation.adapters.inbox import Inbox
from ensue.federation.attributes import EXPIRY, expiry_of
from ensue.federation.bindings import Binding, Message
from ensue.subscriptions import Filter

aiomqtt: Any = driver("aiomqtt", "mqtt")
packettypes: Any = driver("paho.mqtt.packettypes", "mqtt")
properties: Any = driver("paho.mqtt.properties", "mqtt")

BINDING = Binding("")
SCHEMES = {"mqtt": 1883, "tcp": 1883, "mqtts": 8883, "ssl": 8883}
MOST_IN_FLIGHT = 1000
_SECONDS_TO_CONNECT = 10


class MqttOptions(ProtectedOptions, frozen=True, kw_only=True):
    """`session`: how many seconds the broker keeps messages for a gateway that is away."""

    qos: int = 1
    session: int = 86_400
    keepalive: int = 30


class MqttAdapter(Adapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="mqtt",
        driver="aiomqtt",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=True,
        recalls=False,
        pushes_down="the topic filter of `address`",
        applies=(EXPIRY,),
        protection=("TLS", "user and password", "client certificate"),
    )
    options_type = MqttOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._options: MqttOptions = service.options or MqttOptions()
        self._client: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._events: Inbox[Incoming] = Inbox()
        self._control: Inbox[bytes] = Inbox()

    async def connect(self) -> None:
        service, options = self.service, self._options
        place = urlsplit(service.url)
        if place.scheme not in SCHEMES or not place.hostname:
            raise UsageError(
                f"service `{service.name}`: `{place.scheme}://{place.hostname or ''}` is no address"
                " of an MQTT broker: give `mqtt://HOST:PORT`, or `mqtts://HOST:PORT` for TLS"
            )
        wishes = _properties("CONNECT")
        wishes.SessionExpiryInterval = options.session
        wishes.ReceiveMaximum = MOST_IN_FLIGHT
        self._client = aiomqtt.Client(
            place.hostname,
            place.port or SCHEMES[place.scheme],
            username=options.user or _decoded(place.username),
            password=options.password or _decoded(place.password),
            identifier=self._identifier(),
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=False,
            properties=wishes,
            keepalive=options.keepalive,
            tls_context=options.tls_context() if place.scheme in ("mqtts", "ssl") else None,
            timeout=_SECONDS_TO_CONNECT,
            max_inflight_messages=MOST_IN_FLIGHT,
            max_queued_outgoing_messages=0,
        )
        self._client.pending_calls_threshold = 1 << 30
        self._client._client.manual_ack_set(True)
        self._client._client._connect_timeout = float(_SECONDS_TO_CONNECT)
        self._events, self._control = Inbox(), Inbox()
        try:
            await self._client.__aenter__()
            self._reader = asyncio.create_task(self._read())
            await self._client.subscribe(service.control_address, qos=1)
        except (aiomqtt.MqttError, OSError) as error:
            await self.close()
            raise broken(service, "cannot connect", error) from None

    async def listen(self, wanted: Sequence[Filter]) -> None:
        topics = [(self.service.address, self._options.qos), (self.service.transit_address, 1)]
        await self._do("cannot subscribe", self._client.subscribe(topics))

    async def unlisten(self) -> None:
        topics = [self.service.address, self.service.transit_address]
        await self._do("cannot unsubscribe", self._client.unsubscribe(topics))

    async def receive(self) -> list[Incoming]:
        return await self._events.take()

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        for mid, qos in tokens:
            if qos:
                self._client._client.ack(mid, qos)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        calls = [self._publish_one(each) for each in outgoing]
        await self._do("cannot publish", asyncio.gather(*calls))

    async def tell(self, message: bytes) -> None:
        sent = self._client.publish(self.service.control_address, message, qos=1)
        await self._do("cannot publish", sent)

    async def hear(self) -> list[bytes]:
        return await self._control.take()

    async def close(self) -> None:
        reader, client = self._reader, self._client
        self._reader = self._client = None
        if client is not None:
            with contextlib.suppress(aiomqtt.MqttError, OSError):
                await client.__aexit__(None, None, None)
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _publish_one(self, outgoing: Outgoing) -> None:
        event, service = outgoing.event, self.service
        mode = "structured" if outgoing.in_transit else service.encoding
        message = BINDING.write(event, mode)
        given = _properties("PUBLISH")
        given.ContentType = message.content_type
        if message.headers:
            given.UserProperty = list(message.headers.items())
        if (expiry := expiry_of(event)) is not None:
            left = expiry // 1_000_000 - int(time.time())
            given.MessageExpiryInterval = min(max(left, 1), 0xFFFFFFFF)
        topic = service.transit_address if outgoing.in_transit else service.address
        qos = 1 if outgoing.in_transit else self._options.qos
        await self._client.publish(topic, message.body, qos=qos, properties=given)

    async def _read(self) -> None:
        service = self.service
        try:
            async for message in self._client.messages:
                topic = message.topic.value
                if topic == service.control_address:
                    self._control.put(bytes(message.payload))
                    self._client._client.ack(message.mid, message.qos)
                else:
                    self._events.put(self._incoming(message, topic == service.transit_address))
        except (aiomqtt.MqttError, OSError) as error:
            lost = broken(service, "the connection is lost", error)
            self._events.fail(lost)
            self._control.fail(lost)

    def _incoming(self, message: Any, in_transit: bool) -> Incoming:
        token = (message.mid, message.qos)
        headers = dict(getattr(message.properties, "UserProperty", ()))
        content_type = getattr(message.properties, "ContentType", "")
        try:
            event: Event = BINDING.read(Message(bytes(message.payload), content_type, headers))
        except EventError as error:
            return Incoming(None, token, in_transit, error.problems)
        return Incoming(event, token, in_transit)

    async def _do(self, doing: str, call: Any) -> None:
        try:
            await call
        except (aiomqtt.MqttError, OSError) as error:
            raise broken(self.service, doing, error) from None

    def _identifier(self) -> str:
        """The name of the session. Another address is another session, with messages of its own."""
        service = self.service
        place = f"{service.address}\n{service.control_address}"
        mark = hashlib.blake2b(place.encode(), digest_size=4).hexdigest()
        return f"ensue-{service.gateway}-{service.name}-{mark}"


def _properties(packet: str) -> Any:
    return properties.Properties(getattr(packettypes.PacketTypes, packet))


def _decoded(text: str | None) -> str | None:
    return None if text is None else unquote(text)

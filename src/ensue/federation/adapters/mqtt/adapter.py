"""Events to and from an MQTT 5 broker, with QoS 1 both ways and a session that outlives restarts.

The broker keeps what comes while the gateway is away, as long as `session` says. A message is
acknowledged to the broker only when the gateway has passed it on (`manual_ack` of the driver).
Attributes of binary events are user properties, as the MQTT binding of CloudEvents has them.

The driver connects, subscribes and runs the client under it (Paho); messages go straight to and
from that client, since a task and a future for each would halve the pace.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Annotated, Any, ClassVar
from urllib.parse import unquote, urlsplit

import msgspec

from ensue.errors import LinkError, UsageError
from ensue.events.event import Event
from ensue.events.expiry import EXPIRY, expiry_of
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
from ensue.federation.adapters.mqtt.buffering import BufferedSocket
from ensue.federation.messages.bindings import STRUCTURED_TYPE, Message, NameBinding
from ensue.subscriptions import Filter

aiomqtt: Any = driver("aiomqtt", "mqtt")
packettypes: Any = driver("paho.mqtt.packettypes", "mqtt")
properties: Any = driver("paho.mqtt.properties", "mqtt")

BINDING = NameBinding("")
SCHEMES = {"mqtt": 1883, "tcp": 1883, "mqtts": 8883, "ssl": 8883}
MOST_IN_FLIGHT = 1000
MOST_UNACKNOWLEDGED = 20_000
"""Messages that the broker hands out before the first of them is acknowledged: what stands behind
them at the broker cannot be seen."""
_SECONDS_TO_CONNECT = 10
_MOST_HEAD = 4096
"""Bytes of a packet besides its body, if topic and properties are not out of the ordinary."""


class MqttOptions(ProtectedOptions, frozen=True, kw_only=True):
    """`session`: how many seconds the broker keeps messages for a gateway that is away."""

    qos: Annotated[int, msgspec.Meta(ge=0, le=2)] = 1
    session: Annotated[int, msgspec.Meta(ge=0)] = 86_400
    keepalive: Annotated[int, msgspec.Meta(ge=1, le=65_535)] = 30


class MqttAdapter(Adapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="mqtt",
        driver="aiomqtt",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=True,
        recalls=False,
        pushes_down="the topic filter of `address`",
        sees_ahead=True,
        applies=(EXPIRY,),
        protection=("TLS", "user and password", "client certificate"),
    )
    options_type = MqttOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._options: MqttOptions = service.options or MqttOptions()
        self._client: Any = None
        self._unconfirmed: set[int] = set()
        self._confirmed = asyncio.Event()
        self._refusal = ""
        self._largest: int | None = None
        self._is_listening = False
        self._marks: dict[bytes, asyncio.Event] = {}
        self._numbers = count(1)
        self._events: Inbox[Incoming] = Inbox()
        self._control = ControlInbox()

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
        wishes.ReceiveMaximum = MOST_UNACKNOWLEDGED
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
        paho = self._client._client
        paho.manual_ack_set(True)
        paho.connect_timeout = float(_SECONDS_TO_CONNECT)
        paho.on_message = self._received
        paho.on_publish = self._published
        paho.on_log = self._logged
        paho.on_connect = self._limited
        self._events, self._control = Inbox(), ControlInbox()
        self._unconfirmed, self._refusal, self._is_listening = set(), "", False
        try:
            await self._client.__aenter__()
            # It would write a line for every message.
            paho.on_log = None
            paho._sock = BufferedSocket(paho._sock, asyncio.get_running_loop())
            self._client._disconnected.add_done_callback(self._lost)
            await self._subscribe([(service.control_address, 1)])
        except (aiomqtt.MqttError, OSError) as error:
            await self.close()
            raise broken(service, "cannot connect", error) from None

    async def listen(self, wanted: Sequence[Filter]) -> None:
        if self._is_listening:
            # To subscribe again would bring messages again that the broker retains.
            return
        topics = [(self.service.address, self._options.qos), (self.service.transit_address, 1)]
        await self._do("cannot subscribe", self._subscribe(topics))
        self._is_listening = True

    async def unlisten(self) -> None:
        topics = [self.service.address, self.service.transit_address]
        await self._do("cannot unsubscribe", self._client.unsubscribe(topics))
        self._is_listening = False

    async def receive(self) -> list[Incoming]:
        return await self._events.take()

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        for mid, qos in tokens:
            if qos:
                self._client._client.ack(mid, qos)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        # All are made before the first is sent: where one is too large, none is sent twice.
        for packet in [self._packet(each) for each in outgoing]:
            self._put(*packet)
        await self._all_confirmed()

    async def tell(self, message: bytes) -> None:
        self._put(self.service.control_address, message, 1, None)
        await self._all_confirmed()

    async def hear(self) -> list[bytes]:
        return await self._control.take()

    async def announce(self, offered: Filter) -> bool:
        """A retained message: who subscribes to `CONTROL/announced/#` has all that stands."""
        await self._retain(offered, msgspec.json.encode({"where": str(offered)}))
        return True

    async def unannounce(self, offered: Filter) -> None:
        # A retained message without content ends the one before it.
        await self._retain(offered, b"")

    async def _retain(self, offered: Filter, body: bytes) -> None:
        mark = hashlib.blake2b(str(offered).encode(), digest_size=8).hexdigest()
        topic = f"{self.service.control_address}/announced/{mark}"
        self._put(topic, body, 1, None, is_kept=True)
        await self._all_confirmed()

    async def ahead(self) -> AsyncIterator[Sequence[Event]]:
        """A message to oneself comes behind everything that the broker had for this session."""
        mark = _MARK + f"{self._identifier()} {next(self._numbers)}".encode()
        come = self._marks[mark] = asyncio.Event()
        try:
            self._put(self.service.control_address, mark, 1, None)
            await come.wait()
        finally:
            del self._marks[mark]
        if self._events.is_failed:
            raise LinkError(f"service `{self.service.name}`: the connection is lost")
        yield [each.event for each in self._events.waiting() if each.event is not None]

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        if not self._events.is_failed:
            # An answer tells that the broker has read all acknowledgements; the next connection of
            # this name could otherwise overtake them.
            with contextlib.suppress(aiomqtt.MqttError, OSError, TimeoutError):
                await client.unsubscribe(f"{self.service.control_address}/nobody", timeout=2)
        with contextlib.suppress(aiomqtt.MqttError, OSError):
            await client.__aexit__(None, None, None)

    def _packet(self, outgoing: Outgoing) -> tuple[str, bytes, int, Any]:
        event, service = outgoing.event, self.service
        message = BINDING.write(event, "structured" if outgoing.in_transit else service.encoding)
        expiry = expiry_of(event)
        given = _STRUCTURED
        if message.headers or expiry is not None or message.content_type != STRUCTURED_TYPE:
            given = _properties("PUBLISH")
            given.ContentType = message.content_type
            if message.headers:
                given.UserProperty = list(message.headers.items())
            if expiry is not None:
                left = expiry // 1_000_000 - int(time.time())
                given.MessageExpiryInterval = min(max(left, 1), 0xFFFFFFFF)
        topic = service.transit_address if outgoing.in_transit else service.address
        if self._largest is not None and len(message.body) + _MOST_HEAD > self._largest:
            raise RefusedError(
                f"service `{service.name}`: event `{event.id}` has {len(message.body)} bytes, and"
                f" the broker takes packets of {self._largest}"
            )
        return topic, message.body, 1 if outgoing.in_transit else self._options.qos, given

    def _put(self, topic: str, body: bytes, qos: int, given: Any, is_kept: bool = False) -> None:
        if self._client is None or self._events.is_failed:
            raise LinkError(f"service `{self.service.name}`: the connection is lost")
        info = self._client._client.publish(topic, body, qos, is_kept, given)
        if info.rc not in (0, _QUEUED):
            raise LinkError(f"service `{self.service.name}`: cannot publish: code {info.rc}")
        if not info.is_published():
            self._unconfirmed.add(info.mid)

    async def _all_confirmed(self) -> None:
        while self._unconfirmed:
            if self._events.is_failed:
                raise LinkError(f"service `{self.service.name}`: cannot publish: connection lost")
            self._confirmed.clear()
            await self._confirmed.wait()
        if self._refusal:
            raise LinkError(f"service `{self.service.name}`: cannot publish: {self._refusal}")

    async def _subscribe(self, topics: list[tuple[str, int]]) -> None:
        """Return once the broker has granted each subscription."""
        granted = await self._client.subscribe(topics)
        refused = [str(each) for each in granted if getattr(each, "is_failure", False)]
        if refused:
            raise aiomqtt.MqttError(f"the broker refuses: {', '.join(refused)}")

    # --- callbacks of the client, in the loop -------------------------------------------------

    def _limited(self, client: Any, data: Any, flags: Any, reason: Any, given: Any) -> None:
        """What a broker takes at a time: the client under the driver does not look at it."""
        most = getattr(given, "ReceiveMaximum", MOST_IN_FLIGHT)
        client._max_inflight_messages = min(most, MOST_IN_FLIGHT)
        self._largest = getattr(given, "MaximumPacketSize", None)
        self._client._on_connect(client, data, flags, reason, given)

    def _published(self, _client: Any, _data: Any, mid: int, reason: Any, *_: Any) -> None:
        if getattr(reason, "is_failure", False):
            self._refusal = f"the broker refuses an event: {reason}"
        self._unconfirmed.discard(mid)
        if not self._unconfirmed:
            self._confirmed.set()

    def _received(self, client: Any, _data: Any, message: Any) -> None:
        topic = message.topic
        if topic == self.service.control_address:
            payload = bytes(message.payload)
            if come := self._marks.get(payload):
                come.set()
            elif not payload.startswith(_MARK):
                self._control.put(payload)
            client.ack(message.mid, message.qos)
        else:
            incoming = self._incoming(message, topic == self.service.transit_address)
            self._events.put_or_fail(incoming, self.service.name)

    def _logged(self, _client: Any, _data: Any, level: int, text: str) -> None:
        """A connection that breaks before it stands is told in the log alone."""
        connected = self._client._connected if self._client is not None else None
        if level == _ERROR and connected is not None and not connected.done():
            connected.set_exception(aiomqtt.MqttError(text))

    def _lost(self, ended: asyncio.Future[None]) -> None:
        error = None if ended.cancelled() else ended.exception()
        lost = LinkError(f"service `{self.service.name}`: the connection is lost: {error or ''}")
        self._events.fail(lost)
        self._control.fail(lost)
        self._confirmed.set()
        for each in self._marks.values():
            each.set()

    def _incoming(self, message: Any, in_transit: bool) -> Incoming:
        token = (message.mid, message.qos)
        headers = dict(getattr(message.properties, "UserProperty", ()))
        content_type = getattr(message.properties, "ContentType", "")
        read = Message(bytes(message.payload), content_type, headers)
        return incoming_of(BINDING.read, read, token, in_transit)

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


_MARK = b"ensue mark "
"""How a message of a gateway to itself begins, at the address of control messages."""
_ERROR = 8
"""Paho's level of a message in its log that tells of an error."""

_QUEUED = 15
"""Paho's code for a message that waits until the broker takes more."""


def _properties(packet: str) -> Any:
    return properties.Properties(getattr(packettypes.PacketTypes, packet))


_STRUCTURED = _properties("PUBLISH")
_STRUCTURED.ContentType = STRUCTURED_TYPE


def _decoded(text: str | None) -> str | None:
    return None if text is None else unquote(text)

"""Events to and from Kafka.

The gateway reads every partition of its topics itself and keeps its offsets under a group of its
own, so that it begins at a known place the moment that it listens, and no rebalance moves it. An
event with a `partitionkey` is placed by it. The client library works in threads; its calls that
wait are made in threads of the adapter.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from ensue.errors import LinkError
from ensue.events.event import Event
from ensue.federation.adapters.base import (
    Adapter,
    Capabilities,
    Incoming,
    Outgoing,
    ProtectedOptions,
    Service,
    Start,
    broken,
    driver,
    header_text,
    incoming_of,
)
from ensue.federation.adapters.inbox import Inbox
from ensue.federation.adapters.kafka.producing import Producing
from ensue.federation.adapters.kafka.reading import (
    SECONDS_TO_ANSWER,
    consumed,
    ends_of,
    latest,
)
from ensue.federation.messages.attributes import KEY
from ensue.federation.messages.bindings import Message, NameBinding
from ensue.subscriptions import Filter

kafka: Any = driver("confluent_kafka", "kafka")
admin: Any = driver("confluent_kafka.admin", "kafka")

BINDING = NameBinding("ce_")
CONTENT_TYPE = "content-type"

T = TypeVar("T")


class KafkaOptions(ProtectedOptions, frozen=True, kw_only=True):
    """`settings` go to the client library as they are; `partitions` is for topics it must make."""

    mechanism: str = "PLAIN"
    start: Start = "latest"
    partitions: Annotated[int, msgspec.Meta(ge=1)] = 1
    settings: dict[str, str] = msgspec.field(default_factory=dict)


class KafkaAdapter(Adapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="kafka",
        driver="confluent-kafka",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=True,
        recalls=True,
        pushes_down="nothing",
        sees_ahead=True,
        applies=(KEY,),
        protection=("TLS", "user and password (SASL)", "client certificate"),
    )
    options_type = KafkaOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._options: KafkaOptions = service.options or KafkaOptions()
        self._threads = ThreadPoolExecutor(5, f"kafka {service.name}")
        self._producing: Producing | None = None
        self._consumer: Any = None
        self._listener: Any = None
        self._is_closed = False
        self._is_listening = asyncio.Event()
        self._ahead: dict[tuple[str, int], int] = {}
        """The first offset of each partition that has not been handed out."""
        self._trouble: Inbox[None] = Inbox()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reason: Any = None
        """What the library has told last of its connections."""

    async def connect(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await self._call(self._connect)
        except kafka.KafkaException as error:
            await self.close()
            raise self._broken("cannot connect", error) from None
        except ValueError as error:
            raise broken(self.service, "cannot connect", error) from None

    async def listen(self, wanted: Sequence[Filter]) -> None:
        if not self._is_listening.is_set():
            await self._do("cannot read", self._assign)
            self._is_listening.set()

    async def unlisten(self) -> None:
        self._is_listening.clear()
        await self._do("cannot end", self._forget)

    async def receive(self) -> list[Incoming]:
        while True:
            await self._is_listening.wait()
            found = await self._do("cannot read", self._consume, self._consumer)
            if found and self._is_listening.is_set():
                for each in found:
                    self._ahead[each.topic(), each.partition()] = each.offset() + 1
                return [self._incoming(each) for each in found]
            if found:
                return []

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        latest: dict[tuple[str, int], int] = {}
        for topic, partition, offset in tokens:
            latest[topic, partition] = max(offset, latest.get((topic, partition), -1))
        offsets = [kafka.TopicPartition(*place, offset + 1) for place, offset in latest.items()]
        await self._do("cannot acknowledge", self._commit, offsets)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        records = [self._record(each) for each in outgoing]
        await self._do("cannot publish", self._produce, records)

    async def tell(self, message: bytes) -> None:
        record = {"topic": self.service.control_address, "value": message}
        await self._do("cannot publish", self._produce, [record])

    async def hear(self) -> list[bytes]:
        while True:
            found = await self._do("cannot read", self._consume, self._listener)
            if found:
                return [each.value() for each in found]

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._close)
        self._threads.shutdown(wait=False)

    async def recall(self) -> list[Event]:
        messages = await self._do("cannot read", self._latest)
        read = [self._incoming(each).event for each in messages]
        return [each for each in read if each is not None]

    async def ahead(self) -> AsyncIterator[Sequence[Event]]:
        messages = await self._do("cannot read", self._unread, dict(self._ahead))
        read = [self._incoming(each).event for each in messages]
        yield [each for each in read if each is not None]

    async def lag(self) -> int | None:
        return await self._do("cannot ask", self._lag) if self._is_listening.is_set() else None

    # --- in threads ---------------------------------------------------------------------------

    def _connect(self) -> None:
        settings = self._settings()
        service = self.service
        self._producing = Producing(settings, service.name)
        self._wait_for_server(self._producing.client)
        self._make_topics(settings)
        reading = {"enable.auto.commit": "false", "auto.offset.reset": "earliest"}
        self._consumer = kafka.Consumer(settings | reading | {"group.id": self._group})
        self._listener = kafka.Consumer(settings | reading | {"group.id": f"{self._group}.control"})
        self._listener.assign(ends_of(self._listener, [service.control_address]))

    def _wait_for_server(self, client: Any) -> None:
        """Raises what the server has against the credentials, or TLS against the server, at once:
        the client library would go on trying."""
        until = time.monotonic() + SECONDS_TO_ANSWER
        while True:
            try:
                client.list_topics(timeout=1.0)
            except kafka.KafkaException:
                # Only now the library calls `_note`.
                client.poll(0)
                reason = self._reason
                if reason is not None and (_is_refusal(reason) or time.monotonic() > until):
                    raise kafka.KafkaException(reason) from None
                if time.monotonic() > until:
                    raise
            else:
                return

    def _settings(self) -> dict[str, Any]:
        service, options = self.service, self._options
        place = urlsplit(service.url if "://" in service.url else f"kafka://{service.url}")
        servers = place.netloc.rpartition("@")[2]
        is_protected = place.scheme in ("kafkas", "kafka+ssl")
        user = options.user or (place.username and unquote(place.username))
        password = options.password or (place.password and unquote(place.password))
        found: dict[str, Any] = {
            "bootstrap.servers": servers,
            "client.id": f"ensue-{service.gateway}",
            "error_cb": self._note,
            "log_level": "0",
            "socket.connection.setup.timeout.ms": "5000",
            "allow.auto.create.topics": "true",
            "fetch.wait.max.ms": "50",
            "topic.metadata.refresh.interval.ms": "30000",
            "security.protocol": ("SASL_" if user else "")
            + ("SSL" if is_protected else "PLAINTEXT"),
        }
        if user:
            found |= {"sasl.username": user, "sasl.password": password or ""}
            found["sasl.mechanism"] = options.mechanism
        files = {
            "ssl.ca.location": options.authority,
            "ssl.certificate.location": options.certificate,
            "ssl.key.location": options.key,
        }
        if is_protected:
            found |= {name: value for name, value in files.items() if value is not None}
            if not options.verify:
                found["enable.ssl.certificate.verification"] = "false"
        return found | options.settings

    def _make_topics(self, settings: dict[str, Any]) -> None:
        service = self.service
        wanted = {
            service.address: self._options.partitions,
            service.transit_address: 1,
            service.control_address: 1,
        }
        client = admin.AdminClient(settings)
        known = client.list_topics(timeout=SECONDS_TO_ANSWER).topics
        missing = [
            admin.NewTopic(topic, partitions)
            for topic, partitions in wanted.items()
            if topic not in known
        ]
        if not missing:
            return
        for creation in client.create_topics(missing, request_timeout=SECONDS_TO_ANSWER).values():
            # Another gateway may have been quicker, or this one may not create topics.
            with contextlib.suppress(kafka.KafkaException):
                creation.result()

    def _assign(self) -> None:
        """Go on from what was acknowledged; begin at the end where nothing was."""
        service = self.service
        ends = ends_of(self._consumer, [service.address, service.transit_address])
        known = self._consumer.committed(
            [kafka.TopicPartition(each.topic, each.partition) for each in ends],
            timeout=SECONDS_TO_ANSWER,
        )
        begin = []
        for end, committed in zip(ends, known, strict=True):
            if committed.offset >= 0:
                begin.append(committed)
            elif self._options.start == "earliest" and end.topic == service.address:
                begin.append(kafka.TopicPartition(end.topic, end.partition, 0))
            else:
                begin.append(end)
        self._consumer.commit(offsets=begin, asynchronous=False)
        self._ahead = {(each.topic, each.partition): each.offset for each in begin}
        self._consumer.assign(begin)

    def _forget(self) -> None:
        self._consumer.unassign()
        client = admin.AdminClient(self._settings())
        for ended in client.delete_consumer_groups([self._group]).values():
            # A group that never committed is not there.
            with contextlib.suppress(kafka.KafkaException):
                ended.result(SECONDS_TO_ANSWER)

    def _consume(self, consumer: Any) -> list[Any]:
        return [] if self._is_closed else consumed(consumer)[0]

    def _commit(self, offsets: list[Any]) -> None:
        self._consumer.commit(offsets=offsets, asynchronous=False)

    def _produce(self, records: Sequence[dict[str, Any]]) -> None:
        if self._producing is not None:
            self._producing.produce(records)

    def _latest(self) -> list[Any]:
        service = self.service
        settings = self._settings() | {"group.id": f"{self._group}.recall"}
        return latest(settings, [service.address, service.transit_address])

    def _unread(self, begins: dict[tuple[str, int], int]) -> list[Any]:
        topics = sorted({topic for topic, _ in begins})
        settings = self._settings() | {"group.id": f"{self._group}.recall"}
        return latest(settings, topics, begins)

    def _lag(self) -> int:
        waiting = 0
        for each in self._consumer.position(self._consumer.assignment()):
            _, high = self._consumer.get_watermark_offsets(each, timeout=SECONDS_TO_ANSWER)
            waiting += max(0, high - each.offset) if each.offset >= 0 else 0
        return waiting

    def _close(self) -> None:
        if self._producing is not None:
            self._producing.close()
        for each in (self._consumer, self._listener):
            if each is not None:
                with contextlib.suppress(Exception):
                    each.close()
        self._consumer = self._listener = self._producing = None

    def _note(self, error: Any) -> None:
        """Called from a thread of the library."""
        if error.code() != kafka.KafkaError._ALL_BROKERS_DOWN:
            self._reason = error
        if error.code() == kafka.KafkaError._ALL_BROKERS_DOWN and self._loop is not None:
            lost = LinkError(f"service `{self.service.name}`: no server answers: {error.str()}")
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._trouble.fail, lost)

    # --- in the loop --------------------------------------------------------------------------

    @property
    def _group(self) -> str:
        return f"ensue.{self.service.gateway}.{self.service.name}"

    def _record(self, outgoing: Outgoing) -> dict[str, Any]:
        event, service = outgoing.event, self.service
        message = BINDING.write(event, service.encoding)
        headers = {**message.headers, CONTENT_TYPE: message.content_type}
        key = event.extensions.get(KEY)
        return {
            "topic": service.transit_address if outgoing.in_transit else service.address,
            "value": message.body,
            "key": None if key is None else str(key).encode(),
            "headers": [(name, value.encode()) for name, value in headers.items()],
        }

    def _incoming(self, record: Any) -> Incoming:
        token = record.topic(), record.partition(), record.offset()
        in_transit = token[0] == self.service.transit_address
        headers = {
            name.lower(): header_text(value or b"") for name, value in record.headers() or ()
        }
        content_type = headers.pop(CONTENT_TYPE, "")
        message = Message(record.value() or b"", content_type, headers)
        return incoming_of(BINDING.read, message, token, in_transit)

    def _broken(self, doing: str, error: Any) -> LinkError:
        told = broken(self.service, doing, RuntimeError(error.args[0].str()))
        told.confirmed = getattr(error, "confirmed", 0)
        return told

    async def _call(self, work: Callable[..., T], *given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *given)

    async def _do(self, doing: str, work: Callable[..., T], *given: Any) -> T:
        if self._trouble.is_failed:
            await self._trouble.take()
        try:
            return await self._call(work, *given)
        except kafka.KafkaException as error:
            raise self._broken(doing, error) from None
        except RuntimeError as error:
            raise broken(self.service, doing, error) from None


def _is_refusal(error: Any) -> bool:
    """Whether a server or TLS has refused the connection, so that trying again is of no use."""
    refusals = (kafka.KafkaError._AUTHENTICATION, kafka.KafkaError._SSL)
    return error.code() in refusals or "SSL alert" in error.str()

"""Events to and from JetStream, the part of NATS that keeps messages.

Messages are kept in streams, which the adapter makes where there are none. The gateway has a
durable consumer in each, and every event is published under an identity, so that the server itself
refuses one that it has. Control messages go over core NATS (`adapter`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Awaitable, Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from ensue.events.event import Event
from ensue.federation.adapters.base import (
    Capabilities,
    Incoming,
    Outgoing,
    Service,
    Start,
    broken,
    driver,
)
from ensue.federation.adapters.inbox import MOST_RECALLED_BYTES, Inbox
from ensue.federation.adapters.nats.adapter import (
    FAILURES,
    SECONDS_TO_ANSWER,
    NatsAdapter,
    NatsOptions,
    errors,
    headers_of,
    incoming,
)
from ensue.federation.ending import end
from ensue.federation.messages.attributes import identity_of
from ensue.subscriptions import Filter

stream_api: Any = driver("nats.js.api", "nats")
stream_errors: Any = driver("nats.js.errors", "nats")

TRANSIT_KEPT = 100_000
RECALLED = 2000
_SECONDS_TO_ACKNOWLEDGE = 5.0
_PULLED, _PULLED_BYTES = 500, 256 * 1024 * 1024
"""What is asked for at once: messages, and the bytes that they may have at most."""


class JetStreamOptions(NatsOptions, frozen=True, kw_only=True):
    """`stream` is the stream of `address`; the adapter makes one where there is none."""

    stream: str | None = None
    start: Start = "latest"
    replicas: Annotated[int, msgspec.Meta(ge=1)] = 1


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
        self._jetstream = self._client.jetstream(timeout=SECONDS_TO_ANSWER)
        service = self.service
        try:
            self._streams = {
                service.address: await self._stream(service.address, self._settings.stream, None),
                service.transit_address: await self._stream(
                    service.transit_address, None, TRANSIT_KEPT
                ),
            }
        except FAILURES as error:
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
                headers={**(headers_of(message) or {}), "Nats-Msg-Id": identity},
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
            consumer = await self._do("cannot read", self._jetstream.add_consumer(stream, config))
            reader = await self._do(
                "cannot read", self._jetstream.pull_subscribe_bind(consumer.name, stream=stream)
            )
            waiting = consumer.num_pending
            with contextlib.suppress(*FAILURES):
                while waiting > 0:
                    messages = await reader.fetch(min(waiting, self._pulled), timeout=2)
                    waiting -= len(messages)
                    read = [incoming(each, None, False) for each in messages]
                    found.extend(each for each in read if each.event is not None)
                    size += sum(each.size for each in read)
                    while size > MOST_RECALLED_BYTES:
                        size -= found.popleft().size
            with contextlib.suppress(*FAILURES):
                await reader.unsubscribe()
        return [each.event for each in found if each.event is not None]

    async def lag(self) -> int | None:
        waiting = 0
        for stream in self._streams.values():
            try:
                info = await self._jetstream.consumer_info(stream, self._durable)
            except FAILURES:
                return None
            waiting += int(info.num_pending) + int(info.num_ack_pending)
        return waiting

    async def _stream(self, address: str, name: str | None, most: int | None) -> str:
        """The stream of an address: the one that has it, or a new one."""
        with contextlib.suppress(stream_errors.NotFoundError):
            found: str = await self._jetstream.find_stream_name_by_subject(address)
            return found
        new_name = name or _name(address)
        config = stream_api.StreamConfig(
            name=new_name,
            subjects=[address],
            num_replicas=self._settings.replicas,
            max_msgs=most if most is not None else -1,
        )
        await self._jetstream.add_stream(config)
        return new_name

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
        except FAILURES as error:
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
        except FAILURES as error:
            raise broken(self.service, doing, error) from None


def _name(text: str) -> str:
    """A name that a stream or a consumer may have, told apart from those of similar texts."""
    mark = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', text)}_{mark}"

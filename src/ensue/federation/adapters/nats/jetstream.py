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
from collections.abc import AsyncIterator, Awaitable, Sequence
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
from ensue.federation.adapters.inbox import Inbox
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
from ensue.federation.limits import limits
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
        sees_ahead=True,
        protection=("TLS", "user and password", "client certificate", "token", "credentials file"),
    )
    options_type = JetStreamOptions

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._settings: JetStreamOptions = service.options or JetStreamOptions()
        self._jetstream: Any = None
        self._streams: dict[str, str] = {}
        self._readers: list[asyncio.Task[None]] = []
        durable = _name(f"ensue {service.gateway} {service.name}")
        self._durables = (durable, f"{durable}_again")
        self._read_by: dict[str, str] = {}
        """The durable consumer that reads each stream."""
        self._handed_out: dict[str, int] = {}
        """The number of the last message of each stream that was handed out, or was done with."""

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
            await self._do("cannot subscribe", self._ensure_consumer(stream, address))
            durable = self._read_by[stream]
            subscription = await self._do(
                "cannot subscribe", self._jetstream.pull_subscribe_bind(durable, stream=stream)
            )
            in_transit = address == self.service.transit_address
            self._readers.append(asyncio.create_task(self._pull(subscription, in_transit)))

    async def unlisten(self) -> None:
        await self._end_readers()
        for stream in self._streams.values():
            for durable in self._durables:
                with contextlib.suppress(stream_errors.NotFoundError):
                    await self._do(
                        "cannot end", self._jetstream.delete_consumer(stream, durable), quiet=True
                    )
        self._events = Inbox()

    async def receive(self) -> list[Incoming]:
        found = await super().receive()
        for each in found:
            place = each.token.metadata
            handed_out = self._handed_out.get(place.stream, 0)
            self._handed_out[place.stream] = max(handed_out, place.sequence.stream)
        return found

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
            state = (await self._do("cannot read", self._jetstream.stream_info(stream))).state
            first = max(state.last_seq - RECALLED + 1, state.first_seq)
            async for read in self._from(stream, address, first):
                found.extend(each for each in read if each.event is not None)
                size += sum(each.size for each in read)
                while size > limits().recalled_bytes:
                    size -= found.popleft().size
        return [each.event for each in found if each.event is not None]

    async def ahead(self) -> AsyncIterator[Sequence[Event]]:
        for address, stream in self._streams.items():
            async for read in self._from(stream, address, self._handed_out.get(stream, 0) + 1):
                yield [each.event for each in read if each.event is not None]

    async def _from(self, stream: str, address: str, first: int) -> AsyncIterator[list[Incoming]]:
        """What a stream has now from a number on, in portions. Raises `LinkError`."""
        state = (await self._do("cannot read", self._jetstream.stream_info(stream))).state
        if not state.messages or first > state.last_seq:
            return
        config = stream_api.ConsumerConfig(
            deliver_policy=stream_api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=max(first, state.first_seq, 1),
            ack_policy=stream_api.AckPolicy.NONE,
            filter_subject=address,
            inactive_threshold=30.0,
        )
        consumer = await self._do("cannot read", self._jetstream.add_consumer(stream, config))
        reader = await self._do(
            "cannot read", self._jetstream.pull_subscribe_bind(consumer.name, stream=stream)
        )
        waiting = consumer.num_pending
        try:
            while waiting > 0:
                most = min(waiting, self._pulled)
                messages = await self._do("cannot read", reader.fetch(most, timeout=5))
                waiting -= len(messages)
                yield [incoming(each, None, False) for each in messages]
        finally:
            with contextlib.suppress(*FAILURES):
                await reader.unsubscribe()

    async def lag(self) -> int | None:
        waiting = 0
        for stream in self._streams.values():
            try:
                info = await self._jetstream.consumer_info(stream, self._read_by[stream])
            except (*FAILURES, KeyError):
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

    async def _ensure_consumer(self, stream: str, address: str) -> None:
        """A durable consumer that hands out everything that was not acknowledged, in its order.

        What a consumer has handed out it keeps back for seconds, and lets newer messages overtake.
        So where something was handed out and not acknowledged, a second consumer begins there, and
        the first is deleted. Where the gateway was killed in between, both are there, and neither
        has handed out more than the other has acknowledged.
        """
        first = self._settings.start == "earliest" and address == self.service.address
        policy = stream_api.DeliverPolicy.ALL if first else stream_api.DeliverPolicy.NEW
        config = stream_api.ConsumerConfig(
            durable_name=self._durables[0],
            deliver_policy=policy,
            ack_policy=stream_api.AckPolicy.EXPLICIT,
            ack_wait=_SECONDS_TO_ACKNOWLEDGE,
            max_ack_pending=20_000,
            filter_subject=address,
        )
        there = [found async for found in self._consumers(stream)]
        if not there:
            made = await self._jetstream.add_consumer(stream, config)
            self._read_by[stream] = made.name
            self._handed_out[stream] = made.delivered.stream_seq
            return
        known = min(there, key=_done_with)
        using, done = known.name, _done_with(known)
        if known.num_ack_pending and done:
            (using,) = (each for each in self._durables if each != known.name)
            with contextlib.suppress(stream_errors.NotFoundError):
                await self._jetstream.delete_consumer(stream, using)
            config.durable_name = using
            config.deliver_policy = stream_api.DeliverPolicy.BY_START_SEQUENCE
            config.opt_start_seq = done + 1
            await self._jetstream.add_consumer(stream, config)
        for each in self._durables:
            if each != using:
                with contextlib.suppress(stream_errors.NotFoundError):
                    await self._jetstream.delete_consumer(stream, each)
        self._read_by[stream], self._handed_out[stream] = using, done

    async def _consumers(self, stream: str) -> AsyncIterator[Any]:
        for each in self._durables:
            with contextlib.suppress(stream_errors.NotFoundError):
                yield await self._jetstream.consumer_info(stream, each)

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


def _done_with(consumer: Any) -> int:
    """The message up to which a consumer has nothing more to hand out; 0 if it does not know: a
    server that was killed may not have written how far acknowledgements had come."""
    if not consumer.num_ack_pending:
        return int(consumer.delivered.stream_seq)
    begin = consumer.config.opt_start_seq or 1
    return max(int(consumer.ack_floor.stream_seq), begin - 1)


def _name(text: str) -> str:
    """A name that a stream or a consumer may have, told apart from those of similar texts."""
    mark = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', text)}_{mark}"

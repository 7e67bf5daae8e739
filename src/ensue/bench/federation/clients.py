"""Client libraries of brokers alone, each used in the way that its documentation shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from ensue.errors import UsageError
from ensue.federation.adapters.base import driver

SECONDS_TO_CROSS = 30.0
"""No measured work takes as long: something has gone wrong, and is told."""
_SECONDS_TO_START = 60.0
_AT_ONCE = 200
_numbers = count(1)

T = TypeVar("T")
Send = Callable[[list[bytes]], Awaitable[None]]


@dataclass
class Reception:
    """Events that are still to come, how many are asked for at a time, and what is told of them."""

    wanted: int
    most: int
    listening: asyncio.Event = field(default_factory=asyncio.Event)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def has_ended(self, count: int) -> bool:
        """Events have come; whether these were the last."""
        self.wanted -= count
        self.came.set()
        return self.wanted <= 0


class Client:
    """A client library as its documentation uses it."""

    def __init__(self, kind: str, url: str, address: str) -> None:
        self.kind, self.url, self.address = kind, url, address
        self._host, _, port = url.rpartition("/")[2].rpartition("@")[2].partition(":")
        self._port = int(port)

    async def alone(self, bodies: list[bytes]) -> float:
        """Seconds from the first publication to the last reception."""
        return await self.through(bodies, self)

    async def through(self, bodies: list[bytes], source: Client) -> float:
        """The same, with the publication at another service."""

        async def all_together(received: asyncio.Task[None], _: asyncio.Event) -> float:
            begin = time.perf_counter()
            async with source.sending() as send:
                await send(bodies)
            await received
            return time.perf_counter() - begin

        return await self._receiving(len(bodies), source, all_together)

    async def one_by_one(self, bodies: list[bytes], source: Client) -> list[float]:
        """Seconds that each event takes, with all connections open and nothing else on the way."""

        async def apart(received: asyncio.Task[None], came: asyncio.Event) -> list[float]:
            taken = []
            async with source.sending() as send:
                for each in bodies:
                    came.clear()
                    begin = time.perf_counter()
                    await send([each])
                    await came.wait()
                    taken.append(time.perf_counter() - begin)
            await received
            return taken

        return await self._receiving(len(bodies), source, apart, most=1)

    async def _receiving(
        self,
        wanted: int,
        source: Client,
        work: Callable[[asyncio.Task[None], asyncio.Event], Awaitable[T]],
        most: int = 500,
    ) -> T:
        """Do something while events are received here, `most` of them at a time."""
        reception = Reception(wanted, most)
        receive = getattr(self, f"_{self.kind}_in")
        received = asyncio.create_task(receive(reception))
        begun = asyncio.create_task(reception.listening.wait())
        try:
            async with asyncio.timeout(SECONDS_TO_CROSS):
                await asyncio.wait((received, begun), return_when=asyncio.FIRST_COMPLETED)
                if received.done():
                    received.result()
                return await work(received, reception.came)
        except TimeoutError:
            raise UsageError(
                f"{wanted} events from `{source.kind}` to `{self.kind}` have not arrived"
                f" within {SECONDS_TO_CROSS:g} s"
            ) from None
        finally:
            begun.cancel()
            received.cancel()

    def sending(self) -> AbstractAsyncContextManager[Send]:
        """A connection, and what publishes events over it."""
        made: AbstractAsyncContextManager[Send] = getattr(self, f"_{self.kind}_out")()
        return made

    @asynccontextmanager
    async def _mqtt_out(self) -> AsyncIterator[Send]:
        aiomqtt = driver("aiomqtt", "mqtt")
        async with aiomqtt.Client(
            self._host, self._port, max_inflight_messages=1000, timeout=SECONDS_TO_CROSS
        ) as client:
            client.pending_calls_threshold = 1 << 30

            async def send(bodies: list[bytes]) -> None:
                for part in _parts(bodies):
                    await asyncio.gather(*(client.publish(self.address, b, qos=1) for b in part))

            yield send

    async def _mqtt_in(self, reception: Reception) -> None:
        aiomqtt = driver("aiomqtt", "mqtt")
        async with aiomqtt.Client(self._host, self._port, timeout=SECONDS_TO_CROSS) as client:
            await client.subscribe(self.address, qos=1)
            reception.listening.set()
            async for _ in client.messages:
                if reception.has_ended(1):
                    return

    @asynccontextmanager
    async def _redis_out(self) -> AsyncIterator[Send]:
        redis = driver("redis.asyncio", "redis")
        async with redis.Redis.from_url(self.url) as client:

            async def send(bodies: list[bytes]) -> None:
                for part in _parts(bodies):
                    async with client.pipeline(transaction=False) as pipeline:
                        for body in part:
                            pipeline.xadd(self.address, {"event": body})
                        await pipeline.execute()

            yield send

    async def _redis_in(self, reception: Reception) -> None:
        redis = driver("redis.asyncio", "redis")
        async with redis.Redis.from_url(self.url) as client:
            last = await client.xrevrange(self.address, count=1)
            place = last[0][0] if last else "0"
            reception.listening.set()
            while reception.wanted > 0:
                answer = await client.xread({self.address: place}, reception.most, block=1000)
                pairs = answer.items() if isinstance(answer, dict) else answer
                for _, groups in pairs:
                    found = [each for group in groups for each in _entries(group)]
                    if found:
                        place = found[-1][0]
                        reception.has_ended(len(found))

    @asynccontextmanager
    async def _nats_out(self) -> AsyncIterator[Send]:
        client = await driver("nats", "nats").connect(self.url)

        async def send(bodies: list[bytes]) -> None:
            for body in bodies:
                await client.publish(self.address, body)
            await client.flush()

        yield send
        await client.close()

    async def _nats_in(self, reception: Reception) -> None:
        client = await driver("nats", "nats").connect(self.url)
        subscription = await client.subscribe(self.address, pending_msgs_limit=1 << 22)
        await client.flush()
        reception.listening.set()
        async for _ in subscription.messages:
            if reception.has_ended(1):
                break
        await client.close()

    @asynccontextmanager
    async def _amqp_out(self) -> AsyncIterator[Send]:
        aio_pika = driver("aio_pika", "amqp")
        async with await aio_pika.connect(self.url) as connection:
            channel = await connection.channel(publisher_confirms=True)
            exchange = await channel.declare_exchange(self.address, "fanout", durable=True)

            async def send(bodies: list[bytes]) -> None:
                for part in _parts(bodies):
                    messages = [
                        aio_pika.Message(
                            body, content_type="application/cloudevents+json", delivery_mode=2
                        )
                        for body in part
                    ]
                    await asyncio.gather(*(exchange.publish(each, "") for each in messages))

            yield send

    async def _amqp_in(self, reception: Reception) -> None:
        aio_pika = driver("aio_pika", "amqp")
        async with await aio_pika.connect(self.url) as connection:
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=1000)
            exchange = await channel.declare_exchange(self.address, "fanout", durable=True)
            queue = await channel.declare_queue(exclusive=True)
            await queue.bind(exchange)
            reception.listening.set()
            async with queue.iterator() as messages:
                async for message in messages:
                    await message.ack()
                    if reception.has_ended(1):
                        return

    @asynccontextmanager
    async def _kafka_out(self) -> AsyncIterator[Send]:
        producer = driver("confluent_kafka", "kafka").Producer({"bootstrap.servers": self._servers})
        headers = [("content-type", b"application/cloudevents+json")]

        def produce(bodies: list[bytes]) -> None:
            for body in bodies:
                producer.produce(self.address, body, headers=headers)
                producer.poll(0)
            producer.flush()

        yield lambda bodies: asyncio.to_thread(produce, bodies)

    async def _kafka_in(self, reception: Reception) -> None:
        await asyncio.to_thread(self._consume, reception, asyncio.get_running_loop())

    def _consume(self, reception: Reception, loop: asyncio.AbstractEventLoop) -> None:
        kafka = driver("confluent_kafka", "kafka")
        admin = driver("confluent_kafka.admin", "kafka")
        topic = admin.NewTopic(self.address, 1, 1)
        client = admin.AdminClient({"bootstrap.servers": self._servers})
        client.create_topics([topic])[self.address].exception(30)
        settings = {
            "bootstrap.servers": self._servers,
            "group.id": f"bench{next(_numbers)}",
            "log_level": 0,
        }
        consumer = kafka.Consumer(settings)
        place = kafka.TopicPartition(self.address, 0)
        until = time.monotonic() + _SECONDS_TO_START
        while place.offset < 0:
            # A topic that was just made has no leader for a moment.
            try:
                consumer.list_topics(self.address, timeout=30)
                place.offset = consumer.get_watermark_offsets(place, timeout=30)[1]
            except kafka.KafkaException:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        consumer.assign([place])
        loop.call_soon_threadsafe(reception.listening.set)
        wanted = reception.wanted
        while wanted > 0:
            found = len(consumer.consume(reception.most, timeout=0.1))
            wanted -= found
            if found:
                loop.call_soon_threadsafe(reception.has_ended, found)
        consumer.close()

    @property
    def _servers(self) -> str:
        return f"{self._host}:{self._port}"


def _parts(bodies: list[bytes]) -> Iterator[list[bytes]]:
    for begin in range(0, len(bodies), _AT_ONCE):
        yield bodies[begin : begin + _AT_ONCE]


def _entries(group: Any) -> list[Any]:
    return [group] if isinstance(group, tuple) else list(group)

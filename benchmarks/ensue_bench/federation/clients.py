"""Client libraries of brokers alone, each used in the way that its documentation shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ensue.errors import UsageError
from ensue.federation.adapters.base import driver

SECONDS_TO_CROSS = 30.0
"""No measured work takes as long: something has gone wrong, and is told."""
_SECONDS_TO_START = 60.0
_AT_ONCE = 200
_numbers = count(1)


@dataclass
class Traffic:
    """Messages that are sent in pieces, and when each piece was sent and each message came."""

    bodies: Sequence[bytes]
    at_once: int = _AT_ONCE
    pause: float = 0.0
    sent: list[float] = field(default_factory=list)
    came: list[float] = field(default_factory=list)

    async def pieces(self) -> AsyncIterator[Sequence[bytes]]:
        for begin in range(0, len(self.bodies), self.at_once):
            if begin and self.pause:
                await asyncio.sleep(self.pause)
            self.sent.append(time.perf_counter())
            yield self.bodies[begin : begin + self.at_once]

    def receive(self, messages: int = 1) -> bool:
        """Note that messages have come; whether more are to come."""
        self.came.extend([time.perf_counter()] * messages)
        return len(self.came) < len(self.bodies)

    @property
    def seconds(self) -> float:
        """From the first publication to the last reception."""
        return self.came[-1] - self.sent[0]

    @property
    def delays(self) -> list[float]:
        """The seconds that each of some messages, sent one by one, was under way."""
        return [came - sent for sent, came in zip(self.sent, self.came, strict=False)]


class Client:
    """A client library as its documentation uses it."""

    def __init__(self, kind: str, url: str, address: str) -> None:
        self.kind, self.url, self.address = kind, url, address
        self._host, _, port = url.rpartition("/")[2].rpartition("@")[2].partition(":")
        self._port = int(port)

    async def alone(self, traffic: Traffic) -> Traffic:
        """Send messages, and receive them at the same service."""
        return await self.through(traffic, self)

    async def through(self, traffic: Traffic, source: Client) -> Traffic:
        """Send messages at another service, and receive them at this one."""
        listening = asyncio.Event()
        received = asyncio.create_task(getattr(self, f"_{self.kind}_in")(traffic, listening))
        connected = asyncio.create_task(listening.wait())
        try:
            async with asyncio.timeout(SECONDS_TO_CROSS):
                await asyncio.wait((received, connected), return_when=asyncio.FIRST_COMPLETED)
                if connected.done():
                    await getattr(source, f"_{source.kind}_out")(traffic)
                await received
                return traffic
        except TimeoutError:
            raise UsageError(
                f"{len(traffic.bodies)} events from `{source.kind}` to `{self.kind}` have not"
                f" arrived within {SECONDS_TO_CROSS:g} s"
            ) from None
        finally:
            connected.cancel()
            received.cancel()

    async def _mqtt_out(self, traffic: Traffic) -> None:
        aiomqtt = driver("aiomqtt", "mqtt")
        async with aiomqtt.Client(
            self._host, self._port, max_inflight_messages=1000, timeout=SECONDS_TO_CROSS
        ) as client:
            client.pending_calls_threshold = 1 << 30
            async for piece in traffic.pieces():
                calls = [client.publish(self.address, body, qos=1) for body in piece]
                await asyncio.gather(*calls)

    async def _mqtt_in(self, traffic: Traffic, listening: asyncio.Event) -> None:
        aiomqtt = driver("aiomqtt", "mqtt")
        async with aiomqtt.Client(self._host, self._port, timeout=SECONDS_TO_CROSS) as client:
            await client.subscribe(self.address, qos=1)
            listening.set()
            async for _ in client.messages:
                if not traffic.receive():
                    return

    async def _redis_out(self, traffic: Traffic) -> None:
        redis = driver("redis.asyncio", "redis")
        async with redis.Redis.from_url(self.url) as client:
            async for piece in traffic.pieces():
                async with client.pipeline(transaction=False) as pipeline:
                    for body in piece:
                        pipeline.xadd(self.address, {"event": body})
                    await pipeline.execute()

    async def _redis_in(self, traffic: Traffic, listening: asyncio.Event) -> None:
        redis = driver("redis.asyncio", "redis")
        async with redis.Redis.from_url(self.url) as client:
            last = await client.xrevrange(self.address, count=1)
            place = last[0][0] if last else "0"
            listening.set()
            more = True
            while more:
                answer = await client.xread({self.address: place}, 500, block=1000)
                pairs = answer.items() if isinstance(answer, dict) else answer
                for _, groups in pairs:
                    found = [each for group in groups for each in _entries(group)]
                    if found:
                        place = found[-1][0]
                        more = traffic.receive(len(found))

    async def _nats_out(self, traffic: Traffic) -> None:
        client = await driver("nats", "nats").connect(self.url)
        async for piece in traffic.pieces():
            for body in piece:
                await client.publish(self.address, body)
        await client.flush()
        await client.close()

    async def _nats_in(self, traffic: Traffic, listening: asyncio.Event) -> None:
        client = await driver("nats", "nats").connect(self.url)
        subscription = await client.subscribe(self.address, pending_msgs_limit=1 << 22)
        await client.flush()
        listening.set()
        async for _ in subscription.messages:
            if not traffic.receive():
                break
        await client.close()

    async def _amqp_out(self, traffic: Traffic) -> None:
        aio_pika = driver("aio_pika", "amqp")
        async with await aio_pika.connect(self.url) as connection:
            channel = await connection.channel(publisher_confirms=True)
            exchange = await channel.declare_exchange(self.address, "fanout", durable=True)
            async for piece in traffic.pieces():
                messages = [
                    aio_pika.Message(
                        body, content_type="application/cloudevents+json", delivery_mode=2
                    )
                    for body in piece
                ]
                await asyncio.gather(*(exchange.publish(each, "") for each in messages))

    async def _amqp_in(self, traffic: Traffic, listening: asyncio.Event) -> None:
        aio_pika = driver("aio_pika", "amqp")
        async with await aio_pika.connect(self.url) as connection:
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=1000)
            exchange = await channel.declare_exchange(self.address, "fanout", durable=True)
            queue = await channel.declare_queue(exclusive=True)
            await queue.bind(exchange)
            listening.set()
            async with queue.iterator() as messages:
                async for message in messages:
                    await message.ack()
                    if not traffic.receive():
                        return

    async def _kafka_out(self, traffic: Traffic) -> None:
        producer = driver("confluent_kafka", "kafka").Producer({"bootstrap.servers": self._servers})
        headers = [("content-type", b"application/cloudevents+json")]

        def produce(piece: Sequence[bytes]) -> None:
            for body in piece:
                producer.produce(self.address, body, headers=headers)
                producer.poll(0)

        async for piece in traffic.pieces():
            await asyncio.to_thread(produce, piece)
        await asyncio.to_thread(producer.flush)

    async def _kafka_in(self, traffic: Traffic, listening: asyncio.Event) -> None:
        await asyncio.to_thread(self._consume, traffic, listening, asyncio.get_running_loop())

    def _consume(
        self, traffic: Traffic, listening: asyncio.Event, loop: asyncio.AbstractEventLoop
    ) -> None:
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
        loop.call_soon_threadsafe(listening.set)
        # A call waits until as many messages are there, or its time is over.
        most = min(500, traffic.at_once)
        while traffic.receive(len(consumer.consume(most, timeout=0.1))):
            pass
        consumer.close()

    @property
    def _servers(self) -> str:
        return f"{self._host}:{self._port}"


def _entries(group: Any) -> list[Any]:
    return [group] if isinstance(group, tuple) else list(group)

"""Gateways: their pace beside the client libraries alone, what a hop adds, and what crosses a link.

A client library alone publishes events at a service and receives them there, each in the way that
its documentation shows. With a gateway, they are published by that library at one service and
received by the other's at another, and `ensue serve` runs the gateway, a process of its own. Both
are measured in turns, so that only their ratio says something. Brokers that are not installed are
left out.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Event as Flag
from threading import Thread
from typing import Any

from ensue.bench import brokers
from ensue.bench.effort import Effort
from ensue.bench.report import Curve, Figure, Table, cost, rate
from ensue.bench.timing import Work, rates, ratios, side_by_side
from ensue.errors import UsageError
from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.federation.adapters.base import Outgoing, driver
from ensue.federation.adapters.memory.hub import hub
from ensue.federation.configuration import read_settings
from ensue.federation.gateway import Gateway
from ensue.federation.mapping import compiled, interpreted
from ensue.federation.placement import Simulation, Sites, place
from ensue.library import parse

AIM = 0.5
TYPES = ("Near", "Far", "Out")
_SECONDS_TO_START = 60.0
_SECONDS_TO_CROSS = 60.0
"""No measured work takes as long: something has gone wrong, and is told."""
_numbers = count(1)


def measure(effort: Effort) -> Iterator[Figure | Curve | Table]:
    yield from _mappings(effort)
    yield _crossing(effort)
    yield from _placing(effort)
    there = [kind for kind in brokers.PROGRAMS if brokers.found(kind)]
    if len(there) < 2:
        raise UsageError(
            "gateways are measured between brokers, and fewer than two are installed:"
            " tests/servers/install.sh brings mosquitto, nats-server, redis-server and"
            " rabbitmq-server"
        )
    with brokers.running(there) as addresses:
        yield from _paces(addresses, effort)


# --- the client libraries alone --------------------------------------------------------------


class Client:
    """A client library as its documentation uses it; `receive` returns when all are there."""

    def __init__(self, kind: str, url: str, address: str) -> None:
        self.kind, self.url, self.address = kind, url, address
        self._host, _, port = url.rpartition("/")[2].rpartition("@")[2].partition(":")
        self._port = int(port)

    async def alone(self, bodies: list[bytes]) -> float:
        """Seconds from the first publication to the last reception."""
        return await self.through(bodies, self)

    async def through(self, bodies: list[bytes], source: Client) -> float:
        """The same, with the publication at another service."""
        listening = asyncio.Event()
        received = asyncio.create_task(getattr(self, f"_{self.kind}_in")(len(bodies), listening))
        begun = asyncio.create_task(listening.wait())
        try:
            async with asyncio.timeout(_SECONDS_TO_CROSS):
                await asyncio.wait((received, begun), return_when=asyncio.FIRST_COMPLETED)
                begin = time.perf_counter()
                if begun.done():
                    await getattr(source, f"_{source.kind}_out")(bodies)
                await received
                return time.perf_counter() - begin
        except TimeoutError:
            raise UsageError(
                f"{len(bodies)} events from `{source.kind}` to `{self.kind}` have not arrived"
                f" within {_SECONDS_TO_CROSS:g} s"
            ) from None
        finally:
            begun.cancel()
            received.cancel()

    async def _mqtt_out(self, bodies: list[bytes]) -> None:
        aiomqtt = driver("aiomqtt", "mqtt")
        async with aiomqtt.Client(
            self._host, self._port, max_inflight_messages=1000, timeout=_SECONDS_TO_CROSS
        ) as client:
            client.pending_calls_threshold = 1 << 30
            for begin in range(0, len(bodies), 200):
                calls = [
                    client.publish(self.address, b, qos=1) for b in bodies[begin : begin + 200]
                ]
                await asyncio.gather(*calls)

    async def _mqtt_in(self, wanted: int, listening: asyncio.Event) -> None:
        aiomqtt = driver("aiomqtt", "mqtt")
        async with aiomqtt.Client(self._host, self._port, timeout=_SECONDS_TO_CROSS) as client:
            await client.subscribe(self.address, qos=1)
            listening.set()
            async for _ in client.messages:
                wanted -= 1
                if not wanted:
                    return

    async def _redis_out(self, bodies: list[bytes]) -> None:
        redis = driver("redis.asyncio", "redis")
        async with redis.Redis.from_url(self.url) as client:
            for begin in range(0, len(bodies), 200):
                async with client.pipeline(transaction=False) as pipeline:
                    for body in bodies[begin : begin + 200]:
                        pipeline.xadd(self.address, {"event": body})
                    await pipeline.execute()

    async def _redis_in(self, wanted: int, listening: asyncio.Event) -> None:
        redis = driver("redis.asyncio", "redis")
        async with redis.Redis.from_url(self.url) as client:
            last = await client.xrevrange(self.address, count=1)
            place = last[0][0] if last else "0"
            listening.set()
            while wanted > 0:
                answer = await client.xread({self.address: place}, 500, block=1000)
                pairs = answer.items() if isinstance(answer, dict) else answer
                for _, groups in pairs:
                    found = [each for group in groups for each in _entries(group)]
                    if found:
                        place = found[-1][0]
                        wanted -= len(found)

    async def _nats_out(self, bodies: list[bytes]) -> None:
        client = await driver("nats", "nats").connect(self.url)
        for body in bodies:
            await client.publish(self.address, body)
        await client.flush()
        await client.close()

    async def _nats_in(self, wanted: int, listening: asyncio.Event) -> None:
        client = await driver("nats", "nats").connect(self.url)
        subscription = await client.subscribe(self.address, pending_msgs_limit=1 << 22)
        await client.flush()
        listening.set()
        async for _ in subscription.messages:
            wanted -= 1
            if not wanted:
                break
        await client.close()

    async def _amqp_out(self, bodies: list[bytes]) -> None:
        aio_pika = driver("aio_pika", "amqp")
        async with await aio_pika.connect(self.url) as connection:
            channel = await connection.channel(publisher_confirms=True)
            exchange = await channel.declare_exchange(self.address, "fanout", durable=True)
            for begin in range(0, len(bodies), 200):
                messages = [
                    aio_pika.Message(
                        body, content_type="application/cloudevents+json", delivery_mode=2
                    )
                    for body in bodies[begin : begin + 200]
                ]
                await asyncio.gather(*(exchange.publish(each, "") for each in messages))

    async def _amqp_in(self, wanted: int, listening: asyncio.Event) -> None:
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
                    wanted -= 1
                    if not wanted:
                        return

    async def _kafka_out(self, bodies: list[bytes]) -> None:
        await asyncio.to_thread(self._produce, bodies)

    def _produce(self, bodies: list[bytes]) -> None:
        producer = driver("confluent_kafka", "kafka").Producer({"bootstrap.servers": self._servers})
        headers = [("content-type", b"application/cloudevents+json")]
        for body in bodies:
            producer.produce(self.address, body, headers=headers)
            producer.poll(0)
        producer.flush()

    async def _kafka_in(self, wanted: int, listening: asyncio.Event) -> None:
        await asyncio.to_thread(self._consume, wanted, listening, asyncio.get_running_loop())

    def _consume(
        self, wanted: int, listening: asyncio.Event, loop: asyncio.AbstractEventLoop
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
        while wanted > 0:
            wanted -= len(consumer.consume(500, timeout=0.1))
        consumer.close()

    @property
    def _servers(self) -> str:
        return f"{self._host}:{self._port}"


def _entries(group: Any) -> list[Any]:
    return [group] if isinstance(group, tuple) else list(group)


# --- figures ---------------------------------------------------------------------------------


def _paces(addresses: dict[str, str], effort: Effort) -> Iterator[Figure]:
    size = effort.size(5_000, 50)
    for source in addresses:
        for target in addresses:
            if source != target:
                yield from asyncio.run(_pace(source, target, addresses, size, effort.times(5)))


async def _pace(
    source: str, target: str, addresses: dict[str, str], size: int, repeats: int
) -> list[Figure]:
    mark = next(_numbers)
    ends = {
        kind: Client(kind, addresses[kind], f"bench.{mark}.{kind}") for kind in (source, target)
    }
    alone: dict[str, list[float]] = {source: [], target: []}
    bridged: list[float] = []
    plain = {kind: Client(kind, end.url, f"{end.address}.alone") for kind, end in ends.items()}
    with _gateway(f"bench{mark}", ends[source], ends[target]):
        for _ in range(repeats):
            for kind, client in plain.items():
                alone[kind].append(size / await client.alone(_bodies(size)))
            bridged.append(size / await ends[target].through(_bodies(size), ends[source]))
        single = [
            1e3 * await ends[target].through(_bodies(1), ends[source]) for _ in range(repeats)
        ]
        direct = [1e3 * await plain[target].alone(_bodies(1)) for _ in range(repeats)]
    slower = [min(pair) for pair in zip(*alone.values(), strict=True)]
    part = [one / other for one, other in zip(bridged, slower, strict=True)]
    added = statistics.median(single) - statistics.median(direct)
    name = f"{source} to {target}"
    return [
        rate(f"{name}: through a gateway", bridged),
        Figure(f"{name}: of the slower client alone", "x", tuple(part), "higher", AIM),
        cost(f"{name}: a hop adds", "ms", [max(0.001, added)], note="one event at a time"),
    ]


@contextmanager
def _gateway(name: str, source: Client, target: Client) -> Iterator[None]:
    """`ensue serve` between two services, until it is ready and while it is needed."""
    lines = [f'[gateway]\nname = "{name}"\nsettling = 0.1\n']
    for end in (source, target):
        lines.append(f'[[service]]\nname = "{end.kind}"\nkind = "{end.kind}"\nurl = "{end.url}"')
        lines.append(f'address = "{end.address}"')
        lines.append('exchange = "fanout"\n' if end.kind == "amqp" else "")
    lines.append(f'[[subscribe]]\nat = "{target.kind}"\nfrom = ["{source.kind}"]')
    lines.append('where = "speed >= 0"\n')
    with TemporaryDirectory() as folder:
        path = Path(folder) / "gateway.toml"
        path.write_text("\n".join(lines), "utf-8")
        command = [sys.executable, "-m", "ensue", "serve", str(path)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                _wait_until_ready(process)
                yield
            finally:
                process.terminate()


def _wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    said: list[str] = []
    ready = Flag()

    def read() -> None:
        # It is read to its end, so that what a gateway says later does not fill the pipe.
        for line in process.stderr or ():
            if line.strip() == "ready":
                ready.set()
            said.append(line)

    Thread(target=read, daemon=True).start()
    if not ready.wait(_SECONDS_TO_START):
        raise UsageError("the gateway has not started:\n" + "".join(said[-5:]))


def _bodies(size: int) -> list[bytes]:
    made = (
        Event.of("Speed", time=number, source="bench", data={"speed": 60, "licence": "191-D-1"})
        for number in range(size)
    )
    return [encode(each) for each in made]


def _mappings(effort: Effort) -> Iterator[Figure]:
    """The paper's two approaches, side by side."""
    steps = {
        "rename": {"v": "speed"},
        "remove": ["debug"],
        "retype": {"licence": "string"},
        "subject": "Traffic.{licence}",
    }
    tables = {
        "gateway": {"name": "bench"},
        "service": [{"name": "a", "kind": "memory"}],
        "map": [{"at": "a", "direction": "out", **steps}],
    }
    mapping = read_settings(tables).mappings[0]
    size = effort.size(20_000, 100)
    data = {"v": 60, "licence": "191-D-1", "debug": True}
    events = [Event.of("Speed", time=number, id="1", data=data) for number in range(size)]

    def work(mapped: Callable[[Event], Event | None]) -> Work:
        return Work(lambda _: [mapped(each) for each in events])

    ways = {"interpreted": work(interpreted(mapping)), "compiled": work(compiled(mapping))}
    taken = side_by_side(ways, effort.times())
    for name, seconds in taken.items():
        yield rate(f"mapping, {name}", rates(size, seconds))
    gained = ratios(taken["interpreted"], taken["compiled"])
    yield Figure("mapping: compiled beside interpreted", "x", tuple(gained), "higher", 1.0)


def _crossing(effort: Effort) -> Curve:
    """Events that cross a link, of a thousand, as more consumers beyond it ask for some of them."""
    sizes = (1, 10) if effort.quick else (1, 10, 100, 1000)
    points = tuple((float(each), (float(asyncio.run(_crossed(each))),)) for each in sizes)
    return Curve("federation-crossing", "wanted beyond", "consumers", "events", points)


async def _crossed(consumers: int) -> int:
    mark = f"bench{next(_numbers)}"

    def tables(name: str, services: tuple[str, str], wishes: list[dict[str, Any]]) -> Any:
        return {
            "gateway": {"name": name, "settling": 0.1, "beat": 0.2},
            "service": [
                {"name": each, "kind": "memory", "url": f"memory:{mark}/{each}"}
                for each in services
            ],
            "subscribe": wishes,
        }

    wishes = [{"at": "far", "where": f"speed >= {999 - number}"} for number in range(consumers)]
    near = Gateway.from_config(tables("near", ("cars", "middle"), []))
    far = Gateway.from_config(tables("far", ("middle", "far"), wishes))
    starting: list[Awaitable[None]] = [near.start(), far.start()]
    await asyncio.gather(*starting)
    cars = hub(f"{mark}/cars")
    # The near gateway listens there once it knows what is wanted.
    await _until(lambda: any(each.is_listening for each in cars.connections))
    for speed in range(1000):
        event = Event.of("Speed", time=speed, id=str(speed), source="car", data={"speed": speed})
        cars.publish(Outgoing(event))
    await _until(lambda: _link(near, "cars")["in"] == 1000 and not _link(near, "middle")["waiting"])
    crossed = len(hub(f"{mark}/middle").log)
    await asyncio.gather(near.stop(), far.stop())
    return crossed


def _link(gateway: Gateway, service: str) -> dict[str, Any]:
    return next(each for each in gateway.status() if each["service"] == service)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(_SECONDS_TO_CROSS):
        while not condition():
            await asyncio.sleep(0.05)


def _placing(effort: Effort) -> Iterator[Curve]:
    """Messages over a link, of a thousand events, as more rules beyond it read them."""
    sizes = (1, 10) if effort.quick else (1, 10, 100, 1000)
    found = {each: _placed(each) for each in sizes}
    for place_, name in enumerate(("with a placement", "without, those that match a port")):
        points = tuple((float(size), (float(counts[place_]),)) for size, counts in found.items())
        yield Curve("federation-placement", name, "consumers", "messages", points)


def _placed(consumers: int) -> tuple[int, int]:
    """What crosses with a placement, and with all rules at the far site."""
    rules = "".join(
        f"Out correlation C{number} (Near a where v >= {number * 61 % 980} AND"
        f" v < {number * 61 % 980 + 10}, Near b where v >= 990, Far g) (a ; b) + g within 20 ms"
        " { case true: push new Out { v = b.v }; }\n"
        for number in range(consumers)
    )
    types = "".join(f"eventtype {name} {{ attribute long v; }};\n" for name in TYPES)
    library = parse(types + rules).checked
    tables = {"site": [{"name": "near", "types": ["Near"]}, {"name": "far", "types": ["Far"]}]}
    tables["place"] = [{"rule": each.name, "at": "far"} for each in library.correlations]
    draw = Random(1)
    events = [
        ("near", Event.of("Near", time=1000 * n, id=str(n), data={"v": draw.randrange(1000)}))
        for n in range(1000)
    ]
    events += [
        ("far", Event.of("Far", time=100_000 * n + 50, id=f"f{n}", data={"v": n}))
        for n in range(10)
    ]
    simulation = Simulation(place(library, Sites.of(tables, library)), beat=50)
    simulation.run(sorted(events, key=lambda each: each[1].time))
    crossed = simulation.crossed
    return max(1, crossed.messages), max(1, crossed.matched["near"])

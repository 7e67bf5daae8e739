"""The brokers of a hunt, each started when a story first needs it, and restarted in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.servers.messaging import SERVERS, Broker
from tests.servers.programs import free_port

SERVER_OF = {"redis-pubsub": "redis", "nats-jetstream": "nats"}
WITHOUT_SERVER = ("zenoh", "channel")
KEEPS_WHEN_KILLED = ("redis", "nats", "kafka")
"""Servers that have in files what they have confirmed. Mosquitto writes its store now and then."""
SLOW = ("amqp", "kafka")
"""Servers that take many seconds to come back."""


def server_of(kind: str) -> str:
    return SERVER_OF.get(kind, kind)


class Brokers:
    """`start` gives a running server of a kind, `kafka` the one broker that is started apart."""

    def __init__(self, start: Callable[[str], Broker], kafka: Callable[[], Any]) -> None:
        self._start = start
        self._kafka = kafka

    def url(self, kind: str, name: str) -> str:
        if kind == "channel":
            return f"channel:{name}"
        if kind == "zenoh":
            return f"zenoh://127.0.0.1:{free_port()}"
        if kind == "kafka":
            return f"kafka://{self._kafka().servers}"
        return self._start(server_of(kind)).url

    def end(self, server: str, roughly: bool) -> None:
        if server == "kafka":
            self._kafka().die()
            return
        broker = self._start(server)
        if roughly and server in KEEPS_WHEN_KILLED and broker.process is not None:
            broker.process.kill()
            broker.process.wait()
            broker.process = None
        else:
            broker.pause()

    def come_back(self, server: str) -> None:
        if server == "kafka":
            self._kafka().revive()
        else:
            # A server that has ended is started by being asked for.
            self._start(server)


@contextmanager
def own_brokers() -> Iterator[Brokers]:
    """Brokers for one process, ended with it."""
    started: dict[str, Any] = {}

    def start(server: str) -> Broker:
        made: Broker = started.get(server) or SERVERS[server]()
        if server not in started:
            made.start()
            started[server] = made
        elif made.process is None:
            made.resume()
        return made

    def kafka() -> Any:
        if "kafka" not in started:
            from ensue.spark.kafka.broker import TrialBroker

            started["kafka"] = TrialBroker(partitions=2).start()
        return started["kafka"]

    try:
        yield Brokers(start, kafka)
    finally:
        for each in started.values():
            each.stop()

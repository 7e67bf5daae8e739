"""Message brokers: one server of each for a whole test session, on a free loopback port.

`SERVERS` names them. `pause` ends a process and `resume` starts it again on the same port with what
it has stored, for tests of broken links.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.servers.process import Server
from tests.servers.programs import free_port, program

PATIENCE = 60.0


class Broker(Server):
    """One server. Subclasses say how it is started."""

    scheme = ""
    has_started_after = 0.0

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.command()
        self.make_folder()
        self.prepare()
        self.resume()

    def prepare(self) -> None:
        """Write what the server needs into its folder."""

    def resume(self) -> None:
        process = self.start_process(self.command(), self.folder, self.environment())
        until = time.monotonic() + PATIENCE
        while not self.answers():
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"`{type(self).__name__}` does not answer\n{self.end_of_log}")
            time.sleep(0.05)

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        return {}


class Mosquitto(Broker):
    scheme = "mqtt"

    def prepare(self) -> None:
        (self.folder / "mosquitto.conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\n"
            f"persistence true\npersistence_location {self.folder}/\nautosave_interval 1\n"
            "max_queued_messages 0\nset_tcp_nodelay true\n"
        )

    def command(self) -> Sequence[str]:
        return [program("mosquitto"), "-c", str(self.folder / "mosquitto.conf")]


class Redis(Broker):
    scheme = "redis"

    def command(self) -> Sequence[str]:
        options = ("--save", "", "--appendonly", "yes", "--appendfsync", "no")
        place = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder))
        return [program("redis-server"), *place, *options]

    def answers(self) -> bool:
        # While it loads its file it accepts connections and refuses commands.
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


class Nats(Broker):
    scheme = "nats"

    def command(self) -> Sequence[str]:
        place = ("-a", "127.0.0.1", "-p", str(self.port))
        return [program("nats-server"), *place, "-js", "-sd", str(self.folder / "store")]


class RabbitMQ(Broker):
    scheme = "amqp"

    def prepare(self) -> None:
        self.distribution_port = free_port()
        self.names_port = free_port()
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            "loopback_users.guest = true\nlog.console = true\n"
        )
        for name in ("enabled_plugins",):
            (self.folder / name).write_text("[].\n")

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}"

    def command(self) -> Sequence[str]:
        return [program("rabbitmq-server", [Path("/usr/lib/rabbitmq/bin"), Path("/usr/sbin")])]

    def environment(self) -> Mapping[str, str]:
        return {
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"ensue{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_DIST_PORT": str(self.distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(self.names_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(connection.recv(8))
        except OSError:
            return False


SERVERS: dict[str, type[Broker]] = {
    "mqtt": Mosquitto,
    "redis": Redis,
    "nats": Nats,
    "amqp": RabbitMQ,
}

"""Message brokers for measurements: those that are installed, each on a free loopback port.

Kafka comes from its jars, and needs Java; the others are programs of the machine.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

_SECONDS_TO_START = 60.0
PROGRAMS = {
    "mqtt": "mosquitto",
    "nats": "nats-server",
    "redis": "redis-server",
    "amqp": "rabbitmq-server",
    "kafka": "java",
}


def found(kind: str) -> str | None:
    """The program of a kind of broker, if it is installed."""
    if kind == "kafka" and find_spec("pyspark") is None:
        return None
    places = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
    return shutil.which(PROGRAMS[kind], path=places)


@contextmanager
def running(kinds: Sequence[str]) -> Iterator[dict[str, str]]:
    """Addresses of brokers by kind."""
    with TemporaryDirectory() as name, ExitStack() as stack:
        addresses = {}
        for kind in kinds:
            if kind == "kafka":
                # Only here, as it needs an extra.
                from ensue.spark.kafka.broker import TrialBroker

                broker = stack.enter_context(TrialBroker())
                addresses[kind] = f"kafka://{broker.servers}"
                continue
            port = _free_port()
            folder = Path(name) / kind
            folder.mkdir()
            process = subprocess.Popen(
                _command(kind, port, folder),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env={**os.environ, **_environment(kind, port, folder)},
            )
            stack.callback(_end, process)
            _wait(port)
            user = "guest:guest@" if kind == "amqp" else ""
            addresses[kind] = f"{kind}://{user}127.0.0.1:{port}"
        yield addresses


def _command(kind: str, port: int, folder: Path) -> list[str]:
    program = found(kind) or PROGRAMS[kind]
    if kind == "mqtt":
        settings = folder / "mosquitto.conf"
        settings.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n"
            "max_inflight_messages 0\n"
        )
        return [program, "-c", str(settings)]
    if kind == "nats":
        return [program, "-a", "127.0.0.1", "-p", str(port)]
    if kind == "amqp":
        listens = f"listeners.tcp.1 = 127.0.0.1:{port}\n"
        (folder / "rabbitmq.conf").write_text(listens)
        (folder / "plugins").write_text("[].\n")
        return [program]
    return [program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]


def _environment(kind: str, port: int, folder: Path) -> dict[str, str]:
    if kind != "amqp":
        return {}
    return {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_DIST_PORT": str(_free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "ERL_EPMD_PORT": str(_free_port()),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }


def _wait(port: int) -> None:
    until = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

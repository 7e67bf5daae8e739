"""The installed message brokers, for measurements: each on a free loopback port.

Kafka comes from its jars, and needs Java; the others are programs of the machine, which run in a
folder of their own, and under root as a user without rights.
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

from ensue.errors import UsageError

SECONDS_TO_START = 60.0
_UNPRIVILEGED = "nobody"
_PLACES = ("/usr/lib/rabbitmq/bin", "/usr/sbin")
"""Where programs are that need not be on the path; the first RabbitMQ changes no user by itself."""
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
    places = (*_PLACES, os.environ.get("PATH", ""))
    return shutil.which(PROGRAMS[kind], path=os.pathsep.join(places))


@contextmanager
def running(kinds: Sequence[str]) -> Iterator[dict[str, str]]:
    """Addresses of brokers by kind. Raises `UsageError` for one that does not start."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as name, ExitStack() as stack:
        Path(name).chmod(0o755)
        addresses = {}
        for kind in kinds:
            if kind == "kafka":
                # Only here, as it needs an extra.
                from ensue.spark.kafka.broker import TrialBroker

                broker = stack.enter_context(TrialBroker())
                addresses[kind] = f"kafka://{broker.servers}"
                continue
            folder = Path(name) / kind
            port = free_port()
            process = _started(kind, port, folder)
            stack.callback(_end, process)
            if not answers(process, port):
                said = (folder / "log").read_text("utf-8", "replace")[-1000:]
                raise UsageError(f"the broker for `{kind}` has not started; what it said:\n{said}")
            user = "guest:guest@" if kind == "amqp" else ""
            addresses[kind] = f"{kind}://{user}127.0.0.1:{port}"
        yield addresses


def _started(kind: str, port: int, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir()
    user = _UNPRIVILEGED if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            _command(kind, port, folder),
            stdout=log,
            stderr=log,
            cwd=folder,
            user=user,
            env={**os.environ, **_environment(kind, port, folder)},
        )


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
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "ERL_EPMD_PORT": str(free_port()),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }


def answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether a server takes connections, which is waited for."""
    until = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

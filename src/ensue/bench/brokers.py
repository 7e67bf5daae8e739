"""Message brokers for measurements: those that are installed, each on a free loopback port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_SECONDS_TO_START = 20.0
PROGRAMS = {"mqtt": "mosquitto", "nats": "nats-server", "redis": "redis-server"}


def found(kind: str) -> str | None:
    """The program of a kind of broker, if it is installed."""
    places = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
    return shutil.which(PROGRAMS[kind], path=places)


@contextmanager
def running(kinds: Sequence[str]) -> Iterator[dict[str, str]]:
    """Addresses of brokers by kind."""
    with TemporaryDirectory() as name, ExitStack() as stack:
        addresses = {}
        for kind in kinds:
            port = _free_port()
            command = _command(kind, port, Path(name))
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=name
            )
            stack.callback(_end, process)
            _wait(port)
            addresses[kind] = f"{kind}://127.0.0.1:{port}"
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
    return [program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]


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
